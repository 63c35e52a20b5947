package pushbudget

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

const (
	// maxHold is the longest that a forge is left alone by one answer: a proxy that
	// answers "in 68 years" must not end the fleet.
	maxHold = time.Hour
	// maxAway is the longest for 503: a proxy on the way of one replica says it, of no account.
	maxAway = 5 * time.Minute
	// firstHold is how long it is left alone when it names no time; doubled by each
	// further answer. It is what GitHub asks for.
	firstHold = time.Minute
	// maxWords bounds what is read of an answer's body.
	maxWords = 4 << 10
)

// hold is what a forge said of pushes, or of reads.
type hold struct {
	until time.Time
	why   string
	// times is how often it was said since the last success.
	times int
	// own is until when by limits that it told this process: they are of the account, which
	// replicas share.
	own time.Time
}

// at is when the forge may be asked again, within an hour of a clock that may have
// been set back since.
func (h *hold) at(now time.Time) time.Time {
	if latest := now.Add(maxHold); h.until.After(latest) {
		h.until = latest
	}
	if h.own.After(h.until) {
		h.own = h.until
	}
	return h.until
}

// Asked is until when an answer asks to be left alone, and why, where it is a limit; zero:
// it is none. times is how often that was said before since the last success. It may read
// the beginning of the body, and puts it back.
func Asked(answer *http.Response, now time.Time, times int) (until time.Time, why string) {
	if !isLimit(answer) {
		return time.Time{}, ""
	}
	if until = stated(answer.Header, now); until.IsZero() {
		until = now.Add(firstHold << min(times, 6))
	}
	until = later(until, now.Add(time.Second))
	longest := maxHold
	if answer.StatusCode == http.StatusServiceUnavailable {
		longest = maxAway
	}
	if latest := now.Add(longest); until.After(latest) {
		until = latest
	}
	return until, fmt.Sprintf("the git server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
}

// Answered looks at what the git server answered over HTTP: a limit of the forge holds
// what was asked for, until the time that it names. It may read the beginning of the
// body, and puts it back.
func (b *Budget) Answered(answer *http.Response) {
	if b == nil || answer.Request == nil {
		return
	}
	push := strings.HasSuffix(answer.Request.URL.Path, "/git-receive-pack") || answer.Request.URL.Query().Get("service") == "git-receive-pack"
	b.mu.Lock()
	h, what := &b.reads, "reads"
	if push {
		h, what = &b.pushes, "pushes"
	}
	times, now := h.times, b.opts.Now()
	b.mu.Unlock()
	until, why := Asked(answer, now, times) // it may wait for the body
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.IsZero() {
		// That a push may be asked for says nothing of whether it is taken.
		if answer.StatusCode < http.StatusMultipleChoices && (!push || answer.Request.Method == http.MethodPost) {
			h.times = 0
		}
		return
	}
	h.times++
	h.until, h.why = later(h.at(now), until), why
	if answer.StatusCode != http.StatusServiceUnavailable {
		h.own = later(h.own, until)
	}
	if !push { // who is asked for fewer reads does not push meanwhile
		b.pushes.until, b.pushes.own, b.pushes.why = later(b.pushes.at(now), h.until), later(b.pushes.own, h.own), why
	}
	b.opts.Log.Warn("the forge limits requests to the fleet repo", "which", what, "until", h.at(now).UTC().Format(time.RFC3339), "status", answer.StatusCode)
}

// isLimit reports whether an answer asks to come later. A plain 403 is a missing right:
// GitHub's limits say that they are some, in a header or in the text.
func isLimit(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return answer.Header.Get("Retry-After") != ""
	case http.StatusForbidden:
	default:
		return false
	}
	h := answer.Header
	if h.Get("Retry-After") != "" || h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0" {
		return true
	}
	said := strings.ToLower(string(peek(answer)))
	for _, words := range []string{"rate limit", "secondary limit", "too many requests", "abuse detection"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// peek reads the beginning of an answer's body, and puts it back.
func peek(answer *http.Response) []byte {
	if answer.Body == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxWords))
	rest := io.Reader(answer.Body)
	if err != nil {
		rest = failing{err}
	}
	answer.Body = body{io.MultiReader(bytes.NewReader(text), rest), answer.Body}
	return text
}

type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// stated is when the forge may be asked again by its own word, zero where it names no
// time: Retry-After in seconds or as a date, or the end of a window that is used up.
func stated(h http.Header, now time.Time) time.Time {
	if s := strings.TrimSpace(h.Get("Retry-After")); s != "" {
		switch n, err := strconv.ParseUint(s, 10, 31); {
		case err == nil:
			return now.Add(time.Duration(n) * time.Second) //nolint:gosec // 31 bits
		case errors.Is(err, strconv.ErrRange):
			return now.Add(maxHold)
		}
		if at, err := http.ParseTime(s); err == nil {
			return at
		}
	}
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		if n, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64); err == nil && n > now.Unix() && n < now.Unix()+24*3600 {
			return time.Unix(n, 0)
		}
	}
	return time.Time{}
}

// Holds is for how long the forge's limits ask this process to be left alone with reads and
// with pushes, as other replicas should know. That it is unavailable (503) concerns this
// process alone: another one may reach it by another way.
func (b *Budget) Holds() (reads, pushes time.Duration) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	left := func(h *hold) time.Duration {
		h.at(now)
		return max(h.own.Sub(now), 0)
	}
	return left(&b.reads), left(&b.pushes)
}

// HeldElsewhere takes over for how long another replica is to leave the forge alone: who
// asks with the same account is asked the same.
func (b *Budget) HeldElsewhere(reads, pushes time.Duration) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	for _, s := range []struct {
		h    *hold
		left time.Duration
		what string
	}{{&b.reads, reads, "reads"}, {&b.pushes, pushes, "pushes"}} {
		until := now.Add(min(s.left, maxHold))
		if had := s.h.at(now); s.left <= 0 || !until.After(had) {
			continue
		} else if !had.After(now) {
			b.opts.Log.Info("the forge limits requests to the fleet repo, as another replica was answered", "which", s.what, "until", until.UTC().Format(time.RFC3339))
		}
		s.h.until, s.h.why = until, "the git server asked another replica to wait"
	}
}

// Reads says why nothing is read now, nil when it may be. A forge that asks to be left
// alone has answered: its silence is no reason for another replica to decide, which would
// ask it at once.
func (b *Budget) Reads() error {
	if b == nil {
		return nil
	}
	return b.mayRead()
}

// mayRead says why nothing is read now, nil when it may be.
func (b *Budget) mayRead() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	if at := b.reads.at(now); at.After(now) {
		return &gitrepo.ErrHeld{Until: at, Why: b.reads.why}
	}
	return nil
}

// Err says why the forge takes no pushes now, nil when it does, as far as is known.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	if at := b.pushes.at(now); at.After(now) {
		return &gitrepo.ErrHeld{Until: at, Why: b.pushes.why}
	}
	return nil
}
