package reconciler

import (
	"reflect"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// gathering is how long news of the market on which nothing depends may lie
// before a round plans with it.
const gathering = 5 * time.Second

// planned is what the newest plan that stands knew of the market.
type planned struct {
	market *market.Snapshot
	at     time.Time
	// waits: an intent is not served as it wants to be, or the plan was not
	// written yet.
	waits bool
}

// conclude remembers a plan after which nothing is left to do.
func (r *Reconciler) conclude(k key, s *market.Snapshot, plan *planner.Plan) {
	r.last = k
	r.planned = planned{market: s, at: r.opts.Now(), waits: waits(plan)}
}

// waits reports whether capacity that becomes free could change the plan soon.
// An intent that was refused asked not to wait.
func waits(plan *planner.Plan) bool {
	if plan.Changes() {
		return true
	}
	for _, d := range plan.Unsettled {
		switch d.Action {
		case planner.Keep:
			if len(d.Rejected) > 0 { // a replica or a failover is looked for
				return true
			}
		case planner.Suspend, planner.Done, planner.Frozen, planner.Refuse, planner.Find:
		default:
			return true
		}
	}
	return false
}

// gather is until when a round need not plan, because all that is new since the
// newest plan is news of the market on which nothing depends; zero when it must
// plan now.
func (r *Reconciler) gather(in *inputs, k key, s *market.Snapshot) time.Time {
	last := r.last
	last.market = k.market
	now := r.opts.Now()
	until := r.planned.at.Add(gathering)
	if r.planned.market == nil || len(r.desk.files) > 0 || !k.same(last, r.now(in)) || !now.Before(until) || now.Before(r.planned.at) {
		return time.Time{}
	}
	for _, provider := range s.Differs(r.planned.market) {
		if r.matters(in.ledger, s, provider) {
			return time.Time{}
		}
	}
	return until
}

// matters reports whether a decision may depend on what is new of a provider.
//
// While an intent waits that is everything but pods of the provider's own that
// take more. Where contracts are held it is everything but what those pods take
// from what is not sold. Elsewhere it is nothing: there is nobody who would
// have it.
func (r *Reconciler) matters(l *ledger.Ledger, s *market.Snapshot, provider string) bool {
	held := len(l.HeldBy(provider)) > 0
	if !held && !r.planned.waits {
		return false
	}
	old := r.planned.market
	was, is := old.Of(provider), s.Of(provider)
	if len(was) != len(is) || old.Provider(provider) != s.Provider(provider) {
		return true
	}
	for i := range is {
		a, b := *was[i], *is[i]
		if a.Flavor.Metadata.Name != b.Flavor.Metadata.Name || r.planned.waits && frees(a.Flavor, b.Flavor) {
			return true
		}
		a.Flavor, b.Flavor = lasting(a.Flavor), lasting(b.Flavor)
		if !reflect.DeepEqual(a, b) {
			return true
		}
	}
	return held && (overdrawn(l, was) || overdrawn(l, is))
}

// frees reports whether a flavor's provider takes less of something for itself,
// or contracts use it otherwise, which what may be sold at a risk goes by.
func frees(a, b *v1alpha1.Flavor) bool {
	return !b.Spec.Used.Covers(a.Spec.Used) || !reflect.DeepEqual(a.Spec.Usage, b.Spec.Usage)
}

// lasting is a flavor without what changes with each report.
func lasting(f *v1alpha1.Flavor) *v1alpha1.Flavor {
	out := *f
	out.Spec.Used, out.Spec.Usage = nil, nil
	return &out
}

// overdrawn reports whether a provider has less of a flavor than contracts
// hold.
func overdrawn(l *ledger.Ledger, offers []*model.Offer) bool {
	members := make([]ledger.Member, len(offers))
	for i, o := range offers {
		members[i] = l.MemberOf(o.Flavor)
	}
	for _, m := range members {
		if len(m.Held) == 0 {
			continue
		}
		for _, left := range ledger.Sellable(ledger.Figures(m, members, "")) {
			if left.Less(v1alpha1.Amount{}) {
				return true
			}
		}
	}
	return false
}
