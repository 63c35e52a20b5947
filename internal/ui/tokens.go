package ui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// tokens are what a page gives its reader, so that no other page can act for them: the
// time, an HMAC of it and of who reads, and the replica whose page it is, which another one
// asks whether the token is its own.
type tokens struct {
	key     []byte
	replica string // "" for a daemon that is alone
}

func newTokens(replica string) *tokens {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return &tokens{key, replica}
}

// ShareTokens has the tokens of pages made with a key that other replicas have too, so that
// none of them has to be asked; without a key it does nothing. Call it before the first
// request.
func (u *UI) ShareTokens(key []byte) {
	if len(key) > 0 {
		u.tokens = &tokens{key, u.opts.Replica}
	}
}

// Given reports whether a page of this replica, or of one that shares its key, gave a person
// a token, and not too long ago.
func (u *UI) Given(who, token string) bool { return u.tokens.taken(token, who, u.opts.Now()) }

func (t *tokens) of(who string, at int64) string {
	mac := hmac.New(sha256.New, t.key)
	fmt.Fprintf(mac, "%d\x00%s", at, who)
	return fmt.Sprintf("%d.%s", at, base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

func (t *tokens) give(who string, now time.Time) string {
	token := t.of(who, now.Unix())
	if t.replica != "" {
		token += "." + t.replica
	}
	return token
}

// split is a token without its replica, and that: it may have dots.
func split(token string) (own, replica string) {
	parts := strings.SplitN(token, ".", 3)
	if len(parts) < 3 {
		return token, ""
	}
	return parts[0] + "." + parts[1], parts[2]
}

// replicaOf is the other replica that a token says it is of, "" for none.
func (t *tokens) replicaOf(token string) string {
	if _, of := split(token); of != t.replica {
		return of
	}
	return ""
}

func (t *tokens) taken(token, who string, now time.Time) bool {
	own, _ := split(token)
	stamp, _, _ := strings.Cut(own, ".")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || !hmac.Equal([]byte(own), []byte(t.of(who, at))) {
		return false
	}
	age := now.Sub(time.Unix(at, 0))
	return age > -time.Minute && age < tokenLife
}
