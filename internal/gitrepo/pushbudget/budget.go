package pushbudget

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Class is how urgent a push is.
type Class int

// The classes, the least urgent first.
const (
	// Status is what can wait: commits that only carry status, what is tidied up.
	Status Class = iota
	// Decision is a plan that somebody waits for who was promised no answer: intents
	// in the inputs, moves, manifests that are rendered otherwise.
	Decision
	// Urgent is what may use all of the burst: reservations and their releases, what
	// gives drained capacity back, and undoing the edits of others.
	Urgent
)

// Limit is how many pushes a repository takes.
type Limit struct {
	// PerMinute is how many go a minute in the long run; 0: there is no limit.
	PerMinute int
	// Burst is how many may go at once when none went for a while; at least 1.
	Burst int
}

// DefaultBurst is the burst of a limit that names none. With 1 no minute has more pushes
// than the limit; more has the first of a storm answered sooner (test/bench/RESULTS.md).
const DefaultBurst = 1

// DefaultOf is the limit for a forge: GitHub asks for at most 6 pushes a minute and
// repository ("Repository limits"). GitLab, Gitea and a plain git server ask for
// nothing, and their own limits, where an administrator set some, are answered and
// obeyed.
func DefaultOf(forge string) Limit {
	if forge == "github" {
		return Limit{PerMinute: 6, Burst: DefaultBurst}
	}
	return Limit{}
}

// interval is the time that one push takes to be paid for.
func (l Limit) interval() time.Duration { return time.Minute / time.Duration(l.PerMinute) }

// depth is how far ahead of time pushes of a class may go.
func (l Limit) depth(c Class) time.Duration {
	n := 0
	switch c {
	case Decision:
		n = (l.Burst - 1) / 2
	case Urgent:
		n = l.Burst - 1
	case Status:
	}
	return time.Duration(n) * l.interval()
}

// Options of a Budget.
type Options struct {
	// Default is the limit where fleet.yaml sets none.
	Default Limit
	// Now is the clock, Sleep waits (returning early with the context's error).
	// Defaults: the real ones.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	// Log may be nil.
	Log *slog.Logger
}

// Eager lets At name a time only while the forge is to be left alone: for a command that
// makes its rounds and ends, whose pushes wait where they are made.
func (b *Budget) Eager() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eager = true
}

// Budget counts the pushes to one repository.
type Budget struct {
	opts Options

	mu    sync.Mutex
	limit Limit
	eager bool
	// paid is when the bucket is full again.
	paid time.Time
	// sent are the pushes of the last minute, oldest first.
	sent []time.Time
	// own are the newest commits that this process pushed, followed the newest head
	// that was looked at.
	own      []tree.Hash
	followed tree.Hash
	// pushes and reads are what the forge said of them.
	pushes, reads hold
	// took is how long pushes take, of late.
	took time.Duration
	// since is since when something waits, zero: nothing does.
	since  time.Time
	waited time.Duration
	kinds  map[string]uint64
	// unshown are the pushes of the ledger that got an error: refused, or without an answer.
	unshown uint64
}

// maxOwn bounds the commits that are remembered as pushed by this process.
const maxOwn = 256

// New makes a budget. Its burst counts as used.
func New(o Options) *Budget {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Budget{opts: o, kinds: map[string]uint64{}}
	b.set(o.Default)
	return b
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Configure takes over what fleet.yaml says; nil: nothing.
func (b *Budget) Configure(p *v1alpha1.PushBudget) {
	if b == nil {
		return
	}
	l := b.opts.Default
	if p != nil {
		if p.PerMinute != nil {
			l.PerMinute = int(*p.PerMinute)
		}
		if p.Burst > 0 {
			l.Burst = int(p.Burst)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(l)
}

// set puts a limit in force. The caller holds mu, or nobody else knows the budget yet.
func (b *Budget) set(l Limit) {
	if l.Burst <= 0 {
		l.Burst = DefaultBurst
	}
	if l.PerMinute <= 0 {
		l = Limit{}
	}
	if l == b.limit {
		return
	}
	was, now := b.limit, b.opts.Now()
	b.limit = l
	switch {
	case was.PerMinute == 0:
		b.spend(now)
	case l.PerMinute > 0: // as many pushes are unpaid as before, and what is new of the burst; one is left
		unpaid := max(b.paid.Sub(now), 0).Seconds()/was.interval().Seconds() + float64(max(l.Burst-was.Burst, 0))
		b.paid = now.Add(min(time.Duration(unpaid*float64(l.interval())), l.depth(Urgent)))
	}
}

// Spent takes the burst as used but for one push: this replica begins to decide, and
// another one may have used it.
func (b *Budget) Spent() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spend(b.opts.Now())
}

func (b *Budget) spend(now time.Time) {
	if b.limit.PerMinute > 0 {
		b.paid = later(b.paid, now.Add(b.limit.depth(Urgent)))
	}
}

// At is when a push of a class may be sent, zero: now. Who asks and has to wait counts
// as waiting until the next push.
func (b *Budget) At(c Class) time.Time {
	if b == nil {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	at := b.at(c, now)
	if b.eager {
		at = b.pushes.at(now)
	}
	if !at.After(now) {
		b.waitOver(now)
		return time.Time{}
	}
	if b.since.IsZero() {
		b.since = now
	}
	return at
}

// waitOver ends the wait of who has to wait no longer. The caller holds mu.
func (b *Budget) waitOver(now time.Time) {
	b.waited += b.waiting(now)
	b.since = time.Time{}
}

// waiting is for how long something waits: not longer than any push has to, for who
// asked may never come back. The caller holds mu.
func (b *Budget) waiting(now time.Time) time.Duration {
	if b.since.IsZero() {
		return 0
	}
	if end := later(b.paid, b.pushes.until); now.After(end) {
		now = end
	}
	return max(now.Sub(b.since), 0)
}

// Wait is how long it takes until what is asked for now is on the ledger, as far as
// pushes hold it up: the wait for the push and the push itself. Zero where nothing has
// to wait.
func (b *Budget) Wait() time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	if wait := b.at(Urgent, now).Sub(now); wait > 0 {
		return wait + b.took
	}
	return 0
}

// at is when a push of a class may be sent. The caller holds mu.
func (b *Budget) at(c Class, now time.Time) time.Time {
	at := b.pushes.at(now)
	if b.limit.PerMinute == 0 {
		return at
	}
	// A clock that was set back must not leave a debt that no push has made.
	if most := now.Add(time.Duration(b.limit.Burst) * b.limit.interval()); b.paid.After(most) {
		b.paid = most
	}
	return later(at, b.paid.Add(-b.limit.depth(c)))
}

// count notes that a push is sent. The caller holds mu.
func (b *Budget) count(kind string, now time.Time) {
	b.kinds[kind]++
	b.waitOver(now)
	b.sent = append(b.lately(now), now)
	b.charge(now)
}

// charge adds a push that was made at a time. The caller holds mu.
func (b *Budget) charge(at time.Time) {
	if b.limit.PerMinute > 0 {
		b.paid = later(b.paid, at).Add(b.limit.interval())
	}
}

// lately are the pushes of the last minute. The caller holds mu.
func (b *Budget) lately(now time.Time) []time.Time {
	i := 0
	for i < len(b.sent) && now.Sub(b.sent[i]) >= time.Minute {
		i++
	}
	return b.sent[i:]
}

// maxPatience is how long a push is held back by waiting; a longer wait is gitrepo.ErrHeld.
const maxPatience time.Duration = 15 * time.Second

// enter waits until a push may be sent, and counts it.
func (b *Budget) enter(ctx context.Context, kind string) error {
	for {
		b.mu.Lock()
		now := b.opts.Now()
		at := b.at(Urgent, now)
		if !at.After(now) {
			b.count(kind, now)
			b.mu.Unlock()
			return nil
		}
		if b.since.IsZero() {
			b.since = now
		}
		why, patience := b.pushes.why, maxPatience
		if b.limit.PerMinute > 0 {
			patience = max(patience, b.limit.interval())
		}
		b.mu.Unlock()
		if at.Sub(now) > patience {
			return &gitrepo.ErrHeld{Until: at, Why: why}
		}
		end := beginWait(ctx)
		err := b.opts.Sleep(ctx, at.Sub(now))
		end()
		if err != nil {
			return &gitrepo.ErrHeld{Until: at, Why: "the daemon stops"}
		}
	}
}

// Another waits for a further session of a push, where the server updates one ref at a
// time. Its error is no gitrepo.ErrHeld: a part of the push was sent.
func (b *Budget) Another(ctx context.Context) error {
	if b == nil {
		return nil
	}
	if err := b.enter(ctx, "part"); err != nil {
		return errors.New("a further ref was not pushed: " + err.Error())
	}
	return nil
}

type waitKey struct{}

// OnWait has something called when a push within the context has to wait; what that
// returns is called when the wait is over.
func OnWait(ctx context.Context, begin func() (end func())) context.Context {
	return context.WithValue(ctx, waitKey{}, begin)
}

func beginWait(ctx context.Context) (end func()) {
	if begin, ok := ctx.Value(waitKey{}).(func() func()); ok {
		return begin()
	}
	return func() {}
}

// Figures are for metrics.
type Figures struct {
	Limit Limit
	// Used are the pushes of the last minute.
	Used int
	// Kinds counts pushes since the start.
	Kinds map[string]uint64
	// Waited is for how long something waited for a push, since the start.
	Waited time.Duration
	// Held is for how long the forge asks for no push.
	Held time.Duration
}

// Figures are the present ones.
func (b *Budget) Figures() Figures {
	if b == nil {
		return Figures{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	f := Figures{Limit: b.limit, Used: len(b.lately(now)), Kinds: maps.Clone(b.kinds), Waited: b.waited + b.waiting(now)}
	f.Held = max(b.pushes.at(now).Sub(now), 0)
	return f
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
