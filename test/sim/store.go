package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

// shared is the market's store that the daemons of a run have in common, on objects in
// memory, with the Lease of who decides.
type shared struct {
	s       *sim
	objects storetest.Objects

	holder  *daemon
	life    int // of the holder's
	renewed time.Duration
	refusal store.Refusal // of all writes; "": of none
}

// Times of the Lease, as package daemon has them.
const leaseRuns, leaseGivenUp = 9 * time.Second, 6 * time.Second

// member is what a daemon has of the store.
type member struct {
	api     *storetest.API
	store   *store.Shared
	out     bool // the API is out of reach
	pumping bool // the watch is about to tell something
	led     bool // it decided, and knows of nobody who did since
	leading bool // it decided when its round began
}

// join makes a daemon that starts one of those that share the store.
func (sh *shared) join(d *daemon, opts *reconciler.Options) {
	d.member = member{api: sh.objects.API()}
	d.api.Fault, d.api.Refuse = sh.fault, sh.refuse
	life := d.life
	d.store = store.NewShared(store.Options{
		API: d.api, Market: d.market, Replica: d.name, Life: fmt.Sprintf("%s-%d", d.name, life),
		Now: func() time.Time { return epoch.Add(sh.s.tl.now) },
		News: func() {
			if d.up && d.life == life {
				d.loop.Reread()
				d.wake()
			}
		},
	})
	d.store.Follow(context.Background(), d.api.Follow)
	opts.Leads, opts.Elected, opts.Newest = func() bool { return sh.leads(d) }, func() bool { return true }, d.store.Newest
	sh.pump(d)
	sh.tick(d)
}

// fault fails writes, some of which were made.
func (sh *shared) fault(string) (fails, made bool) {
	s := sh.s
	if s.healed || s.rng.Float64() >= s.knobs.remoteFaults {
		return false, false
	}
	return true, s.rng.IntN(2) == 0
}

// pump books what a daemon's watch tells: late at times, and in pieces.
func (sh *shared) pump(d *daemon) {
	s := sh.s
	wait, most := span(s.rng, time.Millisecond, 300*time.Millisecond), 0
	if !s.healed {
		if s.rng.IntN(20) == 0 {
			wait = span(s.rng, time.Second, 8*time.Second)
		}
		most = s.rng.IntN(3)
	}
	d.pumping = true
	sh.later(d, wait, func() {
		d.pumping = false
		d.api.Deliver(most)
		d.noticeMarket()
	})
}

// follow books watches that have something to tell.
func (sh *shared) follow() {
	for _, d := range sh.s.daemons {
		if d.up && !d.pumping && !d.out && d.api.Behind() > 0 {
			sh.pump(d)
		}
	}
}

// later books something for this life of a daemon.
func (sh *shared) later(d *daemon, wait time.Duration, run func()) {
	life := d.life
	sh.s.after(wait, d.awake(func() {
		if d.up && d.life == life {
			d.guarded(run)
		}
	}))
}

// tick is what a replica does all the time: Heartbeats, what is judged of the store, and
// the Lease.
func (sh *shared) tick(d *daemon) {
	sh.later(d, span(sh.s.rng, 1500*time.Millisecond, 2500*time.Millisecond), func() {
		sh.tick(d)
		d.store.Look(context.Background())
		if sh.s.rng.IntN(4) == 0 {
			d.store.Tend(context.Background())
		}
		sh.stand(d)
		d.noticeMarket()
	})
}

// stand takes part in the election.
func (sh *shared) stand(d *daemon) {
	if d.out || sh.refusal == store.RefusalFull {
		return
	}
	now, holds := sh.s.tl.now, sh.holder == d && sh.life == d.life
	err := process.Fitness{
		Clock: d.clock.Err, Read: d.loop.HasRead, RemoteOut: d.loop.RemoteOut, Store: d.store,
	}.Err()
	switch {
	case holds && err != nil:
		sh.s.log("%s gives the Lease up: %v", d.name, err)
		sh.holder = nil
		d.wake()
	case holds:
		sh.renewed = now
	case sh.holder != nil && now-sh.renewed < leaseRuns:
		d.led = d.led && sh.holder == d
	case err == nil:
		sh.s.log("%s decides", d.name)
		sh.holder, sh.life, sh.renewed, d.led = d, d.life, now, true
		d.wake()
	}
}

// leads reports whether a daemon decides: it holds the Lease, or is cut off from the
// store and was the last to.
func (sh *shared) leads(d *daemon) bool {
	if sh.holder == d && sh.life == d.life && sh.s.tl.now-sh.renewed < leaseGivenUp {
		return true
	}
	return d.led && d.store.Status().Cut != ""
}

// release gives the Lease back, as who is stopped does.
func (sh *shared) release(d *daemon) {
	if sh.holder == d && !d.out {
		sh.holder = nil
	}
}

// cut keeps the store from a daemon for a while.
func (sh *shared) cut(d *daemon) {
	if d.out || !d.up {
		return
	}
	s := sh.s
	s.log("%s cannot reach the market's store", d.name)
	sh.reach(d, false)
	life := d.life
	s.after(span(s.rng, 2*time.Second, 3*time.Minute), func() {
		if d.up && d.life == life {
			sh.reach(d, true)
		}
	})
}

func (sh *shared) reach(d *daemon, reached bool) {
	if d.api == nil || d.out == !reached {
		return
	}
	d.out = !reached
	d.api.Out(!reached)
	if reached {
		sh.pump(d)
	} else {
		d.api.Deliver(0) // the watch breaks
	}
}

// noticeMarket wakes a daemon whose market has news.
func (d *daemon) noticeMarket() {
	select {
	case <-d.market.Changed():
		d.wake()
	default:
	}
}

// send reports to one of the replicas, as to one address of all of them: the same as
// before while that one takes reports.
func (p *provider) send(m message) {
	s := p.s
	if p.at == nil || !p.at.up || !s.healed && s.rng.IntN(10) == 0 {
		up := slices.DeleteFunc(slices.Clone(s.daemons), func(d *daemon) bool { return !d.up || d.deaf[p.name] })
		if p.at = nil; len(up) > 0 {
			p.at = up[s.rng.IntN(len(up))]
		}
	}
	if p.at == nil || !s.healed && s.rng.Float64() < s.knobs.lostReports {
		p.again(span(s.rng, time.Second, 5*time.Second))
		return
	}
	d := p.at
	life := d.life
	s.after(span(s.rng, time.Millisecond, 200*time.Millisecond), func() { p.put(d, life, m) })
	if s.healed || s.rng.Float64() >= s.knobs.lostReports/2 {
		return
	}
	old, other := p.sent[s.rng.IntN(len(p.sent))], s.daemons[s.rng.IntN(len(s.daemons))]
	life = other.life
	s.after(span(s.rng, time.Second, time.Minute), func() { p.put(other, life, old) })
}

// again reports once more after a while, unless that is booked.
func (p *provider) again(wait time.Duration) {
	if p.retries {
		return
	}
	p.retries = true
	p.s.after(wait, func() {
		p.retries = false
		if !p.gone {
			p.report()
		}
	})
}

// heardByAll notes that a report is in the store, which all daemons watch.
func (s *sim) heardByAll(p *provider, m message) {
	for _, o := range s.daemons {
		if o.life > 0 { // it was started once
			o.heard[p.name], o.made[p.name] = s.tl.now, m.made
		}
	}
}

// put is a report reaching a replica, with its answer.
func (p *provider) put(d *daemon, life int, m message) {
	s := p.s
	if !d.up || d.life != life || d.deaf[p.name] || d.frozen() {
		p.at = nil
		p.again(span(s.rng, 100*time.Millisecond, 2*time.Second))
		return
	}
	generation := wire.Generation{Epoch: m.epoch, N: m.n}
	r := store.Report{Cluster: p.name, Generation: generation, Certificate: "af01"}
	if p.acknowledged != generation {
		r.Content = &wire.FlavorReport{Flavors: m.flavors, Honoured: m.honoured}
	}
	var stale *market.StaleEpochError
	var busy *store.BusyError
	var cut *store.CutError
	var refused *store.RefusedError
	switch err := d.store.Report(context.Background(), r); {
	case err == nil:
		p.acknowledged = generation
		s.heardByAll(p, m)
	case errors.Is(err, market.ErrUnknownBase):
		p.acknowledged = wire.Generation{}
		p.again(span(s.rng, time.Millisecond, 100*time.Millisecond))
	case errors.As(err, &busy):
		p.again(busy.After)
	case errors.As(err, &cut):
		s.heardByAll(p, m) // perhaps: the answer alone may be lost
		p.at = nil
		p.again(span(s.rng, 2*time.Second, 5*time.Second))
	case errors.As(err, &refused) && p.s.shared.refusal != "":
		p.at = nil
		p.again(span(s.rng, 2*time.Second, 5*time.Second))
	case errors.As(err, &stale):
		if stale.Last.Epoch > p.epoch {
			p.epoch = stale.Last.Epoch + 1
			p.n, p.listed = 0, ""
			p.again(span(s.rng, time.Millisecond, 100*time.Millisecond))
		}
	default:
		s.fail("market", "%s refuses a report of %s: %v", d.name, p.name, err)
	}
	d.noticeMarket()
}
