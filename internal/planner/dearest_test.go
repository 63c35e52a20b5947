package planner_test

import (
	"reflect"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// A contract records the most expensive offer that it could have had: not one of which
// no price is known, not one that is too small, and, once it is full, not the
// most expensive any more. From memory it is the same as from nothing.
func TestTheDearestThatFittedIsRecorded(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Provider("milan").Provider("bern").Provider("oslo").Provider("ulm").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("2")).
		Offer("milan/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("9")).
		Offer("bern/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("5")).
		Offer("oslo/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("50")).
		Offer("ulm/h100", Cards("nvidia-h100", 16, "80Gi"))
	thrifty := With(func(s *v1alpha1.IntentSpec) { s.Objective = "cost" })
	m := &planner.Session{}
	dearest := func(name string) (flavor, hourly string) {
		t.Helper()
		want := b.Plan()
		if got := m.Decide(b.W); !reflect.DeepEqual(got, want) {
			t.Fatalf("from memory\n%s\nfrom nothing\n%s", describe(got), describe(want))
		}
		b.Apply(want)
		d := b.Contracts(name)[0].Decision.Dearest
		if d == nil {
			return "", ""
		}
		return d.Flavor, d.Hourly.String()
	}
	b.Intent("vision/a", Wants(4, "H100"), thrifty)
	if f, h := dearest("vision/a"); f != "milan/h100" || h != "36" || b.Contracts("vision/a")[0].Spec.Provider != "paris" {
		t.Errorf("the dearest is %s for %s: %+v", f, h, b.Contracts("vision/a")[0].Spec)
	}
	b.Offer("milan/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Used = Amounts("gpu=1") }))
	b.Intent("vision/b", Wants(4, "H100"), thrifty)
	if f, h := dearest("vision/b"); f != "bern/h100" || h != "20" {
		t.Errorf("with milan in use the dearest is %s for %s", f, h)
	}
	b.Offer("milan/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Used = nil }))
	b.Intent("vision/c", Wants(4, "H100"), thrifty)
	if f, h := dearest("vision/c"); f != "milan/h100" || h != "36" {
		t.Errorf("with milan free again the dearest is %s for %s", f, h)
	}
	// Resized in place nothing else was looked at.
	b.Tick(10e9).Deliver().Round()
	b.Intent("vision/a", Wants(3, "H100"), thrifty)
	if f, _ := dearest("vision/a"); f != "" || b.Contracts("vision/a")[0].Spec.Resources["nvidia.com/gpu"].Int64() != 3 {
		t.Errorf("resized in place its dearest is %s: %+v", f, b.Contracts("vision/a")[0].Spec.Resources)
	}
}
