package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/scarcity"
)

// Who usually comes is read from who holds something: at most so many intents are asked, the
// same number apart in the order of their names, so that a round of one intent costs what it
// costs among a hundred as among a million.
const asked = 256

// weighScarcity finds what places are worth to others, by who holds something as the round
// is, where one of some jobs is placed by cost alone: before anybody is placed, and again before
// anybody is moved, so that a second plan of the same world moves and proposes nothing else.
func weighScarcity(r *round, jobs []*draft.Job) {
	premium := int64(defaultPremium)
	if d := r.Fleet.Scarcity; d != nil {
		premium = d.Micro()/1000 - 1000
	}
	if premium > 0 && r.By(draft.RulesScarcity) && byCost(r, jobs) {
		r.Scarce = scarcity.New(r.Inventory, r.Match, holders(r), premium)
	}
}

// defaultPremium is Fleet.spec.scarcity where it is left open, less 1 and in thousandths.
const defaultPremium = 500

// byCost reports whether one of some jobs is placed by cost alone.
func byCost(r *round, jobs []*draft.Job) bool {
	for _, j := range jobs {
		if j.In == nil {
			continue
		}
		if w := r.Match.WeightsOf(&j.In.Spec); w.ByCostAlone() {
			return true
		}
	}
	return false
}

// holders are the kinds of request that hold something by the ledger, by those of some
// intents. Conditions are not asked for it: they cost what limits.conditions counts.
func holders(r *round) []scarcity.Kind {
	step := (len(r.Intents) + asked - 1) / asked
	at, out := map[string]int{}, []scarcity.Kind{}
	for i := 0; i < len(r.Intents); i += step {
		in := r.Intents[i]
		if in.Where != nil || in.Problem != "" || in.Metadata.Namespace == v1alpha1.FleetTenant {
			continue
		}
		held := holding(r, in)
		if held == 0 {
			continue
		}
		j := &draft.Job{}
		j.In, j.TenantName, j.Name, j.Tenant = in, in.Metadata.Namespace, in.Metadata.Name, r.Accounts.Of(in.Metadata.Namespace)
		j.Consumer = j.Tenant.Spec.ConsumerOf(&in.Spec)
		ask := r.AskOf(j, r.For(j, place.Request{}, 1), 0)
		key := string(r.Match.Key(ask))
		n, known := at[key]
		if !known {
			n = len(out)
			at[key], out = n, append(out, scarcity.Kind{Ask: ask})
		}
		out[n].Held += float64(held * step)
	}
	return out
}

// holding is how many whole replicas of an intent hold something.
func holding(r *round, in *model.Intent) (n int) {
	list := r.W.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name)
	if j := r.JobOf(in.Metadata.Namespace, in.Metadata.Name); j != nil {
		list = j.Live
	}
	for _, c := range list {
		if c.Status.Phase.Charged() && c.Spec.Intent.Part == 0 {
			n++
		}
	}
	return n
}
