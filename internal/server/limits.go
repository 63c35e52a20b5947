package server

import (
	"cmp"
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
	"github.com/fleetbroker/fleetbroker/internal/server/finish"
)

// Limits are what one identity may use of the agents' or the operators' port, however many
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
	// Answers: bytes of large answers a second, in bursts of sixteen seconds'
	// worth; default 8 MiB. Who had more waits with the next until it is paid.
	Answers float64
}

const (
	defaultRequests   = 500
	defaultBytes      = 1 << 20
	defaultConcurrent = 256
	defaultAnswers    = 8 << 20
	requestBurst      = 2  // seconds
	byteBurst         = 16 // seconds
	// maxPolls of one identity at a time: long polls and the market, whose answers
	// are the largest. An agent needs two, and a few more while it restarts.
	maxPolls = 16
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
	if l.Answers <= 0 {
		l.Answers = defaultAnswers
	}
	return l
}

// limiter holds every identity to the limits; budgets are as many as are let in, and all kept.
type limiter struct {
	limits Limits
	now    func() time.Time

	bodies  *bodies
	mu      sync.Mutex
	budgets map[pki.Identity]*budget
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.withDefaults(), now: now, bodies: newBodies(), budgets: map[pki.Identity]*budget{}}
}

// budget is what is left to one identity.
type budget struct {
	now                      func() time.Time
	requests, bytes, answers *rate.Limiter
	slots, polls, remote     chan struct{}
	refusals                 finish.Refusals
}

// manyFold is how much more than an agent other replicas may: they speak for all
// that reach them.
const manyFold = 64

func (l *limiter) of(id pki.Identity) *budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[id]
	if b == nil {
		limits := l.limits
		if id.Role == pki.Server {
			limits.Requests *= manyFold
			limits.Bytes *= manyFold
			limits.Concurrent *= manyFold
		}
		b = newBudget(limits, l.now)
		l.budgets[id] = b
	}
	return b
}

func newBudget(l Limits, now func() time.Time) *budget {
	return &budget{
		now:      now,
		requests: rate.NewLimiter(rate.Limit(l.Requests), int(math.Ceil(l.Requests*requestBurst))),
		// A full report is let through at any rate.
		bytes:   rate.NewLimiter(rate.Limit(l.Bytes), max(int(l.Bytes*byteBurst), 2*maxReport)),
		answers: rate.NewLimiter(rate.Limit(l.Answers), int(l.Answers*byteBurst)),
		slots:   make(chan struct{}, l.Concurrent),
		polls:   make(chan struct{}, maxPolls),
		remote:  make(chan struct{}, 1), refusals: finish.NewRefusals(),
	}
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

// polled lets an identity have a few large answers under way at a time.
func polled(next http.HandlerFunc) http.HandlerFunc {
	next = charged(next)
	return within(next, func(b *budget, w http.ResponseWriter, r *http.Request) {
		select {
		case b.polls <- struct{}{}:
			defer func() { <-b.polls }()
			next(w, r)
		default:
			tooMany(w, time.Second, nameOf(r), "it has as many long polls under way as it may")
		}
	})
}

// within hands on what is left to the identity that asks. Where nobody is limited
// next answers alone.
func within(next http.HandlerFunc, limited func(*budget, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Context().Value(bodyKey{}).(*body); ok {
			limited(b.budget, w, r)
			return
		}
		next(w, r)
	}
}

type bodyKey struct{}

// limit answers 429 to those who ask for more than their share. limited is
// told of each.
func (l *limiter) limit(cost func(*http.Request) int, limited func(*http.Request), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := l.of(pki.Identity{Name: nameOf(r), Role: identityOf(r).Role})
		leave, after, reason := b.enter(cost(r))
		if leave == nil {
			limited(r)
			b.refusals.Answer(w, r, func() { tooMany(w, after, nameOf(r), reason) })
			return
		}
		defer leave()
		held := &body{all: l.bodies, budget: b}
		defer held.release()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, held)))
		finish.Written(w, r)
	})
}

func tooMany(w http.ResponseWriter, after time.Duration, who, reason string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	refuse(w, http.StatusTooManyRequests, "RateLimited", "%s is held back: %s; try again in %s", who, reason, after.Round(time.Millisecond))
}

// nameOf is who is limited: on the operators' port the holder of a token or account too.
func nameOf(r *http.Request) string { return cmp.Or(CallerOf(r).Identity, identityOf(r).Name) }

// errTooFast is returned while reading a body that is over its sender's share.
var errTooFast = errors.New("its bodies are more than it may send in this time")

// metered reads at the expense of a budget, and of the memory for bodies.
type metered struct {
	io.Reader
	body *body
}

// Read implements io.Reader.
func (m metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 && take(m.body.budget.bytes, m.body.budget.now(), n) > 0 {
		return 0, errTooFast
	}
	if n > 0 && !m.body.grow(n) {
		return 0, errBusy
	}
	return n, err
}

// meter makes reading cost what the sender of r may spend.
func meter(r *http.Request, from io.Reader) io.Reader {
	if b, ok := r.Context().Value(bodyKey{}).(*body); ok {
		return metered{from, b}
	}
	return from
}
