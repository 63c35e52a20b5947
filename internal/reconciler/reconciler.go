package reconciler

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/bulletin"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/forms"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/heard"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/once"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/progress"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/trouble"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// Reconciler is the loop. Make it with New.
type Reconciler struct {
	opts Options
	wake chan struct{}
	ask  atomic.Bool // the remote must be asked
	hint atomic.Bool // somebody says that the remote moved
	view atomic.Pointer[View]
	// hasRead: fleet and ledger were read since the start.
	hasRead atomic.Bool

	progress *progress.Watch

	standing  atomic.Pointer[standing]
	listeners listeners
	announced bulletin.Board
	intake    intake

	// What follows belongs to the goroutine of Run.
	reading
	reader     *fleet.Reader
	index      manifests.Index
	indexed    *ledger.Ledger
	verifier   *verify.Verifier
	offered    offered // our pull request
	authors    authors
	removers   map[string]gitrepo.Commit // who deleted files of intents, by path
	gone       heard.Gone
	ended      writers.Ends
	last       key
	planned    planned
	folder     world.Folder
	refuser    forms.Refuser
	given      world.Input // what the newest world was made of
	keeper     replay.Keeper
	plans      *planning.Planner
	renewed    renewed
	swept      time.Time // day on which old requests were last taken out
	kept       time.Time // day on which old market snapshots were last deleted
	lastStatus time.Time // of the newest commit that carried only status
	asked      time.Time // when the remote was last asked and answered
	leads      bool      // it is elected, or nobody else may be
	standby    bool      // another replica decides
	turns      writers.Turns
	contended  bool      // another writer was faster than our newest commit
	paced      time.Time // when what the budget of pushes holds back may go; of the round under way
	deliver    deliveries
	desk       desk
	traced     traced.Round // the round under way
	ofFleet    bool         // the ledger has a commit of the trust root's fleet
	unlisted   string       // why commits of this daemon's key do not count
	blocked    string       // why the ledger cannot be written, whoever does it
	ownKey     string       // whose key signs, and its fingerprint
	suspected  suspected
	alarms     []string // what others noted as accepted, since the start
	heldBack   string   // why ends are held back, as it was last logged

	once once.Said // of what was logged
}

// New makes a reconciler that has read nothing yet.
func New(opts Options) *Reconciler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Poll <= 0 {
		opts.Poll = 30 * time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Observer == nil {
		opts.Observer = nobody{}
	}
	if opts.Watch == nil {
		opts.Watch = poison.Open("", "", time.Time{}, opts.Log)
	}
	check := opts.Check
	check.Now, check.Log = opts.Now, opts.Log
	r := &Reconciler{opts: opts, leads: true, suspected: suspected{lift: slices.Clone(opts.Lift)}, wake: make(chan struct{}, 1), reader: fleet.NewReader()}
	r.progress = progress.New(func() time.Time { return r.opts.Now() }, opts.Poll)
	r.once = once.New(opts.Log)
	r.deliver.id, r.deliver.traces = opts.Root.ID(), opts.Traces
	r.traced = traced.Round{Now: func() time.Time { return r.opts.Now() }, Tracer: opts.Tracer}
	check.Observer = &traced.Planning{Observer: opts.Observer, Round: &r.traced}
	r.plans = planning.New(check)
	r.turns = writers.Turns{Self: opts.Replica, Elected: opts.Elected, Now: opts.Now, Log: opts.Log}
	if id, err := r.rooted(nil); opts.Root.Signed() && err == nil {
		opts.Repo.SetIdentity(id)
	}
	if opts.Repo != nil { // else nothing is read
		r.verifier = verify.New(opts.Repo, opts.Now).Trust(opts.Root)
	}
	r.ask.Store(true)
	r.view.Store(&View{Trouble: "starting: the fleet repo has not been read yet", Trust: opts.Root.Shown()})
	return r
}

// RemoteOut is for how long the fleet repo has not answered although it was asked.
// Safe for any goroutine.
func (r *Reconciler) RemoteOut() time.Duration { return r.progress.RemoteOut() }

// Wake asks for a round on what is known of the remote: the market or a
// cluster has news. It never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Reread asks for a round that asks the remote first: a webhook came. While
// clients wait for reservations it may take up to a second (see ought).
func (r *Reconciler) Reread() {
	r.hint.Store(true)
	r.Wake()
}

// Run makes rounds until the context ends. It returns only then, when everybody
// who waits for an answer has one.
func (r *Reconciler) Run(ctx context.Context) error {
	defer func() {
		r.fail(context.Canceled)
		r.intake.close()
	}()
	var failures int
	told := trouble.Log{To: r.opts.Log, Now: r.opts.Now}
	for {
		out, err := r.Round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := r.opts.Poll
		switch {
		case err != nil:
			failures++
			wait = min(wait, backoff(failures))
			r.ask.Store(true)
			told.Failed(r.traced.In(ctx), err, wait)
			if !r.pause(ctx, wait, err) {
				return nil
			}
			continue
		case out.Again:
			r.linger(ctx, r.desk.told, min(lingering, out.Took.Commit/4))
			continue
		default:
			told.Over(failures)
			failures = 0
			if d := out.Due.Sub(r.opts.Now()); !out.Due.IsZero() && d < wait {
				wait = max(d, time.Millisecond)
			}
		}
		if !r.sleep(ctx, wait) {
			return nil
		}
	}
}

// lingering bounds how long a commit waits for clients to come back.
const lingering = 20 * time.Millisecond

// linger gives clients that were answered together a moment to ask for more:
// the next commit then carries all of them, and not first the quick ones alone.
// One client alone is never waited for.
func (r *Reconciler) linger(ctx context.Context, told int, most time.Duration) {
	if told < 2 || most <= 0 {
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	for r.intake.len() < told {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case <-r.wake: // the round that follows sees whatever it was
		}
	}
}

// sleep waits for a call, or for as long as said; then the remote is asked.
func (r *Reconciler) sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.wake:
	case <-t.C:
		if wait >= r.opts.Poll {
			r.ask.Store(true)
		}
	}
	return true
}

// patience is how long a request may wait for the round that follows a failed
// one; before a longer pause its client gets the error.
const patience = time.Second

// pause waits for as long as said, whatever wakes: a git server in trouble is
// not asked more often because agents report. What woke is seen by the round
// that follows.
func (r *Reconciler) pause(ctx context.Context, wait time.Duration, cause error) bool {
	defer r.Wake() // a wake that was taken out here
	until := time.Now().Add(wait)
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.wake:
			if time.Until(until) > patience {
				r.fail(cause)
			}
		case <-t.C:
			return true
		}
	}
}

// backoff grows from a quarter of a second to half a minute.
func backoff(failures int) time.Duration {
	return min(250*time.Millisecond<<min(failures-1, 7), 30*time.Second)
}
