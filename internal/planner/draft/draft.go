package draft

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Draft is the working state of one round: what it is given (Facts), what holds
// until the world changes (Base), and what it has done so far, which is taken
// back by its journal.
type Draft struct {
	journal
	Facts
	Base

	Plan     *Plan
	Accounts *account.Accounts
	// Jobs are the intents that are thought about in this round.
	Jobs       []*Job
	jobsByName map[[2]string]*Job

	// Before and Current are the contracts that change, by name.
	Before, Current map[string]*v1alpha1.Contract
	StatusOnly      map[string]bool
	// MappedNow are the remote namespaces that this round has added to those of
	// the ledger's contracts and taken away.
	MappedNow Mappings
	// Excess are contracts that a flavor can no longer hold, Cut those that a
	// budget's limit ends, Replaced those that were released in this round for others
	// in their place, Claimed the warm ones that intents have taken over.
	Excess, Cut, Replaced, Claimed map[string]bool
	// HeldBack is whose contracts do not end, because too many would at once.
	HeldBack heldBack
	// Renamed are states under names that intents had before.
	Renamed map[[2]string]*v1alpha1.IntentState
	// Notices are the contracts that had to give way, by whom for; Freed those whose
	// release this round began itself.
	Notices map[string][]*v1alpha1.Contract
	Freed   []*v1alpha1.Contract
	IsFreed map[string]bool // by name
	// Progressed: a pass over the waiting jobs changed something; Turns counts the
	// passes, from 1.
	Progressed bool
	Turns      int
}

// New is a draft in which nothing has happened.
func New(f Facts, base Base, plan *Plan) Draft {
	return Draft{
		Facts: f, Base: base, Plan: plan,
		Before: map[string]*v1alpha1.Contract{}, Current: map[string]*v1alpha1.Contract{}, StatusOnly: map[string]bool{},
		MappedNow: Mappings{}, Excess: map[string]bool{}, Cut: map[string]bool{}, Replaced: map[string]bool{}, Claimed: map[string]bool{},
		Renamed: map[[2]string]*v1alpha1.IntentState{}, Notices: map[string][]*v1alpha1.Contract{}, IsFreed: map[string]bool{},
	}
}

// journal is that of a round's working state. Whoever tries something marks
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
// nothing is written down. One goroutine uses a journal, that of its round.
type journal struct {
	Edits []func()
	open  int
}

// Mark is a place in the journal.
type Mark int

// Mark opens a mark: rollback or keep closes it.
func (d *journal) Mark() Mark {
	d.open++
	return Mark(len(d.Edits))
}

// Rollback takes back everything since a mark, the newest change first, and
// closes it.
func (d *journal) Rollback(m Mark) {
	open := d.open
	d.open = 0 // taking back is no change
	for i := len(d.Edits) - 1; i >= int(m); i-- {
		d.Edits[i]()
		d.Edits[i] = nil
	}
	d.Edits, d.open = d.Edits[:m], open-1
}

// Keep closes a mark and leaves what changed since to the marks around it.
func (d *journal) Keep(m Mark) {
	if d.open--; d.open == 0 {
		clear(d.Edits)
		d.Edits = d.Edits[:0]
	}
}

// Try keeps what f did if f returns true, and takes it back otherwise.
func (d *journal) Try(f func() bool) bool {
	m := d.Mark()
	if !f() {
		d.Rollback(m)
		return false
	}
	d.Keep(m)
	return true
}

// Did writes down how to take back what was just changed.
func (d *journal) Did(undo func()) {
	if d.open > 0 {
		d.Edits = append(d.Edits, undo)
	}
}

// Put makes a contract's new version the current one: on its tenant's account,
// on its offer, and among what the plan writes. nil is no contract.
func (r *Draft) Put(before, after *v1alpha1.Contract) {
	c := after
	if c == nil {
		c = before
	}
	name := c.Metadata.Name
	r.MappedNow.Add(r.W.Clusters, before, -1)
	r.MappedNow.Add(r.W.Clusters, after, 1)
	charged := r.Accounts.Charge(r.Entry(before), r.Entry(after), r.Now)
	was := r.versions(name)
	if _, known := r.Before[name]; !known {
		r.Before[name] = before
	}
	o := r.OfferOf(c)
	var taken inventory.Delta
	if o != nil {
		taken = inventory.Delta{
			Size: r.Footprint(o, name, after).Sub(r.Footprint(o, name, before)),
			Back: inventory.CardsOf(before), Taken: inventory.CardsOf(after),
		}
		r.Inventory.Take(o.Place(), taken)
	}
	if original := r.Before[name]; original == after {
		delete(r.Before, name)
		delete(r.Current, name)
		delete(r.StatusOnly, name)
	} else {
		r.Current[name] = after
	}
	r.Did(func() {
		r.MappedNow.Add(r.W.Clusters, after, -1)
		r.MappedNow.Add(r.W.Clusters, before, 1)
		charged.Undo()
		if o != nil {
			r.Inventory.Take(o.Place(), taken.Inverse())
		}
		was()
	})
}

// versions returns how to make what the plan writes of a contract what it is now.
func (r *Draft) versions(name string) func() {
	before, known := r.Before[name]
	current, late := r.Current[name], r.StatusOnly[name]
	return func() {
		if !known {
			delete(r.Before, name)
			delete(r.Current, name)
			delete(r.StatusOnly, name)
			return
		}
		r.Before[name], r.Current[name] = before, current
		if delete(r.StatusOnly, name); late {
			r.StatusOnly[name] = true
		}
	}
}

// Footprint is, as a Vector of its own, what a contract takes of an offer
// (inventory.Footprint). One that this round makes smaller takes what it had when the
// round began: its provider may hold that and not have reported it yet. One whose slice
// another took over takes nothing any more.
func (r *Draft) Footprint(o *inventory.Offer, name string, c *v1alpha1.Contract) quantity.Vector {
	holds := c != nil && c.Status.Phase.Held()
	if !holds && r.Claimed[name] {
		return nil
	}
	takes := r.Inventory.Footprint(o, name, c)
	if began := r.Before[name]; holds && began != nil && began != c && !o.Static && began.Status.Phase.Held() && r.By(RulesSmallerLater) {
		takes = takes.Max(inventory.Sold(r.Names, began, o.Flavor))
	}
	return takes
}

// Status puts a version of a contract that differs in its phase alone, and may
// wait for the status interval.
func (r *Draft) Status(before, after *v1alpha1.Contract) {
	_, changed := r.Before[before.Metadata.Name]
	r.Put(before, after)
	if !changed {
		r.StatusOnly[before.Metadata.Name] = true
	}
}

// Change puts a version of a contract that must be written at once.
func (r *Draft) Change(before, after *v1alpha1.Contract) {
	r.Put(before, after)
	delete(r.StatusOnly, after.Metadata.Name)
}

// RollbackButDue takes back everything since a mark but when the next round is due.
func (r *Draft) RollbackButDue(m Mark) {
	due := r.Plan.Due
	r.Rollback(m)
	r.setDue(due)
}

// setDue sets when planning again may decide otherwise.
func (r *Draft) setDue(t v1alpha1.Time) {
	was := r.Plan.Due
	r.Plan.Due = t
	r.Did(func() { r.Plan.Due = was })
}

// NoteProgress notes that this pass over the waiting jobs got somewhere.
func (r *Draft) NoteProgress() { r.SetProgressed(true) }

// SetProgressed sets whether this pass got anywhere.
func (r *Draft) SetProgressed(so bool) {
	was := r.Progressed
	r.Progressed = so
	r.Did(func() { r.Progressed = was })
}

// NoteReplaced notes that a contract's release makes way for another of its
// intent, so that it does not count against the quota twice.
func (r *Draft) NoteReplaced(c *v1alpha1.Contract) {
	name := c.Metadata.Name
	if !r.Replaced[name] {
		r.Replaced[name] = true
		r.Did(func() { delete(r.Replaced, name) })
	}
}

// Replace notes a new version of what a job holds, nil when it is held no more.
func (r *Draft) Replace(j *Job, old, now *v1alpha1.Contract) {
	live := j.Live
	held := now != nil && now.Status.Phase.Charged()
	switch i := slices.Index(live, old); {
	case i >= 0 && held:
		live[i] = now
		r.Did(func() { live[i] = old })
		return
	case i >= 0:
		j.Live = slices.Delete(slices.Clone(live), i, i+1)
	case held:
		j.Live = append(live, now)
	}
	r.Did(func() { j.Live = live })
}

// Numbered counts up the ordinal of a replica's next contract.
func (r *Draft) Numbered(j *Job, key string) int32 {
	ordinal, known := j.Ordinals[key]
	j.Ordinals[key] = ordinal + 1
	r.Did(func() {
		if j.Ordinals[key] = ordinal; !known {
			delete(j.Ordinals, key)
		}
	})
	return ordinal
}

// Decides writes down what is decided on a job, before more is.
func (r *Draft) Decides(j *Job) {
	lines, started := j.Dec.Contracts, j.Started
	r.Did(func() { j.Dec.Contracts, j.Started = lines, started })
}

// Wholly writes down all of jobs, before they change.
func (r *Draft) Wholly(jobs ...*Job) {
	for _, j := range jobs {
		was := *j
		was.Live, was.Ordinals, was.Dec.Contracts = slices.Clone(j.Live), maps.Clone(j.Ordinals), slices.Clone(j.Dec.Contracts)
		r.Did(func() { *j = was })
	}
}

// Due notes an instant at which planning again may decide otherwise.
func (r *Draft) Due(t v1alpha1.Time) {
	if t.After(r.Now.Time) {
		r.setDue(lifecycle.Earlier(r.Plan.Due, t))
	}
}

// Relief is what an offer would gain without a contract of its pool.
func (r *Draft) Relief(o *inventory.Offer, c *v1alpha1.Contract) quantity.Vector {
	at := r.OfferOf(c)
	if at == nil {
		return nil
	}
	v := r.Footprint(at, c.Metadata.Name, c)
	if at == o {
		return v
	}
	return v[:min(len(v), quantity.Storage+1)]
}
