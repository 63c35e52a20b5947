package ahead

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// What looking for places of bookings may cost a round is counted in looks: for each replica
// one for each candidate, and one for each start of a booking on it. They are on the account
// of those for parts of replicas (Placer.Parts): a tenant's jobs have limits.work of them in a
// round together, but each that has its turn has at least what one search costs that finds
// its replicas at once, which package settle has charged it for. Looks are counted as if
// nothing were cached and never given back, so that each replica and a replay stop at the
// same one.

// looksFor are those of a job that books so many replicas, of which each looks at so many
// (LooksOfReplica).
func looksFor(r *place.Placer, j *draft.Job, replicas int, each int64) *looks.Looks {
	if !r.By(draft.RulesBookingsCounted) {
		return nil
	}
	spent := r.Parts[j.TenantName]
	if r.By(draft.RulesBookedWhole) {
		replicas++ // the domains that they may share are counted first
	}
	return &looks.Looks{Spent: r.Parts, Of: j.TenantName, Most: max(r.Limits.Work, spent+int64(replicas)*each), What: "the search for its term"}
}

// LooksOfReplica is what one replica that books looks at, of all the market.
func LooksOfReplica(r *place.Placer) int64 {
	n := int64(len(r.Inventory.Offers()))
	on := map[*inventory.Offer]int{}
	for _, c := range r.W.Ledger.Bookings() {
		if o := r.OfferOf(c); o != nil && on[o] < booking.MaxInstants {
			on[o]++
			n += int64(1 + len(o.PoolPeers))
		}
	}
	return n
}

// looksAt is what a replica looks at of a class.
func (x *search) looksAt(s *match.Class) int64 {
	n := int64(len(s.Candidates))
	for i := range s.Candidates {
		n += int64(len(x.views.of(s.Candidates[i].Offer).Starts()))
	}
	return n
}
