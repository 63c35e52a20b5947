package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Session is who signed in, until it ends.
type Session struct {
	// ID of this session, by which a logout ends it.
	ID string `json:"i"`
	// Subject is the account at the provider: unique there, and never another's.
	Subject string `json:"s"`
	// Name to show.
	Name string `json:"n"`
	// Groups that the account is a member of, with the configured prefix.
	Groups []string `json:"g,omitempty"`
	// Until is when it ends.
	Until time.Time `json:"u"`
}

// attempt is a login that was begun, as the browser keeps it.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	To       string    `json:"t"`
	Until    time.Time `json:"u"`
}

// Names of the cookies. The prefix has browsers hold them to this host over TLS.
const (
	sessionCookie = "__Host-fleetbroker"
	attemptCookie = "__Host-fleetbroker-login"
)

// maxCookie is how many bytes a cookie may have: browsers take 4096 with its name and
// attributes.
const maxCookie = 3800

// errTooLarge is a session that no cookie holds.
var errTooLarge = errors.New("the session is too large for a cookie")

// sealer turns values into cookies that only this program can read and make.
type sealer struct {
	aead cipher.AEAD
	// of names issuer and client: what was sealed for others does not open.
	of string
}

// newSealer takes any key material; none makes a key that this process alone has.
func newSealer(key []byte, issuer, client string) (*sealer, error) {
	if key == nil {
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make a key for sessions: %w", err)
		}
	}
	sum := sha256.Sum256(append([]byte("fleetbroker sessions\x00"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, fmt.Errorf("seal sessions: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal sessions: %w", err)
	}
	return &sealer{aead, issuer + "\x00" + client}, nil
}

// seal is a value as the text of a cookie of a name.
func (s *sealer) seal(name string, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("seal a cookie: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(name+"\x00"+s.of)))
	if len(text) > maxCookie {
		return "", errTooLarge
	}
	return text, nil
}

// open reads a request's cookie of a name; false where there is none, or it is not of this
// program.
func (s *sealer) open(r *http.Request, name string, into any) bool {
	c, err := r.Cookie(name)
	if err != nil || len(c.Value) > maxCookie {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	plain, err := s.aead.Open(nil, nil, raw, []byte(name+"\x00"+s.of))
	return err == nil && json.Unmarshal(plain, into) == nil
}

// cookie is one of this program's; an empty value takes it back.
func cookie(name, value string, life time.Duration) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// ended are the sessions that were logged out before their end.
type ended struct {
	mu sync.Mutex
	at map[string]time.Time // until when each would have lived
}

// maxEnded bounds how many are remembered. Each was a login.
const maxEnded = 10_000

func (e *ended) add(id string, until, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.at) >= maxEnded {
		maps.DeleteFunc(e.at, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if len(e.at) >= maxEnded { // those that would end soonest
		all := slices.SortedFunc(maps.Keys(e.at), func(a, b string) int { return e.at[a].Compare(e.at[b]) })
		for _, id := range all[:maxEnded/10] {
			delete(e.at, id)
		}
	}
	e.at[id] = until
}

func (e *ended) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.at[id]
	return ok
}

// random is text that nobody guesses.
func random() string { return rand.Text() }
