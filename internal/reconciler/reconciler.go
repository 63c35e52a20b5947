package reconciler

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// Reconciler is the loop. Make it with New.
type Reconciler struct {
	opts Options
	wake chan struct{}
	ask  atomic.Bool // the remote must be asked
	hint atomic.Bool // somebody says that the remote moved
	view atomic.Pointer[View]

	standing  atomic.Pointer[standing]
	listeners listeners
	announced announced
	intake    intake

	// What follows belongs to the goroutine of Run.
	reader     *fleet.Reader
	fleet      *fleet.Fleet
	inputs     tree.Hash // key of what fleet was read from
	ledger     *ledger.Ledger
	index      manifests.Index
	indexed    *ledger.Ledger
	heads      gitrepo.Heads
	verifier   *verify.Verifier
	offered    offered       // our pull request
	state      *verify.State // what may be acted on of stateOf, an accepted commit and a head
	stateOf    [2]tree.Hash
	authors    authors
	removers   map[string]gitrepo.Commit // who deleted files of intents, by path
	gone       gone
	ears       ears
	last       key
	planned    planned
	folder     world.Folder
	given      world.Input // what the newest world was made of
	keeper     replay.Keeper
	memory     planner.Memory
	policed    map[string]*v1alpha1.Cluster // whose policies the ledger has
	swept      time.Time                    // day on which old requests were last taken out
	kept       time.Time                    // day on which old market snapshots were last deleted
	lastStatus time.Time                    // of the newest commit that carried only status
	asked      time.Time                    // when the remote was last asked and answered
	contended  bool                         // another writer was faster than our newest commit
	deliver    deliveries
	desk       desk
	took       Took      // of the round under way
	faulted    time.Time // when a fault of the planner's memory was last logged

	said sync.Map // problems already logged
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
	r := &Reconciler{opts: opts, wake: make(chan struct{}, 1), reader: fleet.NewReader()}
	r.memory.Fault = r.forgot
	r.verifier = verify.New(opts.Repo, opts.Now)
	r.ask.Store(true)
	r.view.Store(&View{Trouble: "starting: the fleet repo has not been read yet"})
	return r
}

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
			r.opts.Log.Error("round failed", "error", err, "again in", wait)
		case out.Again:
			r.linger(ctx, r.desk.told, min(lingering, out.Took.Commit/4))
			continue
		default:
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

// backoff grows from a quarter of a second to half a minute.
func backoff(failures int) time.Duration {
	return min(250*time.Millisecond<<min(failures-1, 7), 30*time.Second)
}
