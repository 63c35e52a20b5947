package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/sealed"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/clock"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
)

// Whom the ledger's commits are from.
const (
	brokerName  = "fleetbroker"
	brokerEmail = "fleetbroker@example.org"
)

// daemon is one fleetbroker: real rooms, joined as its main does, on a link,
// a clock and clusters of the simulation.
type daemon struct {
	s    *sim
	name string
	skew time.Duration
	dir  string // state directory; "": none
	link *link
	up   bool
	// cut are the consumers that this daemon cannot reach.
	cut map[string]bool
	// deaf are the providers whose reports do not reach this daemon.
	deaf map[string]bool
	// clock compares the daemon's with the remote's; jumped: it is a day off.
	clock  *clock.Check
	jumped bool
	// thaws is until when it is frozen; held: it is before a push.
	thaws time.Duration
	held  bool

	repo   *gitrepo.Repo
	market *market.Market
	loop   *reconciler.Reconciler
	twin   *twin
	born   time.Duration
	life   int
	sealed int // how many worlds were planned

	// As Reconciler.Run keeps them.
	due      time.Duration
	booking  int
	failures int
	rounding bool
	quiet    int // rounds in a row that wrote nothing and failed nothing
	last     string
	lastErr  error
	heard    map[string]time.Duration // when providers' reports were taken in this life
	made     map[string]time.Duration // and when the newest of them was made
	options  func(*reconciler.Options)
	member   // of those that share a store
}

// crashed is the panic by which a daemon ends in the middle of something.
type crashed struct {
	d     *daemon
	where string
}

func (d *daemon) now() time.Time { return epoch.Add(d.s.tl.now + d.skew) }

func (d *daemon) reaches(c *consumer) bool { return !c.down && !d.cut[c.name] }

// sealEvery is how many of a daemon's worlds one is copied and compared: all of them
// were two fifths of a seed's time, and who writes in place does so again.
const sealEvery = 5

// seal is sealed.World for some of a daemon's worlds, by their number.
func (d *daemon) seal(w planner.World) func() string {
	if d.sealed++; d.sealed%sealEvery != 1 {
		return func() string { return "" }
	}
	return sealed.World(w)
}

// start begins a life.
func (d *daemon) start() {
	ctx := context.Background()
	d.life++
	d.born = d.s.tl.now
	if d.s.shared == nil || d.heard == nil { // what others took is known to who starts
		d.heard, d.made = map[string]time.Duration{}, map[string]time.Duration{}
	}
	identity := gitrepo.Identity{Name: brokerName, Email: brokerEmail}
	d.clock = clock.New(d.now, func() time.Duration { return d.s.tl.now })
	opts := reconciler.Options{
		Replica: d.name,
		Now:     d.now, Clock: d.clock, Poll: d.s.knobs.poll,
		Observer: watcher{d}, Check: planning.Options{Every: 1, Seal: d.seal},
	}
	if r := d.s.rooted; r != nil {
		identity.Signer, opts.Signer, opts.Root = r.daemon, r.daemon, r.root
	}
	repo, err := gitrepo.Open(ctx, d.link, gitrepo.Options{
		Dir: d.dir, Inputs: d.s.people.inputs, Ledger: d.s.people.ledger,
		Identity: identity,
		Now:      d.now,
		Sleep: func(_ context.Context, w time.Duration) error {
			d.s.tl.now += w.Truncate(time.Microsecond)
			return nil
		},
		Rand: d.s.rng.Float64,
	})
	if err != nil {
		d.s.fail("sim", "%s cannot open its repository: %v", d.name, err)
		return
	}
	d.repo = repo
	d.market = market.New(market.Options{Now: d.now, Silence: 3 * d.s.knobs.report, Warmup: d.s.knobs.report + 5*time.Second})
	d.twin = newTwin(d)
	opts.Repo, opts.Market, opts.Delivery = repo, d.market, d.twin
	d.trace(&opts)
	if d.options != nil {
		d.options(&opts)
	}
	if d.s.shared != nil && !opts.Shadow {
		d.s.shared.join(d, &opts)
	}
	d.loop = reconciler.New(opts)
	d.up, d.failures, d.quiet, d.due, d.last = true, 0, 0, 0, ""
	d.s.log("%s starts", d.name)
	d.bookRound(time.Millisecond)
}

// crash ends a life without a word. With a state directory, what it had noted
// of accepted heads is found again; the copy of the repository may be lost.
func (d *daemon) crash(why string) {
	d.s.log("%s crashes %s", d.name, why)
	d.up, d.twin = false, newTwin(d)
	if d.dir == "" {
		return
	}
	next := filepath.Join(d.s.dir, fmt.Sprintf("%s-%d", d.name, d.life+1))
	if err := os.MkdirAll(next, 0o700); err != nil {
		d.s.fail("sim", "%v", err)
		return
	}
	if d.s.rng.IntN(2) == 0 {
		b, err := os.ReadFile(filepath.Join(d.dir, "accepted.json"))
		if err == nil {
			err = os.WriteFile(filepath.Join(next, "accepted.json"), b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			d.s.fail("sim", "%v", err)
		}
	}
	d.dir = next
}

// stop ends a life as SIGTERM does.
func (d *daemon) stop() {
	d.s.log("%s stops", d.name)
	if d.s.shared != nil {
		d.s.shared.release(d)
	}
	d.up, d.twin = false, newTwin(d)
	if err := d.repo.Close(); err != nil {
		d.s.fail("sim", "%s does not close its repository: %v", d.name, err)
	}
}

func (d *daemon) maybeCrash(where string) {
	if !d.s.healed && d.s.rng.Float64() < d.s.knobs.crashes {
		panic(crashed{d, where})
	}
}

// guarded runs something of a daemon and buries it if it crashes.
func (d *daemon) guarded(run func()) {
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(crashed)
			if !ok {
				panic(r)
			}
			c.d.rounding = false
			c.d.crash(c.where)
			c.d.s.after(span(d.s.rng, time.Second, 2*time.Minute), c.d.revive)
		}
	}()
	run()
}

func (d *daemon) revive() {
	if !d.up {
		d.start()
	}
}

// wake books a round soon: the market or a cluster has news.
func (d *daemon) wake() { d.bookRound(span(d.s.rng, time.Millisecond, 50*time.Millisecond)) }

// bookRound books the next round unless an earlier one is booked.
func (d *daemon) bookRound(wait time.Duration) {
	at := d.s.tl.now + wait
	if d.due > d.s.tl.now && d.due <= at {
		return
	}
	d.due = at
	d.booking++
	booking, life := d.booking, d.life
	d.s.after(wait, d.awake(func() {
		switch {
		case !d.up || d.life != life || d.booking != booking:
		case d.rounding: // it is in its push, within which another one is frozen
			d.bookRound(100 * time.Millisecond)
		default:
			d.guarded(d.round)
		}
	}))
}

// round is one turn of Reconciler.Run.
func (d *daemon) round() {
	outer := d.s.committer
	d.due, d.rounding, d.s.committer = 0, true, d
	defer func() { d.s.committer = outer }()
	if d.s.shared != nil {
		d.leading = d.s.shared.leads(d)
	}
	out, err := d.loop.Round(context.Background())
	d.rounding = false
	if d.s.shared != nil {
		d.store.Head(d.loop.Head(), d.s.shared.leads(d))
	}
	d.s.afterRound(d, out, err)
	wait := d.s.knobs.poll
	d.lastErr = err
	switch {
	case err != nil:
		d.failures++
		d.quiet = 0
		wait = min(wait, min(250*time.Millisecond<<min(d.failures-1, 7), 30*time.Second))
		d.loop.Reread()
	case out.Again:
		wait, d.quiet = 0, 0
	default:
		d.failures = 0
		if d.quiet++; len(out.Committed) > 0 {
			d.quiet = 0
		}
		if !out.Due.IsZero() {
			wait = min(wait, max(out.Due.Sub(d.now()), time.Millisecond))
		}
	}
	d.say(err, len(out.Committed))
	d.bookRound(wait)
}

// say logs a round unless it is like the one before.
func (d *daemon) say(err error, commits int) {
	text := fmt.Sprintf("%d commits", commits)
	if err != nil {
		text = err.Error()
	}
	if text != d.last || commits > 0 {
		d.s.log("%s round: %s", d.name, text)
	}
	d.last = text
}

// deliver is a provider's report reaching a daemon. What was under way to one
// that has died since went down with its connection.
func (p *provider) deliver(d *daemon, life int, m message) {
	if !d.up || d.life != life || d.deaf[p.name] {
		return
	}
	err := d.market.Report(p.name, wire.Generation{Epoch: m.epoch, N: m.n}, m.flavors, true)
	var stale *market.StaleEpochError
	switch {
	case err == nil:
		d.heard[p.name], d.made[p.name] = d.s.tl.now, m.made
		d.market.SetHonoured(p.name, m.honoured)
	case errors.As(err, &stale):
		if stale.Last.Epoch > p.epoch {
			p.epoch = stale.Last.Epoch + 1
			p.n, p.listed = 0, ""
		}
	default:
		d.s.fail("market", "%s refuses a report of %s: %v", d.name, p.name, err)
	}
	select {
	case <-d.market.Changed():
		d.wake()
	default:
	}
}
