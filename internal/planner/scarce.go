package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/scarcity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// Who usually comes is read from who holds something: so many intents are looked at, and so
// many of those that hold something are asked, so that a round of one intent costs what it
// costs among a hundred as among a million. Which of more they are is drawn by FNV: what
// alternates in the order of names is found as often as anything else.
const lookedAt, asked = 512, 256

// weighScarcity finds what places are worth to others, by who holds something as the round
// is, where one of some jobs is placed by cost alone: before anybody is placed, and again before
// anything is kept for those that then wait and before anybody is moved, so that a second plan of
// the same world keeps, moves and proposes nothing else.
func weighScarcity(r *round, jobs []*draft.Job) {
	if premium := scarcity.Premium(r.Fleet); premium > 0 && r.By(draft.RulesScarcity) && byCost(r, jobs) {
		r.Scarce = scarcity.New(r.Inventory, r.Match, holders(r), premium)
	}
}

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

// holder is an intent that holds whole replicas, in the order in which holders are asked.
type holder struct {
	in   *model.Intent
	held float64
	turn float64
}

// holders are the kinds of request that hold something by the ledger, by those of some
// intents. Conditions are not asked for it: they cost what limits.conditions counts.
func holders(r *round) []scarcity.Kind {
	found, each := found(r)
	all := 0.0
	for i := range found {
		all += found[i].held
	}
	if len(found) > asked {
		// Who holds more is the more likely to be asked: by its lot per replica.
		for i := range found {
			m := &found[i].in.Metadata
			found[i].turn = float64(settle.Lot(0, m.Namespace, m.Name)) / found[i].held
		}
		slices.SortStableFunc(found, func(a, b holder) int { return cmp.Compare(a.turn, b.turn) })
		found = found[:asked]
	} else {
		all = 0 // each counts for itself
	}
	at, out := map[string]int{}, []scarcity.Kind{}
	for _, h := range found {
		in, j := h.in, &draft.Job{}
		j.In, j.TenantName, j.Name, j.Tenant = in, in.Metadata.Namespace, in.Metadata.Name, r.Accounts.Of(in.Metadata.Namespace)
		j.Consumer = j.Tenant.Spec.ConsumerOf(&in.Spec)
		ask := r.AskOf(j, r.For(j, place.Request{}, 1), 0)
		key := string(r.Match.Key(ask))
		n, known := at[key]
		if !known {
			n = len(out)
			at[key], out = n, append(out, scarcity.Kind{Ask: ask})
		}
		out[n].Held += float64(max(h.held, all/asked) * each)
	}
	return out
}

// found are the intents that hold something, of as many as are looked at, by name, and for how
// many each of these counts. Of more, one of each so many by name is looked at, at a place that
// is drawn.
func found(r *round) (out []holder, each float64) {
	n := len(r.Intents)
	parts := min(n, lookedAt)
	for part := range parts {
		i, next := part*n/parts, (part+1)*n/parts
		if next-i > 1 {
			i += int(settle.Lot(int64(part), "", "") % uint64(next-i)) //nolint:gosec // less than n
		}
		in := r.Intents[i]
		if in.Where != nil || in.Problem != "" || in.Metadata.Namespace == v1alpha1.FleetTenant {
			continue
		}
		if held := holding(r, in); held > 0 {
			out = append(out, holder{in: in, held: float64(held)})
		}
	}
	return out, float64(n) / float64(max(parts, 1))
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
