package planner_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// What is evicted from memory is found again when it is asked for: a round that may keep
// nothing, or little, of what it knows of each offer makes the plan of one that keeps all.
func TestEvicted_ChangesNoPlan(t *testing.T) {
	budgets := []int64{0, 4 << 10, 64 << 10}
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		for range rapid.IntRange(1, 8).Draw(t, "length") {
			said := s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 60, 3600, 6 * 3600}).Draw(t, "seconds")) * time.Second)
			want := s.Plan()
			budget := rapid.SampledFrom(budgets).Draw(t, "budget")
			if got := planner.DecideWithin(s.W, budget); !reflect.DeepEqual(got, want) {
				t.Fatalf("after %q, within %d bytes:\n%s\nwithout a bound:\n%s", said, budget, describe(got), describe(want))
			}
			s.Apply(want)
		}
	})
}

// The same where each of many intents asks for something else, for the lowest cost too.
func TestEvicted_ChangesNoPlanOfManyShapes(t *testing.T) {
	for _, objective := range []v1alpha1.Objective{v1alpha1.Balanced, v1alpha1.Cost} {
		w := demand(market(300), 400)
		for i := range w.W.Intents {
			s := &w.W.Intents[i].Spec
			s.Objective = objective
			s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(int64(4000 + i))
			if i%3 == 0 {
				s.Resources.GPU.Count = 30 // waits
			}
		}
		want := planner.Decide(w.W)
		if n := want.Summary()[planner.Place]; n < 150 {
			t.Fatalf("placed %d: %v", n, want.Summary())
		}
		for _, budget := range []int64{0, 256 << 10} {
			if got := planner.DecideWithin(w.W, budget); !reflect.DeepEqual(got, want) {
				t.Errorf("%s within %d bytes:\n%s", objective, budget, firstDifference(got, want))
			}
		}
	}
}

// Bookings keep no more of it than others: what one has found goes before the next.
func TestEvicted_BetweenBookings(t *testing.T) {
	b := plantest.New().Consumer("rome").Provider("paris").
		Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{Book: true} }).
		Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("2.5"))
	for i := range 5 {
		b.Intent(fmt.Sprintf("vision/n%d", i), plantest.Wants(int32(9+i)), plantest.With(func(s *v1alpha1.IntentSpec) {
			s.Schedule = v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(plantest.Start.Add(24 * time.Hour)), Duration: v1alpha1.Duration{Duration: time.Hour}, Book: true}
		}))
	}
	for budget, want := range map[int64]int{0: 1, match.DefaultBudget: 5} {
		if waiting, known := planner.BookWithin(b.W, budget); waiting != 5 || known != want {
			t.Errorf("within %d bytes %d of %d that wait are known, want %d", budget, known, waiting, want)
		}
	}
}

// firstDifference is the first decision in which two plans differ.
func firstDifference(got, want *planner.Plan) string {
	for i := range want.Intents {
		if i >= len(got.Intents) || !reflect.DeepEqual(got.Intents[i], want.Intents[i]) {
			return fmt.Sprintf("got  %+v\nwant %+v", got.Intents[i], want.Intents[i])
		}
	}
	return "the decisions are the same"
}
