package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// remap gives the parts of a contract whose nodes cannot hold them other nodes of its offer:
// it is what it becomes, nil where it could not, or that would be no help, because it is in
// trouble of another kind, too. Price, term and the other parts stay.
func remap(r *Placer, j *draft.Job, c *v1alpha1.Contract, trouble string) *v1alpha1.Contract {
	o := r.OfferOf(c)
	denied := r.W.Observed.Of(c.Metadata.Name).Consumer.SliceDenied != ""
	if (denied || trouble == lifecycle.CodeSliceDenied || trouble == lifecycle.CodeSLA) && r.By(draft.RulesAgainAll) {
		return nil
	}
	on, gpus := layout.Remapped(&r.Draft, o, c, keptNodes(r, j, c, o))
	if on == nil {
		return nil
	}
	figures, next := inPlace{r, j, Request{}, c, o}.figures(), r.Books.Settle(c, r.Now)
	next.Spec.Nodes, next.Spec.GPUs = on, gpus
	next.Decision.Market, next.Decision.Offer, next.Decision.Rules = r.W.Market, figures, r.RulesRecorded()
	next.Decision.Offer.Nodes = layout.Figures(o, on)
	r.Change(c, next)
	next = r.Observe(next)
	r.Replace(j, c, next)
	r.NoteProgress()
	j.Why, j.WhyCode = "one of its nodes cannot hold its part, and another can", lifecycle.CodeRemapped
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(next, draft.Resize))
	return next
}

// adaptRemapped makes a contract that has just gone to other nodes what its intent asks for
// now, where that changed, too: the next round would.
func adaptRemapped(r *Placer, j *draft.Job, q Request, t *draft.Task, c *v1alpha1.Contract) *draft.Failure {
	if !r.By(draft.RulesAgainAll) || !draft.Differs(&r.Draft, j, c) {
		return nil
	}
	t.Kind, t.Old = draft.TaskAdapt, c
	lines := j.Dec.Contracts
	j.Dec.Contracts = slices.Clip(lines[:len(lines)-1])
	f := r.adapt(j, q, *t)
	if f != nil {
		j.Dec.Contracts = lines
	}
	return f
}
