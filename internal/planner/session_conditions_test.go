package planner_test

import (
	"reflect"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// A condition is asked again of an offer that reports something else of what it looks at,
// and of no other: from memory as from nothing.
func TestSession_AsksConditionsOfWhatChanged(t *testing.T) {
	where, err := celenv.Compile(`flavor.used["cpu"].isLessThan(quantity("10"))`)
	if err != nil {
		t.Fatal(err)
	}
	b := demand(market(20), 4)
	for _, in := range b.W.Intents {
		in.Spec.Placement.Regions = nil
		in.Where, in.Spec.Placement.Where = where, where.Source()
		in.Spec.Resources.GPU.Models, in.Spec.Resources.GPU.Count = nil, 50 // waits, so that it is looked at in each round
	}
	m := &planner.Session{Fault: func(why string) { t.Error(why) }}
	for round := range 6 {
		b.W.Offers = copies(b.W.Offers)
		o := b.W.Offers[round%3]
		f := *o.Flavor
		f.Spec.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(int64(20_000 * (1 - round/3)))}
		o.Flavor = &f
		want, got := planner.Decide(b.W), m.Decide(b.W)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, from memory:\n%s\nfrom nothing:\n%s", round, describe(got), describe(want))
		}
		full := 0
		for _, d := range got.Intents {
			full += d.Rejected["placement.where"]
		}
		in := [...]int{1, 2, 3, 2, 1, 0} // offers in use
		if full != 4*in[round] {
			t.Fatalf("round %d: %d times an offer fails the condition, want %d: %v", round, full, 4*in[round], got.Intents[0].Rejected)
		}
	}
	if m.Scratch() > 1 {
		t.Errorf("%d plans were made from nothing", m.Scratch())
	}
}
