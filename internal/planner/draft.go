package planner

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// draft is the journal of a round's working state. Whoever tries something marks
// the journal first; everything that is changed from then on writes down how it
// is taken back, so that rolling back to the mark forgets nothing: what offers
// have free and hold, what is on tenants' accounts, the contracts that change,
// what jobs hold, warm contracts that are claimed, when the next round is due and
// whether this pass got anywhere. What was looked at (work.go) is spent and not
// given back; that offers and accounts were touched is remembered, so that what
// was derived from them in between is derived again.
//
// Marks nest: the newest is rolled back or kept first, and none outlives its
// round. Rolling back takes as long as the changes since. While no mark is open
// nothing is written down. One goroutine uses a draft, that of its round.
type draft struct {
	edits []func()
	open  int
}

// mark is a place in the journal.
type mark int

// mark opens a mark: rollback or keep closes it.
func (d *draft) mark() mark {
	d.open++
	return mark(len(d.edits))
}

// rollback takes back everything since a mark, the newest change first, and
// closes it.
func (d *draft) rollback(m mark) {
	open := d.open
	d.open = 0 // taking back is no change
	for i := len(d.edits) - 1; i >= int(m); i-- {
		d.edits[i]()
		d.edits[i] = nil
	}
	d.edits, d.open = d.edits[:m], open-1
}

// keep closes a mark and leaves what changed since to the marks around it.
func (d *draft) keep(m mark) {
	if d.open--; d.open == 0 {
		clear(d.edits)
		d.edits = d.edits[:0]
	}
}

// try keeps what f did if f says so, and else takes it back.
func (d *draft) try(f func() bool) bool {
	m := d.mark()
	if !f() {
		d.rollback(m)
		return false
	}
	d.keep(m)
	return true
}

// did writes down how to take back what was just changed.
func (d *draft) did(undo func()) {
	if d.open > 0 {
		d.edits = append(d.edits, undo)
	}
}

// put makes a contract's new version the current one: on its tenant's account,
// on its offer, and among what the plan writes. nil is no contract.
func (r *round) put(before, after *v1alpha1.Contract) {
	c := after
	if c == nil {
		c = before
	}
	name := c.Metadata.Name
	r.mappedNow.add(r.w.Clusters, before, -1)
	r.mappedNow.add(r.w.Clusters, after, 1)
	charged := r.accounts.Charge(r.entry(before), r.entry(after), r.now)
	was := r.versions(name)
	if _, known := r.before[name]; !known {
		r.before[name] = before
	}
	o := r.offerOf(c)
	var taken inventory.Delta
	if o != nil {
		taken = inventory.Delta{
			Size: r.footprint(o, name, after).Sub(r.footprint(o, name, before)),
			Back: inventory.CardsOf(before), Taken: inventory.CardsOf(after),
		}
		r.inventory.Take(o.Place(), taken)
	}
	if original := r.before[name]; original == after {
		delete(r.before, name)
		delete(r.current, name)
		delete(r.statusOnly, name)
	} else {
		r.current[name] = after
	}
	r.did(func() {
		r.mappedNow.add(r.w.Clusters, after, -1)
		r.mappedNow.add(r.w.Clusters, before, 1)
		charged.Undo()
		if o != nil {
			r.inventory.Take(o.Place(), taken.Inverse())
		}
		was()
	})
}

// versions returns how to make what the plan writes of a contract what it is now.
func (r *round) versions(name string) func() {
	before, known := r.before[name]
	current, late := r.current[name], r.statusOnly[name]
	return func() {
		if !known {
			delete(r.before, name)
			delete(r.current, name)
			delete(r.statusOnly, name)
			return
		}
		r.before[name], r.current[name] = before, current
		if delete(r.statusOnly, name); late {
			r.statusOnly[name] = true
		}
	}
}

// footprint is, as a Vector of its own, what a contract takes of an offer
// (inventory.Footprint). One that this round makes smaller takes what it had when the
// round began: its provider may hold that and not have said so yet. One whose slice
// another took over takes nothing any more.
func (r *round) footprint(o *inventory.Offer, name string, c *v1alpha1.Contract) quantity.Vector {
	holds := c != nil && c.Status.Phase.Held()
	if !holds && r.claimed[name] {
		return nil
	}
	takes := r.inventory.Footprint(o, name, c)
	if began := r.before[name]; holds && began != nil && began != c && !o.Static && began.Status.Phase.Held() && r.by(rulesSmallerLater) {
		takes = takes.Max(inventory.Sold(r.names, began, o.Flavor))
	}
	return takes
}

// status puts a version of a contract that differs in its phase alone, and may
// wait for the status interval.
func (r *round) status(before, after *v1alpha1.Contract) {
	_, changed := r.before[before.Metadata.Name]
	r.put(before, after)
	if !changed {
		r.statusOnly[before.Metadata.Name] = true
	}
}

// change puts a version of a contract that must be written at once.
func (r *round) change(before, after *v1alpha1.Contract) {
	r.put(before, after)
	delete(r.statusOnly, after.Metadata.Name)
}

// booked writes down a change of accounts.
func (r *round) booked(ch account.Change) {
	r.did(ch.Undo)
}

// offAccount takes a contract that is about to be replaced off its tenant's
// account; its capacity stays held. onAccount puts it back.
func (r *round) offAccount(c *v1alpha1.Contract) {
	r.booked(r.accounts.Charge(account.Entry{Contract: c}, account.Entry{}, r.now))
}

func (r *round) onAccount(c *v1alpha1.Contract) {
	r.booked(r.accounts.Charge(account.Entry{}, account.Entry{Contract: c}, r.now))
}

// rollbackButDue takes back everything since a mark but when the next round is due.
func (r *round) rollbackButDue(m mark) {
	due := r.plan.Due
	r.rollback(m)
	r.setDue(due)
}

// setDue sets when planning again may decide otherwise.
func (r *round) setDue(t v1alpha1.Time) {
	was := r.plan.Due
	r.plan.Due = t
	r.did(func() { r.plan.Due = was })
}

// noteProgress notes that this pass over the waiting jobs got somewhere.
func (r *round) noteProgress() { r.setProgressed(true) }

func (r *round) setProgressed(so bool) {
	was := r.progressed
	r.progressed = so
	r.did(func() { r.progressed = was })
}

// noteReplaced notes that a contract's release makes way for another of its
// intent, so that it does not count against the quota twice.
func (r *round) noteReplaced(c *v1alpha1.Contract) {
	name := c.Metadata.Name
	if !r.replaced[name] {
		r.replaced[name] = true
		r.did(func() { delete(r.replaced, name) })
	}
}

// replace notes a new version of what a job holds, nil when it is held no more.
func (r *round) replace(j *job, old, now *v1alpha1.Contract) {
	live := j.live
	held := now != nil && now.Status.Phase.Charged()
	switch i := slices.Index(live, old); {
	case i >= 0 && held:
		live[i] = now
		r.did(func() { live[i] = old })
		return
	case i >= 0:
		j.live = slices.Delete(slices.Clone(live), i, i+1)
	case held:
		j.live = append(live, now)
	}
	r.did(func() { j.live = live })
}

// numbered counts up the ordinal of a replica's next contract.
func (r *round) numbered(j *job, key string) int32 {
	ordinal, known := j.ordinals[key]
	j.ordinals[key] = ordinal + 1
	r.did(func() {
		if j.ordinals[key] = ordinal; !known {
			delete(j.ordinals, key)
		}
	})
	return ordinal
}

// decides writes down what is decided on a job, before more is.
func (r *round) decides(j *job) {
	lines, started := j.dec.Contracts, j.started
	r.did(func() { j.dec.Contracts, j.started = lines, started })
}

// wholly writes down all of jobs, before they change.
func (r *round) wholly(jobs ...*job) {
	for _, j := range jobs {
		was := *j
		was.live, was.ordinals, was.dec.Contracts = slices.Clone(j.live), maps.Clone(j.ordinals), slices.Clone(j.dec.Contracts)
		r.did(func() { *j = was })
	}
}

// setClaim makes a claim that of a job; nil: it has none.
func (r *round) setClaim(j *job, c *claim) {
	was, had := r.claims[j]
	if c == nil {
		delete(r.claims, j)
	} else {
		r.claims[j] = c
	}
	r.did(func() {
		if delete(r.claims, j); had {
			r.claims[j] = was
		}
	})
}
