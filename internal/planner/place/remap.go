package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// remap gives the parts of a contract whose nodes cannot hold them other nodes of its offer,
// and reports whether it could. Price, term and the other parts stay.
func remap(r *Placer, j *draft.Job, c *v1alpha1.Contract) bool {
	o := r.OfferOf(c)
	on, gpus := layout.Remapped(&r.Draft, o, c, keptNodes(r, j, c, o))
	if on == nil {
		return false
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
	return true
}
