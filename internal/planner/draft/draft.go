package draft

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Draft is the working state of one round: what it is given (Facts), what holds
// until the world changes (Base), and what it has done so far, which is taken
// back by its journal.
type Draft struct {
	journal
	Moment
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
	Strained
	// Cut are contracts that a budget's limit ends, replaced those that were released in
	// this round for others in their place, Claimed the warm ones that intents have taken
	// over.
	Cut, replaced, Claimed map[string]bool
	// HeldBack is whose contracts do not end, because too many would at once.
	HeldBack heldBack
	// Renamed are states under names that intents had before.
	Renamed map[[2]string]*v1alpha1.IntentState
	// Notices are the contracts that had to give way, by whom for; Freed those whose
	// release this round began itself.
	Notices map[string][]*v1alpha1.Contract
	Freed   []*v1alpha1.Contract
	isFreed map[string]bool // by name
	// Advances counts what got waiting jobs somewhere: a pass that leaves it as it was
	// changed nothing. Turns counts the passes, from 1.
	Advances int
	Turns    int
	ahead    *ahead
	// moreBooked is how many bookings there are more than in the ledger.
	moreBooked int
	// lent are the contracts whose capacity seems free.
	lent map[string]bool
}

// Strained are the contracts for which too little is there, by name.
type Strained struct {
	// Excess are those that their flavor, or one of their nodes, can no longer hold.
	Excess map[string]bool
	// Lacking is why one of their nodes cannot, of those whose flavor could.
	Lacking map[string]string
}

// New is a draft in which nothing has happened.
func New(f Facts, base Base, plan *Plan) Draft {
	return Draft{
		Moment: Moment{f, f.W.Now}, Base: base, Plan: plan,
		Before: map[string]*v1alpha1.Contract{}, Current: map[string]*v1alpha1.Contract{}, StatusOnly: map[string]bool{},
		MappedNow: Mappings{}, Strained: Strained{Excess: map[string]bool{}}, Cut: map[string]bool{}, replaced: map[string]bool{}, Claimed: map[string]bool{},
		Renamed: map[[2]string]*v1alpha1.IntentState{}, Notices: map[string][]*v1alpha1.Contract{}, isFreed: map[string]bool{}, lent: map[string]bool{},
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
	e := put{name: name, before: before, after: after, charged: r.Accounts.Charge(r.Entry(before), r.Entry(after), r.Now)}
	e.first, e.known = r.Before[name]
	e.current, e.wasStatusOnly = r.Current[name], r.StatusOnly[name]
	if !e.known {
		r.Before[name] = before
	}
	if e.offer = r.OfferOf(c); e.offer != nil {
		e.taken = inventory.Delta{
			Size: r.Footprint(e.offer, name, after).Sub(r.Footprint(e.offer, name, before)),
			Back: inventory.CardsOf(before), Taken: inventory.CardsOf(after),
			Off: HoldingOf(r, e.offer, name, before), On: HoldingOf(r, e.offer, name, after),
		}
		r.Inventory.Take(e.offer.Place(), e.taken)
	}
	if original := r.Before[name]; original == after {
		delete(r.Before, name)
		delete(r.Current, name)
		delete(r.StatusOnly, name)
	} else {
		r.Current[name] = after
	}
	noteAhead(r, e.offer, name, before, after, 1)
	r.moved()
	if d := &r.journal; len(d.marks) > 0 {
		d.kinds, d.puts = append(d.kinds, kindPut), append(d.puts, e)
	}
}

// unput takes a Put back.
func (r *Draft) unput(e *put) {
	r.MappedNow.Add(r.W.Clusters, e.after, -1)
	r.MappedNow.Add(r.W.Clusters, e.before, 1)
	e.charged.Undo()
	if e.offer != nil {
		r.Inventory.Take(e.offer.Place(), e.taken.Inverse())
	}
	noteAhead(r, e.offer, e.name, e.after, e.before, -1)
	if !e.known {
		delete(r.Before, e.name)
		delete(r.Current, e.name)
		delete(r.StatusOnly, e.name)
		return
	}
	r.Before[e.name], r.Current[e.name] = e.first, e.current
	if delete(r.StatusOnly, e.name); e.wasStatusOnly {
		r.StatusOnly[e.name] = true
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

// HoldingOf is what a contract has of an offer's nodes, as its Footprint is what it takes
// of the offer: one that this round makes smaller has what it had when the round began.
func HoldingOf(r *Draft, o *inventory.Offer, name string, c *v1alpha1.Contract) (h nodes.Holding) {
	holds := c != nil && c.Status.Phase.Held()
	if !o.AsksNodes() || !holds && r.Claimed[name] {
		return h
	}
	began, takes := r.Before[name], r.Footprint(o, name, c)
	shrinks := holds && began != nil && began != c && !o.Static && began.Status.Phase.Held()
	if shrinks && r.By(RulesAgainAll) {
		return r.Inventory.HoldingOfBoth(o, name, c, began, takes)
	}
	h = r.Inventory.Holding(o, name, c, takes)
	if shrinks {
		return h.Max(r.Inventory.Holding(o, name, began, inventory.Sold(r.Names, began, o.Flavor)))
	}
	return h
}

// Status puts a version of a contract that differs in its phase alone, and may
// wait for the status interval.
func (r *Draft) Status(before, after *v1alpha1.Contract) {
	_, changed := r.Before[before.Metadata.Name]
	r.Put(before, after) // which writes down StatusOnly, too
	if !changed {
		r.StatusOnly[before.Metadata.Name] = true
	}
}

// Change puts a version of a contract that must be written at once.
func (r *Draft) Change(before, after *v1alpha1.Contract) {
	r.Put(before, after)
	delete(r.StatusOnly, after.Metadata.Name)
}

// setDue sets when planning again may decide otherwise.
func (r *Draft) setDue(t v1alpha1.Time) {
	if t != r.Plan.Due {
		r.notePlan()
		r.Plan.Due = t
	}
}

// NoteProgress notes that a waiting job got somewhere.
func (r *Draft) NoteProgress() {
	r.notePlan()
	r.Advances++
}

// NoteReplaced notes that a contract's release makes way for another of its
// intent, so that it does not count against the quota twice.
func (r *Draft) NoteReplaced(c *v1alpha1.Contract) {
	if name := c.Metadata.Name; !r.replaced[name] {
		SetKey(r, r.replaced, name, true)
	}
}

// Replace notes a new version of what a job holds, nil when it is held no more.
func (r *Draft) Replace(j *Job, old, now *v1alpha1.Contract) {
	r.EditJob(j)
	held := now != nil && now.Status.Phase.Charged()
	switch i := slices.Index(j.Live, old); {
	case i >= 0 && held:
		j.Live = Own(r, j.Live)
		j.Live[i] = now
	case i >= 0:
		j.Live = slices.Delete(slices.Clone(j.Live), i, i+1)
	case held:
		j.Live = append(j.Live, now)
	}
}

// Numbered counts up the ordinal of a replica's next contract.
func (r *Draft) Numbered(j *Job, key string) int32 {
	ordinal := j.Ordinals[key]
	r.SetOrdinal(j, key, ordinal+1)
	return ordinal
}

// SetOrdinal makes n the ordinal of a replica's next contract.
func (r *Draft) SetOrdinal(j *Job, key string, n int32) {
	if d := &r.journal; len(d.marks) > 0 {
		was, known := j.Ordinals[key]
		d.kinds, d.ordinals = append(d.kinds, kindOrdinal), append(d.ordinals, ordinalWas{j.Ordinals, key, was, known})
	}
	j.Ordinals[key] = n
}

// Shift makes an offer seem to have more free, and its peers more of what they
// share; what is held of it stays as it is.
func (r *Draft) Shift(p inventory.Place, by inventory.Loan) { r.lend(loan{p, by}) }

// KeepFree makes what is free of places seem taken, and returns it.
func KeepFree(r *Draft, places []Taken) (kept []Taken) {
	for _, p := range places {
		size := p.Size.Clone()
		for i := range size {
			size[i] = min(size[i], max(p.Offer.Free().At(i), 0))
		}
		k := Taken{Place: p.Place, Size: size, On: p.Offer.Nodes().Have(p.On)}
		r.Shift(p.Place, k.Kept())
		kept = append(kept, k)
	}
	return kept
}

// Lend makes the capacity of contracts seem free.
func (r *Draft) Lend(list ...*v1alpha1.Contract) {
	for _, c := range list {
		if o := r.OfferOf(c); o != nil {
			r.lend(loan{o.Place(), inventory.Loan{Size: r.Footprint(o, c.Metadata.Name, c), Cards: inventory.CardsOf(c), On: HoldingOf(r, o, c.Metadata.Name, c)}})
			SetKey(r, r.lent, c.Metadata.Name, true)
		}
	}
}

func (r *Draft) lend(l loan) {
	r.Inventory.Lend(l.place, l.of)
	r.moved()
	if d := &r.journal; len(d.marks) > 0 {
		d.kinds, d.loans = append(d.kinds, kindLoan), append(d.loans, l)
	}
}

// Due notes an instant at which planning again may decide otherwise.
func (r *Draft) Due(t v1alpha1.Time) {
	if t.After(r.Now.Time) {
		r.setDue(lifecycle.Earlier(r.Plan.Due, t))
	}
}

// MoveTo makes another instant that as of which it is decided.
func (r *Draft) MoveTo(now v1alpha1.Time) {
	r.moved()
	Set(r, &r.Now, now)
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

// Latest is the current version of a contract.
func (r *Draft) Latest(c *v1alpha1.Contract) *v1alpha1.Contract {
	if next := r.Current[c.Metadata.Name]; next != nil {
		return next
	}
	return c
}
