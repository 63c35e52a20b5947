package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Changes that need new contracts, step by step (spec.update).
//
// Without update a change replaces all replicas in one round: each new contract
// is placed, and the old one released in the same commit. With it no more than
// maxUnavailable replicas are without a working contract meanwhile, and no more
// than that, but one at the least, are replaced at a time. With 0 the new
// contract runs next to the old one, both of them paid for and counted, until
// it works; only then the old one goes. Where a replacement could only be had of
// what the old contract itself holds, the old one goes first, if maxUnavailable
// allows it. What is changed in place (a size that fits, labels, offload) is
// changed at once: nothing is without capacity.
//
// Replicas that may be put together from parts are replaced one after the other
// too, but what they had goes as the new ones are placed.

// turn is how a replica may be replaced now.
type turn uint8

const (
	turnLater  turn = iota // others come first
	turnBeside             // the old contract stays until the new one works
	turnAtOnce             // it goes as the new one is placed
)

// works reports whether pods can use a contract.
func works(c *v1alpha1.Contract) bool {
	if c.Spec.Stage == v1alpha1.StageReserve {
		return c.Status.Phase == v1alpha1.PhaseReserved
	}
	return c.Status.Phase == v1alpha1.PhaseActive
}

// turnOf is how a replica may be replaced now: old is the contract that goes,
// nil for all of the replica's.
func (r *Placer) turnOf(j *draft.Job, replica int32, old *v1alpha1.Contract) turn {
	n, steps := j.In.Spec.Update.Steps()
	if !steps {
		return turnAtOnce
	}
	most := int(n)
	working, coming := map[int32]bool{}, map[int32]bool{}
	for _, c := range j.Live {
		k := c.Spec.Intent.Replica
		if works(c) {
			working[k] = true
		} else if c.Spec.Intent.Digest == j.In.Digest {
			coming[k] = true
		}
	}
	without := int(j.Replicas()) - len(working)
	switch {
	case !working[replica] || old != nil && !works(old) || without < most:
		return turnAtOnce
	case most == 0 && len(coming) == 0 && (j.In.Spec.Split != nil || lifecycle.Reserves(&j.In.Spec)):
		return turnAtOnce // a reservation works as it is made
	case most == 0 && len(coming) == 0:
		return turnBeside
	}
	return turnLater
}

// replaceChanged places a replica again because its intent changed, when its turn
// has come.
func (r *Placer) replaceChanged(j *draft.Job, q Request, t draft.Task, from, to int) *draft.Failure {
	switch r.turnOf(j, t.Replica, t.Old) {
	case turnLater:
		j.Later++
		return nil
	case turnBeside:
		return r.placeBeside(j, q, t, from, to)
	}
	return r.Exchange(j, q, t, from, to, lifecycle.CodeChanged, "the intent changed")
}

// placeBeside places a replica again and leaves its old contract where it is.
func (r *Placer) placeBeside(j *draft.Job, q Request, t draft.Task, from, to int) *draft.Failure {
	q.nextToOld = true
	f := r.attempts(j, q, []draft.Task{t}, t.Old, from, to)
	if f != nil {
		const stays = "; the old contract stays until the new one works (update.maxUnavailable 0)"
		f.Text, f.Tail = f.Text+stays, f.Tail+len(stays)
		return f
	}
	j.Why, j.WhyCode = "the intent changed; the old contract goes once the new one works", lifecycle.CodeChanged
	return nil
}

// Stays reports whether a contract stays though a newer one serves its replica:
// that one does not work yet, and the intent wants no gap.
func (r *Placer) Stays(j *draft.Job, c, newest *v1alpha1.Contract) bool {
	most, steps := j.In.Spec.Update.Steps()
	if !steps || most > 0 || j.In.Spec.Split != nil || newest == nil || works(newest) || !works(c) {
		return false
	}
	o := r.OfferOf(c)
	return o != nil && o.LeaveBy.IsZero() && c.Status.Displaced == nil && !r.Cut[c.Metadata.Name]
}

// goesFirst releases a contract whose replacement only it makes room for, if so
// many replicas may be without capacity, and reports whether it did.
func (r *Placer) goesFirst(j *draft.Job, t draft.Task) bool {
	o := r.OfferOf(t.Old)
	if most, _ := j.In.Spec.Update.Steps(); most == 0 || t.Of > 0 || o == nil || o.Blocked != "" || r.turnOf(j, t.Replica, t.Old) != turnAtOnce {
		return false
	}
	q := r.For(j, Request{}, 1, t.Old)
	room := o.Free().Clone().Add(r.Footprint(o, t.Old.Metadata.Name, t.Old))
	for i, alt := range j.Alternatives() {
		w := r.RequestOf(j, alt)
		if o.Provider == w.Consumer || r.Match.FailsNature(w, o) != "" || !w.Size(o).Within(room.Max(quantity.Vector{})) {
			continue
		}
		if c := r.ClassFor(j, q, i).Of(o); c == nil || c.FailsMoney != "" {
			continue
		}
		r.Drop(j, t.Old, v1alpha1.PhaseReleased, lifecycle.CodeChanged, "the intent changed; its capacity is placed anew")
		r.NoteProgress()
		return true
	}
	return false
}
