package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// failOver places a replica elsewhere because its provider does not serve it.
// Where nodes are the cause and its offer has others for those parts, they alone go there.
// For each alternative in order the runners-up of its contract are tried first,
// those that still fit, then all offers. The old contract is Releasing from
// then on and keeps its capacity until it is seen gone. Where nothing fits it
// stays, Degraded, and waits for its provider or for an offer. A task to adapt is that
// alone; one of which other nodes were found is such a task from then on.
func (r *Placer) failOver(j *draft.Job, q Request, of *draft.Task) *draft.Failure {
	t := *of
	switch t.Kind {
	case draft.TaskAdapt:
		return r.adapt(j, q, t)
	case draft.TaskFollow:
		return r.Exchange(j, q, t, 0, len(q.alternatives(j)), lifecycle.CodeWithin, followText)
	}
	code, text := draft.Trouble(&r.Draft, t.Old)
	if next := remap(r, j, t.Old, code); next != nil {
		return adaptRemapped(r, j, q, of, next)
	}
	next := draft.RunnersUp(&r.Draft, t.Old)
	var first *draft.Failure
	for alt := range q.alternatives(j) {
		for _, o := range next {
			here := q
			here.Only = o
			if f := r.Exchange(j, here, t, alt, alt+1, code, text); f == nil {
				j.Why = text + "; its runner-up " + o.Ref + " took over"
				return nil
			}
		}
		f := r.Exchange(j, q, t, alt, alt+1, code, text)
		if f == nil {
			return nil
		}
		if first == nil {
			first = f
		}
	}
	first.Code = code
	first.Text = text + "; it is kept and waits, because nothing else fits; " + first.Text
	return first
}

// giveWay looks for another place for a contract that has notice; failing that
// it stays until it has to leave.
func (r *Placer) giveWay(j *draft.Job, q Request, t draft.Task) *draft.Failure {
	d := t.Old.Status.Displaced
	if d == nil {
		return nil
	}
	r.Due(d.Leaves)
	if r.Void(t.Old) {
		return &draft.Failure{Task: t, Code: string(d.Cause), Text: r.GaveWay(t.Old)} // it is let off when all had their turns
	}
	f := r.Exchange(j, q, t, 0, len(q.alternatives(j)), string(d.Cause), r.GaveWay(t.Old))
	if f == nil {
		return nil
	}
	if d.Cause == v1alpha1.Interrupted && !d.Leaves.After(r.Now.Time) {
		if slices.Contains(j.Live, t.Old) {
			r.Drop(j, t.Old, v1alpha1.PhasePreempted, string(d.Cause), r.GaveWay(t.Old))
			j.Noticed = true
			r.NoteProgress()
		}
		return f
	}
	f.Code = string(d.Cause)
	f.Text, f.Counts, f.Tail = r.GaveWay(t.Old), 0, 0
	return f
}

// followText is why a replica is placed again next to the others of its gang.
const followText = "its gang moves whole: where it was, another replica has no place any more"

// failing are the reasons of Degraded contracts that fail over.
var failing = []string{ledger.DegradedShrunk, ledger.DegradedNode, ledger.DegradedSliceDenied, ledger.DegradedRefused}

// whyElsewhere is why a contract of a gang that goes elsewhere whole is given up: for what
// befell it, or for the others' sake.
func (r *Placer) whyElsewhere(c *v1alpha1.Contract) (code, text string) {
	o := r.OfferOf(c)
	switch {
	case c.Status.Displaced != nil:
		return string(c.Status.Displaced.Cause), r.GaveWay(c)
	case o != nil && o.State == model.Lost, r.Late(c), slices.Contains(failing, c.Status.Reason):
		return draft.Trouble(&r.Draft, c)
	case o != nil && !o.LeaveBy.IsZero():
		return lifecycle.CodeDrain, c.Spec.Provider + "/" + c.Spec.Flavor + " is being emptied"
	}
	return lifecycle.CodeWithin, followText
}
