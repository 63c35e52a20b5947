package planner_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Budget or not, the order is the same: what a round has no work left for has its turn in a
// later one, each tenant's by priority and then by name, and in the end all hold what they do
// without a budget. Who waits for the others' sake is Planning, for its tenant's WorkBudget.
func TestTurns_AreInTheSameOrder(t *testing.T) {
	codes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tenants := rapid.SampledFrom([]int{1, 2, 4, 25}).Draw(t, "tenants")
		work := int64(rapid.IntRange(501, 3000).Draw(t, "work"))
		fresh := func() *Builder {
			b := New().Consumer("rome").Provider("paris").
				Offer("paris/h100", Capacity("cpu=640 memory=5120Gi pods=1000 ephemeral-storage=10Ti"))
			return b
		}
		limited, free := fresh(), fresh()
		priority := map[string]int32{}
		for i := range tenants {
			name := fmt.Sprintf("t%02d", i)
			n := rapid.IntRange(1, 4).Draw(t, "intents")
			for k := range n {
				ref := fmt.Sprintf("%s/i%d", name, k)
				p := int32(rapid.IntRange(0, 2).Draw(t, "priority"))
				priority[ref] = p
				for _, b := range []*Builder{limited, free} {
					b.Tenant(name, "rome").Intent(ref, tiny, func(in *model.Intent) { in.Spec.Priority = p })
				}
			}
		}
		limited.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = work })
		free.Round()
		var order []string
		for rounds := 0; len(order) < len(priority); rounds++ {
			if rounds > 2*len(priority) {
				t.Fatalf("after %d rounds only %v are placed", rounds, order)
			}
			p := limited.Plan()
			var now []string
			for i := range p.Intents {
				d := p.Intents[i]
				switch d.Action {
				case planner.Place:
					now = append(now, d.Tenant+"/"+d.Name)
				case planner.Queued:
					if codes[d.Code]++; !lifecycle.AwaitsTurn(d.Code) {
						t.Fatalf("%s waits as %s: %s", d.Name, d.Code, d.Reason)
					}
				}
			}
			if len(now) == 0 {
				t.Fatalf("round %d places nothing", rounds)
			}
			order = append(order, now...)
			// Those of one round come in no order; those of the next after them.
			slices.Sort(order[len(order)-len(now):])
			for _, earlier := range now {
				for ref := range priority {
					tenant, other := earlier[:3], ref[:3]
					if tenant == other && !slices.Contains(order, ref) && cmp.Or(cmp.Compare(priority[ref], priority[earlier]), cmp.Compare(earlier, ref)) > 0 {
						t.Fatalf("%s (priority %d) had its turn before %s (%d)", earlier, priority[earlier], ref, priority[ref])
					}
				}
			}
			limited.Apply(p)
			limited.Tick(10 * time.Second)
		}
		for ref := range priority {
			if got, want := len(limited.Contracts(ref)), len(free.Contracts(ref)); got != want {
				t.Fatalf("%s holds %d, %d without a budget", ref, got, want)
			}
		}
	})
	if codes[lifecycle.CodeWork] == 0 || codes[lifecycle.CodePlanning] == 0 {
		t.Errorf("got %v, want some of %s and %s", codes, lifecycle.CodeWork, lifecycle.CodePlanning)
	}
}
