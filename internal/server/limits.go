package server

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Limits are what one identity may use of the agents' port, however many
// connections it opens. They are far above what an honest agent does, and low
// enough that one at its limits leaves the daemon to the others.
type Limits struct {
	// Requests a second, in bursts of two seconds' worth; default 500.
	Requests float64
	// Bytes of bodies a second, as unpacked, in bursts of sixteen seconds'
	// worth; default 1 MiB. Decoding a mebibyte takes about 30 ms.
	Bytes float64
	// Concurrent requests, long polls included; default 256.
	Concurrent int
}

const (
	defaultRequests   = 500
	defaultBytes      = 1 << 20
	defaultConcurrent = 256
	requestBurst      = 2  // seconds
	byteBurst         = 16 // seconds
	// maxStreams of one identity: an agent needs one to each daemon, and each may
	// hold a message of the largest size in memory before it is judged.
	maxStreams = 8
	// marketCost is what an answer with the whole market costs, in requests.
	marketCost = 20
)

func (l Limits) withDefaults() Limits {
	if l.Requests <= 0 {
		l.Requests = defaultRequests
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Concurrent <= 0 {
		l.Concurrent = defaultConcurrent
	}
	return l
}

// limiter holds every identity to the limits. There are as many budgets as the
// authority has issued names, so none is ever dropped.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	budgets map[pki.Identity]*budget
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.withDefaults(), now: now, budgets: map[pki.Identity]*budget{}}
}

// budget is what is left to one identity.
type budget struct {
	now             func() time.Time
	requests, bytes *rate.Limiter
	slots, streams  chan struct{}
}

func (l *limiter) of(id pki.Identity) *budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[id]
	if b == nil {
		b = &budget{
			now:      l.now,
			requests: rate.NewLimiter(rate.Limit(l.limits.Requests), int(math.Ceil(l.limits.Requests*requestBurst))),
			// A full report is let through at any rate.
			bytes:   rate.NewLimiter(rate.Limit(l.limits.Bytes), max(int(l.limits.Bytes*byteBurst), 2*maxReport)),
			slots:   make(chan struct{}, l.limits.Concurrent),
			streams: make(chan struct{}, maxStreams),
		}
		l.budgets[id] = b
	}
	return b
}

// enter takes the cost of a request and a slot; leave gives the slot back.
// Without an entrance, after says when to try again.
func (b *budget) enter(cost int) (leave func(), after time.Duration, reason string) {
	if wait := take(b.requests, b.now(), cost); wait > 0 {
		return nil, wait, "it sends more requests than it may"
	}
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, 0, ""
	default:
		return nil, time.Second, "it has as many requests under way as it may"
	}
}

// take takes n tokens at once or none, and then says when there will be enough.
func take(l *rate.Limiter, now time.Time, n int) time.Duration {
	r := l.ReserveN(now, min(n, l.Burst()))
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// openStream takes one of an identity's streams; leave gives it back, and is nil
// when there is none left.
func (b *budget) openStream() (leave func()) {
	select {
	case b.streams <- struct{}{}:
		return func() { <-b.streams }
	default:
		return nil
	}
}

type budgetKey struct{}

// limit answers 429 to those who ask for more than their share. limited is
// told of each.
func (l *limiter) limit(cost func(*http.Request) int, limited func(*http.Request), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identityOf(r)
		b := l.of(id)
		leave, after, reason := b.enter(cost(r))
		if leave == nil {
			limited(r)
			tooMany(w, after, id.Name, reason)
			return
		}
		defer leave()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), budgetKey{}, b)))
	})
}

func tooMany(w http.ResponseWriter, after time.Duration, who, reason string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	refuse(w, http.StatusTooManyRequests, "RateLimited", "%s is held back: %s; try again in %s", who, reason, after.Round(time.Millisecond))
}

// errTooFast is returned while reading a body that is over its sender's share.
var errTooFast = errors.New("its bodies are more than it may send in this time")

// metered reads at the expense of a budget.
type metered struct {
	io.Reader
	budget *budget
}

// Read implements io.Reader.
func (m metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 && take(m.budget.bytes, m.budget.now(), n) > 0 {
		return 0, errTooFast
	}
	return n, err
}

// meter makes reading cost what the sender of r may spend.
func meter(r *http.Request, body io.Reader) io.Reader {
	if b, ok := r.Context().Value(budgetKey{}).(*budget); ok {
		return metered{body, b}
	}
	return body
}
