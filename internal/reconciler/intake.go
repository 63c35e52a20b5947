package reconciler

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// retryWindow is how long an equal body without an idempotency key counts as a
// retry of a request that was not answered (FORMATS section 7).
const retryWindow = time.Minute

// intake is where requests of clusters wait for the round that decides them.
// Handlers put them in; the goroutine of Run takes them, all that are there at
// the beginning of a round: while one push is under way, the next commit's
// requests gather.
type intake struct {
	mu      sync.Mutex
	closed  bool
	waiting []*waiter
	// fates are what this process knows of the requests without a key that it
	// took within the retry window, by id.
	fates map[string]fate
	count uint64
}

// fate is what became of a request's answer.
type fate struct {
	// told: its client was told 2xx. Until then, and while it waits, it is open.
	told bool
	open bool
	// handed: another replica took it, and says what its client was told, if it lives.
	handed bool
	at     time.Time
}

// handedWindow is for how long a request that another replica took counts as open
// unless that replica says how it ended: longer than its client waits.
const handedWindow = 35 * time.Second

// waiter is one request: a reservation, or a release when release is set.
type waiter struct {
	ctx     context.Context
	ask     wire.Ask
	release string
	arrived time.Time
	nonce   uint64
	done    chan verdict

	// What follows belongs to the goroutine of Run.
	id, tenant, path string
	file             []byte // to be written; nil when it stands on the ledger
}

type verdict struct {
	reservation wire.Reservation
	err         error
}

// answer is called once a waiter, and reports whether the client is there to
// hear it. It is looked for after answering: one that goes meanwhile either
// takes the answer or is seen gone here.
func (w *waiter) answer(v verdict) (heard bool) {
	w.done <- v
	return w.ctx.Err() == nil
}

func (w *waiter) refuse(err *wire.Refusal) { w.answer(verdict{err: err}) }

// refusal is an error for a client.
func refusal(status int, reason, format string, args ...any) *wire.Refusal {
	return &wire.Refusal{Status: status, Body: wire.Error{Error: fmt.Sprintf(format, args...), Reason: reason}}
}

// unavailable is an error that says nothing of the request: it may be sent
// again, and with the same key is the same request.
func unavailable(after time.Duration, format string, args ...any) *wire.Refusal {
	r := refusal(http.StatusServiceUnavailable, wire.ReasonUnavailable, format, args...)
	r.RetryAfter = after
	return r
}

// Reserve implements the server's Broker: it returns once the reservation, or
// its place in the queue, is on the remote's ledger. Safe for any goroutine.
func (r *Reconciler) Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error) {
	if err := check(&ask); err != nil {
		return wire.Reservation{}, err
	}
	v, err := r.wait(ctx, &waiter{ask: ask})
	return v.reservation, err
}

// Release implements the server's Broker. Safe for any goroutine.
func (r *Reconciler) Release(ctx context.Context, cluster, id string) error {
	_, err := r.wait(ctx, &waiter{ask: wire.Ask{Cluster: cluster}, release: id})
	return err
}

// Answered implements the server's Broker: told says whether the client of a
// reservation heard of it. If so, an equal request that comes from now on is
// another one, else it is a retry. Safe for any goroutine.
func (r *Reconciler) Answered(id string, told bool) { r.intake.ended(id, told) }

// Told notes what another replica has told the client of a reservation that it handed
// on: as Answered. Safe for any goroutine.
func (r *Reconciler) Told(id string, told bool) { r.intake.ended(id, told) }

func (r *Reconciler) wait(ctx context.Context, w *waiter) (verdict, error) {
	w.ctx, w.done, w.arrived = ctx, make(chan verdict, 1), r.opts.Now()
	if late := r.late(w); late != nil {
		return verdict{}, late
	}
	if err := r.intake.put(w); err != nil {
		return verdict{}, err
	}
	r.Wake()
	select {
	case v := <-w.done:
		if ctx.Err() == nil {
			return v, v.err
		}
		r.intake.ended(v.reservation.ID, false)
	case <-ctx.Done():
		select {
		case v := <-w.done:
			r.intake.ended(v.reservation.ID, false)
		default: // whoever decides it sees that the client has gone
		}
	}
	// It may still be decided, and committed: who asks again with the same
	// key, or soon with the same body, finds it.
	return verdict{}, unavailable(time.Second, "no decision was committed in time; ask again with the same %s", wire.HeaderIdempotencyKey)
}

// maxWaiting bounds how many requests wait for one round.
const maxWaiting = 4096

func (t *intake) put(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return unavailable(time.Second, "the daemon is stopping; ask again with the same %s", wire.HeaderIdempotencyKey)
	case len(t.waiting) >= maxWaiting:
		return unavailable(2*time.Second, "%d requests wait already; ask again with the same %s", len(t.waiting), wire.HeaderIdempotencyKey)
	}
	t.count++
	w.nonce = t.count
	t.waiting = append(t.waiting, w)
	return nil
}

// take is all that wait and whose clients are still there.
func (t *intake) take() []*waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.waiting
	t.waiting = nil
	return list
}

// len is how many wait to be taken in.
func (t *intake) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// newest numbers the newest request that has come.
func (t *intake) newest() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// close answers everybody who waits, and who comes later, with a refusal.
func (t *intake) close() {
	t.mu.Lock()
	t.closed = true
	list := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	for _, w := range list {
		w.refuse(unavailable(time.Second, "the daemon is stopping; ask again with the same %s", wire.HeaderIdempotencyKey))
	}
}

// open notes that a request without a key is being decided under this id; handed
// says that another replica took it.
func (t *intake) open(id string, handed bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fates == nil {
		t.fates = map[string]fate{}
	}
	for old, f := range t.fates {
		if now.Sub(f.at) > retryWindow && (!f.open || f.handed) {
			delete(t.fates, old)
		}
	}
	t.fates[id] = fate{open: true, handed: handed, at: now}
}

// ended notes how a request ended: its client was told 2xx, or was not, and
// what it sends again is a retry.
func (t *intake) ended(id string, told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f, ok := t.fates[id]; ok {
		f.told, f.open = told, false
		t.fates[id] = f
	}
}

// retriable reports whether an equal request may be a retry of this one: it
// was not answered 2xx, or nobody here knows (another daemon took it, or this
// one before it started again).
func (t *intake) retriable(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.fates[id]
	open := f.open && (!f.handed || now.Sub(f.at) < handedWindow)
	return !known || !f.told && !open
}
