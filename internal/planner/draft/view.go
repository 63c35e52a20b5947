package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
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
