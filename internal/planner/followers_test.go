package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// follower is a gang by price alone that wants to be where vision/a is.
var follower = With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"a"} })

// A gang that follows another in a batch is placed whole or waits; by the rules before 23
// some of it was placed, which the check withdrew.
func TestFollowers_AreWholeOrWait(t *testing.T) {
	for _, n := range [][2]int32{{2, 3}, {1, 4}, {3, 2}, {4, 4}} {
		for _, rules := range []int{0, draft.RulesFollowersWhole - 1} {
			b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
				Offer("paris/h100", Cards("nvidia-h100", 32, "80Gi"), Costs("2")).
				Intent("vision/a", Wants(8, "H100"), cheapest, Times(n[0])).
				Intent("vision/b", Wants(8, "H100"), cheapest, Times(n[1]), follower)
			b.W.Rules = rules
			p := b.Plan()
			want := planner.Queued
			if rules > 0 && n[0] < 4 {
				want = planner.Refuse
			}
			if d := Of(p, "vision/b"); d.Action != want || len(d.Contracts) > 0 || (d.Code == lifecycle.CodeInvariant) != (want == planner.Refuse) {
				t.Errorf("%d and %d replicas, rules %d: %s %s %q with %d contracts, want %s", n[0], n[1], rules, d.Action, d.Code, d.Reason, len(d.Contracts), want)
			}
			if d := Of(p, "vision/a"); d.Action != planner.Place || len(d.Contracts) != int(n[0]) {
				t.Errorf("%d and %d replicas, rules %d: the one it follows has %d contracts: %s", n[0], n[1], rules, len(d.Contracts), d.Reason)
			}
		}
	}
}

// Where a batch puts a gang elsewhere than it was placed first, it says where it is.
func TestFollowers_SayWhereTheyAre(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
		Offer("lyon/more", Cards("nvidia-h100", 24, "80Gi"), Costs("9")).
		Offer("paris/h100", Cards("nvidia-h100", 32, "80Gi"), Costs("2"))
	gang := With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(true) })
	b.Intent("vision/a", Wants(8, "H100"), cheapest, Times(2), gang).
		Intent("vision/b", Wants(8, "H100"), cheapest, Times(2), gang, follower)
	p := b.Plan()
	for _, ref := range []string{"vision/a", "vision/b"} {
		d := Of(p, ref)
		var at []string
		for _, c := range d.Contracts {
			at = append(at, c.Provider+"/"+c.Flavor)
		}
		if fmt.Sprint(at) != "[paris/h100 paris/h100]" || strings.Contains(d.Also, "lyon") || ref == "vision/a" && !strings.Contains(d.Also, "all in provider paris") {
			t.Errorf("%s is on %v: %q", ref, at, d.Also)
		}
	}
	e, err := planner.Explain(b.W, "vision", "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range e.Offers {
		if !o.Fits {
			t.Errorf("%s: %s %s, though all of those that belong together fit there", o.Flavor.Ref(), o.Requirement, o.Detail)
		}
	}
	wantOnlyKeeps(t, b.Apply(p))
}
