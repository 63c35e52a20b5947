package explain

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/contend"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// When an intent that waits will be served is estimated by replaying what is
// known to end: terms (windows, durations, deadlines), notices, releases under
// way, and the turn of the month for monthly budgets. At each such instant
// those that wait are tried in the order of their turns, and what fits is taken
// out of what is left. Nothing else is foreseen: no new intent, no new offer, no
// end that nobody has announced. An intent for which no instant is found gets
// none: then it is unknown.

// Bounds of the replay: people look at the head of a queue.
const (
	estimatedJobs  = 16
	estimatedTimes = 128
	// for reservations; beyond, the estimate goes without them
	estimatedSearches = 64
)

// Estimate finds for those that wait when they are expected to be served.
func (r *Explainer) Estimate() {
	var jobs []*draft.Job
	for _, j := range r.Waiting {
		if j.Dec.Action == draft.Queued && len(j.Open) > 0 && len(jobs) < estimatedJobs {
			jobs = append(jobs, j)
			r.EditJob(j)
			j.Dec.Estimated = true
		}
	}
	if len(jobs) == 0 {
		return
	}
	p := &replay{Explainer: r, jobs: jobs, searchesLeft: estimatedSearches}
	r.Try(func() bool {
		p.run()
		return false
	})
	for _, x := range p.found {
		j := x.job
		r.EditJob(j)
		j.Dec.Expected = x.at
		j.Text = Joined(j.Text, x.when)
		j.Dec.Reason = Joined(j.Dec.Reason, x.when)
	}
}

// run replays the future, until nobody waits any more or nothing more is known.
func (p *replay) run() {
	r := p.Explainer
	r.Did(r.Match.Imagine()) // the time at which prices hold, and what is derived at it
	p.list = r.Endings()
	for _, c := range r.Claims {
		p.reserving = p.reserving || c.Reserved != nil
	}
	for times := 0; len(p.list) > 0 && len(p.jobs) > 0 && times < estimatedTimes; times++ {
		n := 1
		for n < len(p.list) && p.list[n].At == p.list[0].At {
			n++
		}
		now := slices.Clone(p.list[:n])
		p.list = p.list[n:]
		p.step(now)
	}
}

// replay is the future as far as it is known.
type replay struct {
	*Explainer
	jobs []*draft.Job
	list []contend.Ending // that is still to come
	// reserving: something is kept for those that wait longest.
	reserving    bool
	searchesLeft int
	// found are the jobs that will be served, with when.
	found []foreseen
}

// foreseen is when a job will be served, and the same in words.
type foreseen struct {
	job  *draft.Job
	at   v1alpha1.Time
	when string
}

// step makes an instant of the future the present.
func (p *replay) step(now []contend.Ending) {
	p.MoveTo(now[0].At)
	p.Match.SetNow(p.Now)
	freed, owners := map[*inventory.Offer]bool{}, map[*account.Tenant]bool{}
	for i := range now {
		e := &now[i]
		if e.Month {
			for _, j := range p.jobs {
				if j.Tenant.LimitedMonthly() && !owners[j.Tenant] {
					p.turnMonth(j.Tenant)
					owners[j.Tenant] = true
				}
			}
			continue
		}
		o := p.OfferOf(e.Contract)
		p.Lend(e.Contract)
		freed[o] = true
		for _, m := range o.PoolPeers {
			freed[m] = true
		}
		if x := p.Entry(e.Contract); x.Leaving || e.Contract.Status.Phase.Charged() {
			p.Booked(p.Accounts.Expire(x, p.Now))
			owners[p.Accounts.Of(e.Contract.Metadata.Namespace)] = true
		}
	}
	if !p.reserving {
		p.jobs = slices.DeleteFunc(p.jobs, func(j *draft.Job) bool { return p.concerns(j, freed, owners) && p.tryJob(j, now) })
		return
	}
	// What ends may change for whom something is kept, and that concerns all.
	p.DropReservations()
	p.jobs = slices.DeleteFunc(p.jobs, func(j *draft.Job) bool {
		if p.tryJob(j, now) {
			return true
		}
		if before := p.Searched; p.searchesLeft > 0 && p.MayReserve(j) {
			p.Reserve(j, p.list)
			p.searchesLeft -= p.Searched - before
		}
		return false
	})
}

// concerns reports whether anything that ends may matter to a job.
func (p *replay) concerns(j *draft.Job, freed map[*inventory.Offer]bool, owners map[*account.Tenant]bool) bool {
	if owners[j.Tenant] {
		return true
	}
	p.Match.Trim()
	for alt := range j.Alternatives() {
		s := p.ClassOf(j, alt)
		for o := range freed {
			if s.Of(o) != nil {
				return true
			}
		}
	}
	return false
}

// turnMonth begins a new month of a tenant's account: what it will still hold then is
// what its contracts cost in the new month.
func (p *replay) turnMonth(t *account.Tenant) {
	_, end := p.Books.MonthBounds(p.Now)
	held := quantity.Micro(0)
	for _, c := range p.Charged.Of(t.Name) {
		if c = p.Latest(c); c.Status.Phase.Charged() && (c.Spec.Term.End.IsZero() || c.Spec.Term.End.After(p.Now.Time)) {
			held += p.InFleet(p.Books.HoldUntil(c.Spec.Price, p.Now, c.Spec.Term.End, end), c.Spec.Price.Currency)
		}
	}
	p.Booked(t.TurnMonth(held))
}

// tryJob places a job as of now, and reports whether it need not be looked at
// again.
func (p *replay) tryJob(j *draft.Job, now []contend.Ending) bool {
	p.Match.Trim()
	if !j.Dec.GivesUp.IsZero() && !j.Dec.GivesUp.After(p.Now.Time) {
		return true
	}
	started := j.Started
	if started.IsZero() {
		started = p.Now
	}
	life := p.LifeEnd(j, started)
	if life.Refused != "" || life.Ends(p.Now) {
		return true
	}
	open, until, _ := lifecycle.OpenAt(p.Books, j.In.Spec.Schedule.Windows, p.Now)
	if !open {
		return false // at its next window's opening this may be otherwise; nobody knows
	}
	k := p.CopyOf(j)
	if k.End = lifecycle.Earlier(life.End, until); !k.End.IsZero() {
		k.Seconds = int64(k.End.Sub(p.Now.Time).Seconds())
	}
	before := len(k.Tasks)
	placed := p.Try(func() bool {
		p.Unbook(j)
		p.Without(p.ReservedBeyond(k), func() { p.Fill(k, place.Request{MayBorrow: true, DryRun: true, Unasked: true}) })
		return len(k.Tasks) < before && (len(k.Tasks) == 0 || !j.Gang())
	})
	if !placed {
		return false
	}
	p.foresee(j, k)
	when, end := "expected "+draft.Stamp(p.Now), p.endFor(k, now)
	if p.Now == p.Plan.Now {
		when = "expected as soon as " + end.Text()
	} else {
		when += ", when " + end.Text()
	}
	p.found = append(p.found, foreseen{j, p.Now, when})
	return true
}

// endFor is which of what ends at one instant a job waited for: the last that makes room where
// it was placed, and else the last.
func (p *replay) endFor(j *draft.Job, now []contend.Ending) *contend.Ending {
	last := &now[len(now)-1]
	if !p.By(draft.RulesEndNamed) {
		return last
	}
	for i := range slices.Backward(now) {
		e := &now[i]
		if !e.Month && slices.ContainsFunc(j.Live, func(c *v1alpha1.Contract) bool { o := p.OfferOf(c); return o != nil && e.GivesTo(o) }) {
			return e
		}
	}
	return last
}

// foresee notes when what was just placed will end in turn.
func (p *replay) foresee(j, k *draft.Job) {
	for _, c := range k.Live {
		e := contend.Ending{At: c.Spec.Term.End, Contract: c, Offer: p.OfferOf(c)}
		if slices.Contains(j.Live, c) || e.At.IsZero() || p.OfferOf(c) == nil {
			continue
		}
		at, _ := slices.BinarySearchFunc(p.list, e, contend.EndsBefore)
		p.list = slices.Insert(p.list, at, e)
	}
}
