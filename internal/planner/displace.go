package planner

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// An intent that has to have capacity and finds none may make others give way:
// those of lower priority (preemption), and those that hold what they borrowed
// of its tenant's quota (reclaiming). Nothing is taken at once:
//
//	turn      the intent's own turn finds nothing: claim picks victims, and what
//	          is free already of the place is kept for the claimant (book)
//	displace  victims get notice: status.displaced, with whom for and until when
//	          (their own grace). Until then they look for another place like
//	          contracts of a drained flavor, new first
//	leave     at that time they are released, to end as Preempted
//	held      the capacity counts as held until it is seen gone; then the
//	          claimant's turn simply finds it free
//
// A notice holds only while its claim does: every round makes the claims anew,
// from the notices that stand, and takes back what nobody needs any more.
//
// What rules out cascades and ping-pong:
//
//   - a victim's priority is strictly lower than its claimant's (or, reclaimed,
//     it holds borrowed quota and its claimant borrows none);
//   - an intent that had to give way displaces nobody until it has been served
//     again or its file changes (IntentStatus.Displaced), so that no chain is
//     longer than one;
//   - a claimant is placed where it cannot be displaced by its victim again:
//     that one's priority is lower, and what it claimed itself is not borrowed;
//   - no contract is a victim of two claims, and none of a round's own
//     placements is a victim in it.
//
// Fleet.safety.maxEnds does not count what is displaced: it guards against
// intents and providers that went away, while somebody asked for this.

// claim is what a waiting job makes others give way for.
type claim struct {
	job *job
	key string
	// victims are charged contracts, with notice or about to get it.
	victims []*v1alpha1.Contract
	causes  map[string]v1alpha1.Cause
	// left are those of its victims that are being released already.
	left []*v1alpha1.Contract
	// soon: everything it needs is being released by others anyway.
	soon bool
	// booked is free capacity that is kept for it.
	booked []booking
	// reserved: nobody gives way; it waits for what is known to end.
	reserved *reservation
}

// causeOf is why a victim of the claim gives way.
func (cl *claim) causeOf(c *v1alpha1.Contract) v1alpha1.Cause {
	if d := c.Status.Displaced; d != nil {
		return d.Cause
	}
	return cl.causes[c.Metadata.Name]
}

type booking struct {
	offer *inventory.Offer
	size  quantity.Vector
}

// shift makes an offer seem to have more free, and its peers more of what they
// share; what is held of it stays as it is.
func (r *round) shift(o *inventory.Offer, by quantity.Vector) {
	r.inventory.Lend(o.Place(), by, nil)
	r.did(func() { r.inventory.Unlend(o.Place(), by, nil) })
}

// lend makes the capacity of contracts seem free, until it is rolled back.
func (r *round) lend(list ...*v1alpha1.Contract) {
	for _, c := range list {
		o := r.offerOf(c)
		if o == nil {
			continue
		}
		size, cards := r.footprint(o, c.Metadata.Name, c), inventory.CardsOf(c)
		r.inventory.Lend(o.Place(), size, cards)
		r.did(func() { r.inventory.Unlend(o.Place(), size, cards) })
	}
}

// turn does what can be done for a job now, and else sees whether others have
// to give way.
func (r *round) turn(j *job, q request) {
	r.unbook(j)
	j.turnAt = r.turns
	keep := r.liftBelow(j)
	again := r.liftReserved(j)
	progressed := r.progressed
	r.setProgressed(false)
	r.fill(j, q)
	if len(j.tasks) > 0 {
		r.claim(j)
	}
	again()
	if len(j.tasks) > 0 {
		r.reserve(j)
		r.tellReserved(j)
	}
	keep(!r.progressed && r.claims[j] == nil)
	r.setProgressed(r.progressed || progressed)
}

// liftBelow gives back what is kept for claims of lower priority while a job
// has its turn: they come after it, in this pass as in the first. It returns
// how to keep it again, or how to leave that to their own turns. Who had to give way
// is not let in: it would take what its claimant waits for, for ever.
func (r *round) liftBelow(j *job) (keep func(again bool)) {
	if len(r.claims) == 0 || j.displaced {
		return func(bool) {}
	}
	var lifted []*claim
	for k, c := range r.claims { // in any order: sums do not tell
		if k.priority >= j.priority {
			continue
		}
		lifted = append(lifted, c)
		for _, b := range c.booked {
			r.shift(b.offer, b.size)
		}
	}
	return func(again bool) {
		for _, c := range lifted {
			if !again {
				r.setClaim(c.job, nil)
				continue
			}
			for _, b := range c.booked {
				r.shift(b.offer, b.size.Negative())
			}
		}
	}
}

// unbook gives back what was kept for a job.
func (r *round) unbook(j *job) {
	c := r.claims[j]
	if c == nil {
		return
	}
	for _, b := range c.booked {
		r.shift(b.offer, b.size)
	}
	r.setClaim(j, nil)
}

// book keeps what is free already of a claimant's places for it: else those
// that come after it, its victims among them, would take it while it waits for
// the rest.
func (r *round) book(c *claim, places []booking) {
	for _, p := range places {
		size := p.size.Clone()
		for i := range size {
			size[i] = min(size[i], max(p.offer.Free().At(i), 0))
		}
		r.shift(p.offer, size.Negative())
		c.booked = append(c.booked, booking{p.offer, size})
	}
}

func keyOf(tenant, name string) string { return tenant + "/" + name }

// notices are the contracts that have notice to give way to a job, or are being
// released for it: current versions.
func (r *round) noticesFor(j *job) (charged, leaving []*v1alpha1.Contract) {
	list := r.notices[keyOf(j.tenantName, j.name)]
	if old := r.namedBefore(j); old != "" {
		list = append(slices.Clone(list), r.notices[keyOf(j.tenantName, old)]...)
	}
	for _, c := range list {
		c = r.latest(c)
		switch {
		case c.Status.Displaced == nil || r.offerOf(c) == nil:
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			leaving = append(leaving, c)
		case c.Status.Phase.Charged() && r.causeFor(j, c) != "":
			charged = append(charged, c)
		}
	}
	return charged, leaving
}

// hasClaim reports whether others give way to a job, or have just done so.
func (r *round) hasClaim(j *job) bool {
	return slices.ContainsFunc(r.notices[keyOf(j.tenantName, j.name)], func(c *v1alpha1.Contract) bool {
		c = r.latest(c)
		return c.Status.Displaced != nil && (c.Status.Phase.Held() || c.Status.Since == r.now)
	})
}

// displace gives notice to the victims of the claims, takes back what no claim
// needs any more, and releases what had notice for long enough. It reports
// whether anything changed, and the jobs that now have something to do.
func (r *round) displace() (more []*job) {
	if r.w.Deaf || r.fleet.Suspend {
		return nil
	}
	wanted := map[string]*claim{}
	var claims []*claim
	for _, j := range r.jobs {
		if c := r.claims[j]; c != nil {
			claims = append(claims, c)
			for _, v := range c.victims {
				wanted[v.Metadata.Name] = c
			}
		}
	}
	for _, by := range sortedNames(r.notices) {
		for _, c := range r.notices[by] {
			if c = r.latest(c); c.Status.Phase.Charged() && c.Status.Displaced != nil {
				if j := r.reviewNotice(c, wanted[c.Metadata.Name]); j != nil {
					more = append(more, j)
				}
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int { return cmp.Compare(b.job.priority, a.job.priority) })
	for _, c := range claims {
		for _, v := range c.victims {
			if v = r.latest(v); v.Status.Displaced == nil && !c.job.displaced {
				more = append(more, r.notice(c, v))
			}
		}
	}
	slices.SortFunc(more, func(a, b *job) int { return compareNames(a.tenantName, a.name, b.tenantName, b.name) })
	return slices.Compact(more)
}

// reviewNotice decides what becomes of a standing notice; it returns the job
// of a contract that changed.
func (r *round) reviewNotice(c *v1alpha1.Contract, cl *claim) *job {
	d := c.Status.Displaced
	j := r.jobOf(c.Metadata.Namespace, c.Spec.Intent.Name)
	if j == nil || !slices.Contains(j.live, c) {
		return nil
	}
	if cl == nil {
		tenant, name, _ := strings.Cut(d.By, "/")
		if by := r.jobOf(tenant, name); by != nil && (by.silent || by.frozen) {
			return nil // nobody knows what its claimant wants now
		}
		next := *c
		next.Status.Displaced = nil
		if was := r.before[c.Metadata.Name]; was != nil && reflect.DeepEqual(was, &next) {
			r.replaceVictim(j, c, was) // its notice was of this round: nothing happened
			return j
		}
		r.replaceVictim(j, c, &next)
		return j
	}
	if d.Leaves.After(r.now.Time) {
		r.due(d.Leaves)
		return nil
	}
	j.leave(r, c)
	return j
}

// leave releases a contract whose notice is over, and wants its replica anew.
func (j *job) leave(r *round, c *v1alpha1.Contract) {
	code := string(c.Status.Displaced.Cause)
	j.drop(r, c, v1alpha1.PhasePreempted, code, r.gaveWay(c))
	j.tasks = slices.DeleteFunc(j.tasks, func(t task) bool { return t.old == c })
	if j.dec.Action == "" && !j.refused {
		j.addTask(task{kind: fresh, replica: c.Spec.Intent.Replica, old: c, part: c.Spec.Intent.Part, units: c.Spec.Intent.Units, of: c.Spec.Intent.Of})
	}
	j.displaced, j.displacing, j.noticed = true, true, true
	r.noteProgress()
}

// notice tells a contract that it has to give way, and returns its job. Where
// its intent asks for no grace it is released at once.
func (r *round) notice(cl *claim, c *v1alpha1.Contract) *job {
	j := r.wake(c.Metadata.Namespace, c.Spec.Intent.Name)
	next := *c
	grace := r.graceOf(c)
	next.Status.Displaced = &v1alpha1.Displacement{
		Cause: cl.causeOf(c), By: cl.key, Noticed: r.now, Leaves: v1alpha1.TimeOf(r.now.Add(grace)),
	}
	r.replaceVictim(j, c, &next)
	r.notices[cl.key] = append(r.notices[cl.key], r.w.Ledger.Contract(c.Metadata.Name))
	j.displaced, j.displacing, j.noticed = true, true, true
	if grace <= 0 {
		j.leave(r, &next)
	}
	r.due(next.Status.Displaced.Leaves)
	return j
}

// replaceVictim writes a contract's new notice, or that it has none any more,
// and what its replica needs in consequence.
func (r *round) replaceVictim(j *job, c, next *v1alpha1.Contract) {
	r.change(c, next)
	r.replace(j, c, next)
	j.tasks = slices.DeleteFunc(j.tasks, func(t task) bool { return t.old == c })
	if j.dec.Action == "" && !j.refused {
		if t := r.taskFor(j, next.Spec.Intent.Replica, next); t != nil {
			t.part, t.units, t.of = next.Spec.Intent.Part, next.Spec.Intent.Units, next.Spec.Intent.Of
			j.addTask(*t)
		}
	}
	for i := range j.dec.Contracts {
		if j.dec.Contracts[i].Name == next.Metadata.Name {
			j.dec.Contracts[i] = r.line(next, j.dec.Contracts[i].Action)
		}
	}
}

// wake is the job of an intent, made now when it was thought to need nothing.
func (r *round) wake(tenant, name string) *job {
	if j := r.jobOf(tenant, name); j != nil {
		return j
	}
	j := r.newJob(r.find(tenant, name), tenant, name)
	r.settleJob(j)
	r.jobs = append(r.jobs, j)
	r.plan.Intents = slices.DeleteFunc(r.plan.Intents, func(d *Decision) bool { return d.Tenant == tenant && d.Name == name })
	return j
}

// giveWay looks for another place for a contract that has notice; failing that
// it stays until it has to leave.
func (r *round) giveWay(j *job, q request, t task) *failure {
	d := t.old.Status.Displaced
	if d == nil {
		return nil
	}
	r.due(d.Leaves)
	if r.void(t.old) {
		return &failure{task: t, code: string(d.Cause), text: r.gaveWay(t.old)} // it is let off when all had their turns
	}
	f := r.exchange(j, q, t, 0, len(j.alternatives()), string(d.Cause), r.gaveWay(t.old))
	if f == nil {
		return nil
	}
	if d.Cause == v1alpha1.Interrupted && !d.Leaves.After(r.now.Time) {
		if slices.Contains(j.live, t.old) {
			j.drop(r, t.old, v1alpha1.PhasePreempted, string(d.Cause), r.gaveWay(t.old))
			j.noticed = true
			r.noteProgress()
		}
		return f
	}
	f.code = string(d.Cause)
	f.text = r.gaveWay(t.old)
	return f
}

// void reports whether the claimant of a notice is known, by now, not to need
// that contract's place any more: nobody moves for it then.
func (r *round) void(c *v1alpha1.Contract) bool {
	d := c.Status.Displaced
	if d.Cause == v1alpha1.Interrupted {
		return false
	}
	tenant, name, _ := strings.Cut(d.By, "/")
	by := r.jobOf(tenant, name)
	switch {
	case by == nil:
		return r.renamed[[2]string{tenant, name}] == nil // it is served as it asks, or goes by another name now
	case by.silent || by.frozen:
		return false // nobody knows what it wants now
	case by.in == nil || len(by.tasks) == 0 || r.timedOut(by):
		return true
	}
	cl := r.claims[by]
	if cl == nil {
		return by.turnAt == r.turns && r.turns > 0
	}
	return !slices.ContainsFunc(cl.victims, func(v *v1alpha1.Contract) bool { return v.Metadata.Name == c.Metadata.Name })
}

// gaveWay is why a contract has to give way, for people.
func (r *round) gaveWay(c *v1alpha1.Contract) string {
	d := c.Status.Displaced
	tenant, name, _ := strings.Cut(d.By, "/")
	switch d.Cause {
	case v1alpha1.Reclaimed:
		return "it was borrowed from quota that " + d.By + " now asks for"
	case v1alpha1.Interrupted:
		return c.Spec.Provider + " takes back the spot capacity of " + c.Spec.Flavor
	}
	if in := r.find(tenant, name); in != nil {
		return fmt.Sprintf("priority %d < %d of %s", r.standing(c), r.priorityOf(in), d.By)
	}
	return "it gives way to " + d.By
}

// shiftBooked gives back what is kept for claims (1), or keeps it again (-1).
func (r *round) shiftBooked(sign int64) {
	for _, j := range r.jobs {
		r.shiftClaim(j, sign)
	}
}

// shiftClaim is shiftBooked of one job's claim.
func (r *round) shiftClaim(j *job, sign int64) {
	c := r.claims[j]
	if c == nil {
		return
	}
	for _, b := range c.booked {
		if sign > 0 {
			r.shift(b.offer, b.size)
		} else {
			r.shift(b.offer, b.size.Negative())
		}
	}
}

// tellDisplaced says of an intent that has notice that it has. It reports
// whether there was anything to say.
func (r *round) tellDisplaced(j *job) bool {
	at := slices.IndexFunc(j.live, func(c *v1alpha1.Contract) bool { return c.Status.Displaced != nil })
	if at < 0 || slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind != leave }) {
		return false
	}
	c := j.live[at]
	action := actionOf(j.dec.Contracts)
	if action == Keep && j.noticed {
		action = Preempt
	}
	j.settle(action, v1alpha1.IntentPlaced, string(c.Status.Displaced.Cause), "%s; it leaves %s unless it finds another place before",
		r.gaveWay(c), stamp(c.Status.Displaced.Leaves))
	return true
}

// madeWay names the contracts that gave way to a job since it waits, but for
// those that its other contracts name.
func (r *round) madeWay(j *job) []string {
	list := r.notices[keyOf(j.tenantName, j.name)]
	if len(list) == 0 {
		return nil
	}
	var out []string
	for _, c := range list {
		c = r.latest(c)
		if c.Status.Displaced == nil || c.Status.Phase.Charged() || (j.state != nil && c.Status.Displaced.Noticed.Before(j.state.Status.Since.Time)) {
			continue
		}
		named := func(x *v1alpha1.Contract) bool { return slices.Contains(x.Decision.Displaced, c.Metadata.Name) }
		if !slices.ContainsFunc(j.all, named) && !slices.ContainsFunc(j.live, named) {
			out = append(out, c.Metadata.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
