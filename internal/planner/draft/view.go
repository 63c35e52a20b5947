package draft

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// viewOf is what the round knows of a contract next to the ledger.
func (r *Draft) viewOf(c *v1alpha1.Contract) lifecycle.View {
	v := lifecycle.View{
		Now: r.Now, Observed: r.W.Observed.Of(c.Metadata.Name), Grace: r.Grace(), Deaf: r.W.Deaf,
		KeepsSilence: r.By(RulesSilentUntilHeard), Excess: r.Excess[c.Metadata.Name], Lacking: r.Lacking[c.Metadata.Name], ByNode: r.By(RulesRemapped),
		Cluster: r.W.Clusters[c.Spec.Provider],
	}
	if o := r.OfferOf(c); o != nil {
		v.Offer = o.Offer
	}
	if r.W.ForceRelease[c.Metadata.Name] {
		v.Forced = ledger.Reason{Code: lifecycle.CodeForced, Message: "ended by an operator without being seen gone"}
	}
	return v
}

// seenGone reports whether nothing is left of a contract on either side.
func (r *Draft) seenGone(c *v1alpha1.Contract) bool {
	v := r.viewOf(c)
	return lifecycle.SeenGone(c, &v)
}

// Differs reports whether a contract is to be made what its intent asks for now.
func Differs(r *Draft, j *Job, c *v1alpha1.Contract) bool {
	in, end := &c.Spec.Intent, c.Spec.Term.End
	return in.Digest != j.In.Digest || c.Spec.Consumer != j.Consumer || in.Path != j.In.Path || in.Name != j.Name || (!end.IsZero() && !end.After(r.Now.Time))
}

// RunnersUp are the offers that a contract's decision names as next best, as
// far as they are still in the market.
func RunnersUp(r *Draft, c *v1alpha1.Contract) []*inventory.Offer {
	var out []*inventory.Offer
	for i := range c.Decision.RunnersUp {
		provider, name, _ := strings.Cut(c.Decision.RunnersUp[i].Flavor, "/")
		if o := r.Inventory.Find(provider, name); o != nil {
			out = append(out, o)
		}
	}
	return out
}
