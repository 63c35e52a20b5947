package ahead

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
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

const unlookedText = "the work of this round is used up (spec.limits.work of the fleet): what is left of the search for its term has its turn in one of the next rounds; "

// looks are what one turn of a job may spend. Nil is without a limit.
type looks struct {
	spent map[string]int64 // of the round, by tenant
	of    string
	most  int64 // of spent at which the turn ends
	over  bool  // something was not looked at
}

// looksFor are those of a job that books so many replicas, of which each looks at so many
// (LooksOfReplica).
func looksFor(r *place.Placer, j *draft.Job, replicas int, each int64) *looks {
	if !r.By(draft.RulesBookingsCounted) {
		return nil
	}
	spent := r.Parts[j.TenantName]
	return &looks{spent: r.Parts, of: j.TenantName, most: max(r.Limits.Work, spent+int64(replicas)*each)}
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

// take spends n looks, and reports false where none is left.
func (l *looks) take(n int64) bool {
	switch {
	case l == nil:
		return true
	case l.spent[l.of] >= l.most:
		l.over = true
		return false
	}
	l.spent[l.of] += n
	return true
}

// spare spends n looks on what only people read, where so many are left.
func (l *looks) spare(n int) bool {
	if l == nil {
		return true
	}
	if l.spent[l.of]+int64(n) > l.most {
		return false
	}
	l.spent[l.of] += int64(n)
	return true
}

// ended reports whether something was not looked at.
func (l *looks) ended() bool { return l != nil && l.over }

// explain makes a failure say that something was not looked at.
func (l *looks) explain(r *place.Placer, f *draft.Failure) *draft.Failure {
	if l.ended() {
		f.Code, f.Text = lifecycle.CodeWork, unlookedText+f.Text
		r.Due(v1alpha1.TimeOf(r.Now.Truncate(time.Minute).Add(time.Minute)))
	}
	return f
}

// looksAt is what a replica looks at of a class.
func (x *search) looksAt(s *match.Class) int64 {
	n := int64(len(s.Candidates))
	for i := range s.Candidates {
		n += int64(len(x.views.of(s.Candidates[i].Offer).Starts()))
	}
	return n
}
