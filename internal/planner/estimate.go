package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
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

// ending is something that is known to end: a contract, or the month.
type ending struct {
	at       v1alpha1.Time
	contract *v1alpha1.Contract
	offer    *inventory.Offer // the contract's
	// reserved is a reservation whose intent will have ended by then.
	reserved *claim
	month    bool
}

// text is what ends, for people.
func (e *ending) text() string {
	switch {
	case e.month:
		return "the month turns"
	case e.contract.Status.Phase == v1alpha1.PhaseReleasing:
		return "what is being released is seen gone"
	case e.contract.Status.Displaced != nil:
		return keyOf(e.contract.Metadata.Namespace, e.contract.Spec.Intent.Name) + " gives way"
	}
	return keyOf(e.contract.Metadata.Namespace, e.contract.Spec.Intent.Name) + " ends"
}

// endings are what is known to end, in order.
func (r *round) endings() []ending {
	var out []ending
	add := func(c *v1alpha1.Contract) {
		end, o := c.Spec.Term.End, r.offerOf(c)
		switch {
		case o == nil || !c.Status.Phase.Held():
			return
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			end = r.now
		case c.Status.Displaced != nil:
			end = lifecycle.Earlier(end, c.Status.Displaced.Leaves)
		}
		if !end.IsZero() {
			if end.Before(r.now.Time) {
				end = r.now
			}
			out = append(out, ending{at: end, contract: c, offer: o})
		}
	}
	for _, list := range [...]map[string]*v1alpha1.Contract{r.ending, r.releasing} {
		for name, c := range list {
			if _, changed := r.current[name]; !changed {
				add(c)
			}
		}
	}
	for _, c := range r.current {
		if c != nil {
			add(c)
		}
	}
	for at, n := r.now, 0; n < 2; n++ {
		_, end := r.books.MonthBounds(at)
		out = append(out, ending{at: end, month: true})
		at = end
	}
	slices.SortFunc(out, endsBefore)
	return out
}

// endsBefore is the order of endings: by time, then by name.
func endsBefore(a, b ending) int {
	name := func(e ending) string {
		switch {
		case e.reserved != nil:
			return e.reserved.key
		case e.contract == nil:
			return ""
		}
		return e.contract.Metadata.Name
	}
	return cmp.Or(a.at.Compare(b.at.Time), cmp.Compare(name(a), name(b)))
}

// estimate says of those that wait when they are expected to be served.
func (r *round) estimate() {
	var jobs []*job
	for _, j := range r.waiting {
		if j.dec.Action == Queued && len(j.open) > 0 && len(jobs) < estimatedJobs {
			jobs = append(jobs, j)
			j.dec.Estimated = true
		}
	}
	if len(jobs) == 0 {
		return
	}
	m := r.mark()
	defer r.rollback(m)
	r.future()
	p := &replay{round: r, jobs: jobs, list: r.endings(), searchesLeft: estimatedSearches}
	for _, c := range r.claims {
		p.reserving = p.reserving || c.reserved != nil
	}
	for times := 0; len(p.list) > 0 && len(p.jobs) > 0 && times < estimatedTimes; times++ {
		n := 1
		for n < len(p.list) && p.list[n].at == p.list[0].at {
			n++
		}
		now := slices.Clone(p.list[:n])
		p.list = p.list[n:]
		p.step(now)
	}
}

// replay is the future as far as it is known.
type replay struct {
	*round
	jobs []*job
	list []ending // that is still to come
	// reserving: something is kept for those that wait longest.
	reserving    bool
	searchesLeft int
}

// future writes down what only a replay changes: the time, and what was derived
// at it.
func (r *round) future() {
	now, back := r.now, r.match.Imagine()
	r.did(func() {
		r.now = now
		back()
	})
}

// step makes an instant of the future the present.
func (p *replay) step(now []ending) {
	p.now = now[0].at
	p.match.SetNow(p.now)
	freed, owners := map[*inventory.Offer]bool{}, map[*account.Tenant]bool{}
	for i := range now {
		e := &now[i]
		if e.month {
			for _, j := range p.jobs {
				if j.tenant.LimitedMonthly() && !owners[j.tenant] {
					p.turnMonth(j.tenant)
					owners[j.tenant] = true
				}
			}
			continue
		}
		o := p.offerOf(e.contract)
		p.lend(e.contract)
		freed[o] = true
		for _, m := range o.PoolPeers {
			freed[m] = true
		}
		if x := p.entry(e.contract); x.Leaving || e.contract.Status.Phase.Charged() {
			p.booked(p.accounts.Expire(x, p.now))
			owners[p.accounts.Of(e.contract.Metadata.Namespace)] = true
		}
	}
	if !p.reserving {
		p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool { return p.concerns(j, freed, owners) && p.try(j, now) })
		return
	}
	// What ends may change for whom something is kept, and that concerns all.
	p.dropReservations()
	p.known()
	p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool {
		if p.try(j, now) {
			return true
		}
		if before := p.searched; p.searchesLeft > 0 {
			p.reserve(j)
			p.searchesLeft -= p.searched - before
		}
		return false
	})
}

// known makes what is still to end what reservations go by.
func (p *replay) known() {
	p.ends, p.endsAt = slices.DeleteFunc(slices.Clone(p.list), func(e ending) bool { return e.month }), p.turns
	p.setProgressed(false)
}

// concerns reports whether anything that ends may matter to a job.
func (p *replay) concerns(j *job, freed map[*inventory.Offer]bool, owners map[*account.Tenant]bool) bool {
	if owners[j.tenant] {
		return true
	}
	for alt := range j.alternatives() {
		s := p.shapeOf(j, alt)
		for o := range freed {
			if s.Of(o) != nil {
				return true
			}
		}
	}
	return false
}

// turnMonth begins a tenant's account anew: what it will still hold then is
// what its contracts cost in the new month.
func (p *replay) turnMonth(t *account.Tenant) {
	_, end := p.books.MonthBounds(p.now)
	held := quantity.Micro(0)
	for _, c := range p.charged.Of(t.Name) {
		if c = p.latest(c); c.Status.Phase.Charged() && (c.Spec.Term.End.IsZero() || c.Spec.Term.End.After(p.now.Time)) {
			held += p.inFleet(p.books.HoldUntil(c.Spec.Price, p.now, c.Spec.Term.End, end), c.Spec.Price.Currency)
		}
	}
	p.booked(t.TurnMonth(held))
}

// try places a job as of now, and reports whether it need not be looked at
// again.
func (p *replay) try(j *job, now []ending) bool {
	if !j.dec.GivesUp.IsZero() && !j.dec.GivesUp.After(p.now.Time) {
		return true
	}
	started := j.started
	if started.IsZero() {
		started = p.now
	}
	life := p.lifeEnd(j, started)
	if life.Refused != "" || life.Ends(p.now) {
		return true
	}
	open, until, _ := lifecycle.OpenAt(p.books, j.in.Spec.Schedule.Windows, p.now)
	if !open {
		return false // at its next window's opening this may be otherwise; nobody knows
	}
	k := p.understudy(j)
	if k.end = lifecycle.Earlier(life.End, until); !k.end.IsZero() {
		k.seconds = int64(k.end.Sub(p.now.Time).Seconds())
	}
	booked := p.claims[j]
	p.unbook(j)
	again := p.liftReserved(k)
	before := len(k.tasks)
	p.fill(k, request{mayBorrow: true, dryRun: true, unasked: true})
	again()
	if len(k.tasks) < before {
		p.expect(j, k)
	}
	if len(k.tasks) == before || (j.gang() && len(k.tasks) > 0) {
		if booked != nil {
			for _, b := range booked.booked {
				p.shift(b.offer, b.size.Negative())
			}
			p.setClaim(j, booked)
		}
		return false
	}
	if p.reserving {
		p.known()
	}
	j.dec.Expected = p.now
	when := "expected " + stamp(p.now)
	if p.now == p.plan.Now {
		when = "expected as soon as " + now[len(now)-1].text()
	} else {
		when += ", when " + now[len(now)-1].text()
	}
	j.text = joined(j.text, when)
	j.dec.Reason = joined(j.dec.Reason, when)
	return true
}

// expect notes when what was just placed will end in turn.
func (p *replay) expect(j, k *job) {
	for _, c := range k.live {
		e := ending{at: c.Spec.Term.End, contract: c, offer: p.offerOf(c)}
		if slices.Contains(j.live, c) || e.at.IsZero() || p.offerOf(c) == nil {
			continue
		}
		at, _ := slices.BinarySearchFunc(p.list, e, endsBefore)
		p.list = slices.Insert(p.list, at, e)
	}
}
