package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Further worlds that random stories have found (TestAgain_InAnyStory), as again_test.go. Each
// is planned by the rules before, too, which show what was wrong.

// What is taken off a contract on nodes is held where it was, and not anywhere else in addition.
func TestSmallerOnNodesIsHeldOnce(t *testing.T) {
	for by, want := range map[int]string{0: "place", draft.RulesAgainAll - 1: "queue NothingFits"} {
		b := settled(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", onNodes(4, 4)).Intent("vision/x", Wants(4)))
		b.W.Rules = by
		b.Intent("vision/x", Wants(1)).Intent("vision/y", Wants(4))
		p := b.Round()
		d := Of(p, "vision/y")
		if got := strings.TrimSpace(string(d.Action) + " " + d.Code); got != want || Of(p, "vision/x").Action != planner.Resize {
			t.Errorf("by rules %d: %q, want %q\n%s", by, got, want, describe(p))
		}
	}
}

// withoutNodeAt takes a node of those of onNodes(4, 4) away.
func withoutNodeAt(name string) func(*model.Offer) {
	return func(o *model.Offer) {
		f := &o.Flavor.Spec
		groups := slices.DeleteFunc(slices.Clone(f.Nodes.Groups), func(g v1alpha1.NodeGroup) bool { return g.Nodes[0] == name })
		f.Nodes, f.Used = &v1alpha1.FlavorNodes{Groups: groups}, Amounts("gpu=4")
		Capacity("gpu=8")(o)
	}
}

// What goes to another node and was changed by its team in the same commit is what they ask for.
func TestRemappedFollowsItsEdit(t *testing.T) {
	for by, want := range map[int]int64{0: 1, draft.RulesAgainAll - 1: 4} {
		b := settled(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", onNodes(4, 4)).Intent("vision/x", Wants(4)))
		at := b.Contracts("vision/x")[0].Spec.Nodes[0].Node
		b.Offer("paris/h100", withoutNodeAt(at))
		b.Round()
		b.Tick(10 * time.Minute)
		b.W.Rules = by
		b.Intent("vision/x", Wants(1))
		p := b.Round()
		c := b.Contracts("vision/x")[0]
		if n := c.Spec.Resources["nvidia.com/gpu"].Int64(); n != want || c.Spec.Nodes[0].Node == at {
			t.Errorf("by rules %d: %d on %s, want %d\n%s", by, n, c.Spec.Nodes[0].Node, want, describe(p))
		}
		if lines := Of(p, "vision/x").Contracts; len(lines) != 1 {
			t.Errorf("%d lines of one contract", len(lines))
		}
	}
}

// Own pods lie on as few cards as they can, next to what a plan places: the plan says of who
// waits what the next one does.
func TestOwnPodsLieNextToWhatIsPlaced(t *testing.T) {
	for by, want := range map[int]string{0: "place", draft.RulesAgainAll - 1: "queue NothingFits"} {
		// Two cards of 3 units, of which own pods have 2.
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", partsOnNodes("mps", 3, 4))
		b.W.Rules = by
		b.Intent("vision/a", wantsUnits(2, "mps"), Priority(1)).Intent("vision/b", wantsUnits(2, "mps"))
		p := b.Round()
		d := Of(p, "vision/b")
		if got := strings.TrimSpace(string(d.Action) + " " + d.Code); got != want || Of(p, "vision/a").Action != planner.Place {
			t.Errorf("by rules %d: %q, want %q\n%s", by, got, want, describe(p))
		}
	}
}

// A gang of which the last replica is beyond its tenant's budget: what the tenant spends is said
// without the others, which were tried.
func TestFiguresWithoutWhatWasTried(t *testing.T) {
	for by, want := range map[int]string{0: "tenant vision spends 2.00 of 9.00 EUR/h", draft.RulesAgainAll - 1: "tenant vision spends 8.00 of 9.00 EUR/h"} {
		b := settled(twoFlavors(8).Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: Money("9")} }).
			Intent("vision/x", Wants(2)))
		b.W.Rules = by
		b.Intent("vision/gang", Wants(3), Times(3))
		p := b.Round()
		if d := Of(p, "vision/gang"); !strings.Contains(d.Reason, want) || !strings.HasPrefix(d.Reason, "2 of 3 replicas fit; ") {
			t.Errorf("by rules %d: want %q\n%s", by, want, describe(p))
		}
	}
}

// What was denied is not proposed to its intent as long as that keeps away from there.
func TestNoMoveToWhoDenied(t *testing.T) {
	for by, want := range map[int]int{0: 0, draft.RulesAgainAll - 1: 1} {
		b := settled(New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
			Fleet(consolidating("propose", "0.1", 30*time.Minute)).
			Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
			Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("3")).
			Intent("vision/x", Wants(1), cheapest))
		denyAll(b, "vision/x")
		b.Round()
		b.Tick(2 * time.Minute).Round()
		b.Tick(time.Minute).Deliver().Round()
		b.W.Rules = by
		b.Tick(time.Minute)
		p := b.Round()
		if c := b.Contracts("vision/x"); len(c) != 1 || c[0].Spec.Provider != "lyon" {
			t.Fatalf("it is not in lyon\n%s", describe(p))
		}
		if n := len(b.W.Ledger.State("vision", "x").Status.Proposals); n != want {
			t.Errorf("by rules %d: %d proposals, want %d\n%s", by, n, want, describe(p))
		}
	}
}

// Where a slice is denied, another node of the same offer is no help.
func TestDeniedIsNotRemapped(t *testing.T) {
	for by, want := range map[int]string{0: "lyon", draft.RulesAgainAll - 1: "paris"} {
		b := settled(New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
			Offer("paris/h100", onNodes(4, 4), Costs("1")).Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("3")).
			Intent("vision/x", Wants(4), cheapest))
		at := b.Contracts("vision/x")[0].Spec.Nodes[0].Node
		denyAll(b, "vision/x")
		b.Round()
		b.Offer("paris/h100", withoutNodeAt(at))
		b.W.Rules = by
		b.Tick(time.Minute).Round()
		b.Tick(10 * time.Minute)
		p := b.Round()
		var on []string
		for _, c := range b.Contracts("vision/x") {
			if c.Status.Phase.Charged() {
				on = append(on, c.Spec.Provider)
			}
		}
		if len(on) != 1 || on[0] != want {
			t.Errorf("by rules %d: on %v, want %s\n%s", by, on, want, describe(p))
		}
	}
}

// A contract that other nodes were found for works: a better offer is proposed in the same plan.
func TestRemappedIsProposedToMove(t *testing.T) {
	for by, want := range map[int]int{0: 1, draft.RulesAgainAll - 1: 0} {
		b := settled(New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
			Fleet(consolidating("propose", "0.1", 30*time.Minute)).
			Offer("paris/h100", onNodes(4, 4), Costs("3")).Intent("vision/x", Wants(4), cheapest))
		b.Offer("paris/h100", withoutNodeAt(b.Contracts("vision/x")[0].Spec.Nodes[0].Node)).Round()
		b.Tick(10*time.Minute).Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
		b.W.Rules = by
		p := b.Round()
		if d := Of(p, "vision/x"); d.Code != lifecycle.CodeRemapped {
			t.Fatalf("by rules %d: %s\n%s", by, d.Code, describe(p))
		}
		if n := len(b.W.Ledger.State("vision", "x").Status.Proposals); n != want {
			t.Errorf("by rules %d: %d proposals, want %d\n%s", by, n, want, describe(p))
		}
	}
}

// A booking of which the provider is lost is booked where others give way in the same plan.
func TestLostBookingTakesWhatComesFree(t *testing.T) {
	for by, want := range map[int]string{0: "place", draft.RulesAgainAll - 1: "keep BookingShort"} {
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome", mayBookAhead(0)).Tenant("bio", "rome").
			Offer("lyon/h100", Cards("nvidia-h100", 4, "80Gi")).Intent("bio/low", Wants(4))
		b = settled(b).Offer("paris/h100", Cards("nvidia-h100", 2, "80Gi")).Intent("vision/later", Wants(2), booksAt(3*time.Hour, time.Hour))
		step(t, b, "booked", map[string]string{"vision/later": "place"})
		b.W.Rules = by
		b.Tick(time.Minute).Offer("paris/h100", Heard(model.Lost)).Intent("bio/hi", Wants(2), preempts(100))
		p := b.Round()
		d := Of(p, "vision/later")
		if got := strings.TrimSpace(string(d.Action) + " " + d.Code); got != want || Of(p, "bio/hi").Code != "Preempting" {
			t.Errorf("by rules %d: %q, want %q\n%s", by, got, want, describe(p))
		}
	}
}

// A booking that its team gives up is none of those that would end too many at once.
func TestBookingGivenUpIsNotCounted(t *testing.T) {
	for by, want := range map[int]int{0: 0, draft.RulesAgainAll - 1: 2} {
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome", mayBookAhead(0)).
			Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(1)) }).
			Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi")).Intent("vision/x", Wants(1))
		b = settled(b).Intent("vision/later", Wants(2), booksAt(3*time.Hour, time.Hour))
		step(t, b, "booked", map[string]string{"vision/later": "place"})
		b.W.Rules = by
		b.Tick(time.Minute).Offer("paris/h100", Heard(model.Lost)).Offer("lyon/h100", Cards("nvidia-h100", 4, "80Gi"))
		b.Intent("vision/later", Wants(2), With(func(s *v1alpha1.IntentSpec) { s.Schedule = v1alpha1.Schedule{} }))
		if p := b.Round(); p.HeldBackEnds != want {
			t.Errorf("by rules %d: %d are held back, want %d\n%s", by, p.HeldBackEnds, want, describe(p))
		}
	}
}

// What is kept for one that goes by its price is left to others where they need it more, also in
// the plan that places those: the last of them is served in that plan, and not in the next.
func TestKeptByWhoHoldsInTheEnd(t *testing.T) {
	for by, want := range map[int]string{0: "place", draft.RulesAgainAll - 1: "queue NothingFits"} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("2.1")).Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2"))
		b.W.Rules = by
		for i := range 8 { // those who can use nothing else fill these
			b.Offer(fmt.Sprintf("paris/h100-%d", i), Cards("nvidia-h100", 4, "80Gi"), Costs("1")).
				Intent(fmt.Sprintf("vision/choosy-%d", i), Wants(4, "H100"), cheapest, Priority(3))
		}
		b.Intent("vision/old-a", Wants(1, "A100"), For(2*time.Hour), Priority(2)).Intent("vision/old-h", Wants(1, "H100"), For(2*time.Hour), Priority(2)).
			Intent("vision/big", Wants(8), cheapest, Priority(1)).Intent("vision/last", Wants(4, "H100"))
		p := b.Plan()
		d := Of(p, "vision/last")
		if got := strings.TrimSpace(string(d.Action) + " " + d.Code); got != want || Of(p, "vision/big").Action != planner.Queued {
			t.Errorf("by rules %d: %q, want %q\n%s", by, got, want, describe(p))
		}
		if b.Apply(p); b.Plan().Changes() != (by != 0) {
			t.Errorf("by rules %d: planning again:\n%s", by, describe(b.Plan()))
		}
	}
}
