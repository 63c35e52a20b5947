package planner_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func objective(o v1alpha1.Objective) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Objective = o })
}

func emits(carbon int64) func(*model.Offer) {
	return Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.Carbon = Ptr(carbon) })
}

func away(ms int64) func(*model.Offer) {
	return Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.LatencyMs = Ptr(ms) })
}

func TestObjectives(t *testing.T) {
	// t4 is the cheapest an hour, a100 the nearest, h100 the fastest and the
	// cheapest for the work, l4 draws the least and runs on clean power.
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("p").
		Offer("p/t4", Cards("nvidia-t4", 8, "16Gi"), Costs("0.50"), emits(300), away(60)).
		Offer("p/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("3.00"), emits(300), away(2)).
		Offer("p/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("3.20"), emits(400), away(60)).
		Offer("p/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("0.70"), emits(20), away(60)).
		Offer("p/odd", Cards("nvidia-unheard-of", 8, "80Gi"), Costs("2.00"))
	for _, c := range []struct {
		objective v1alpha1.Objective
		want      string
		term      string
	}{
		{v1alpha1.Cost, "t4", "cost"},
		{v1alpha1.Performance, "h100", "performance"},
		{v1alpha1.Latency, "a100", "latency"},
		{v1alpha1.Energy, "l4", "energy"},
	} {
		b.Intent("vision/train", Wants(2), objective(c.objective))
		d := Of(b.Plan(), "vision/train")
		if len(d.Contracts) != 1 || d.Contracts[0].Flavor != c.want {
			t.Errorf("%s: %+v", c.objective, d.Contracts)
		}
		e, err := planner.Explain(b.W, "vision", "train")
		if err != nil || e.Offers[0].Scores[c.term] == 0 {
			t.Errorf("%s: %v %+v", c.objective, err, e.Offers[0].Scores)
		}
	}
	// Explicit weights are the same terms.
	b.Intent("vision/train", Wants(2), With(func(s *v1alpha1.IntentSpec) {
		s.Objective, s.Weights = "", &v1alpha1.Weights{Performance: 0.9, Energy: 0.1}
	}))
	if d := Of(b.Plan(), "vision/train"); d.Contracts[0].Flavor != "h100" {
		t.Errorf("%+v", d.Contracts)
	}
	// Without cards nothing is known of speed, and the price alone decides.
	b = New().Consumer("rome").Tenant("vision", "rome").Provider("p").Offer("p/a", Costs("0", "cpu=2"), emits(10)).Offer("p/b", Costs("0", "cpu=1"), emits(500))
	for _, c := range []struct {
		want      string
		objective v1alpha1.Objective
	}{{"b", v1alpha1.Performance}, {"a", v1alpha1.Energy}} {
		b.Intent("vision/train", Wants(0), objective(c.objective))
		if d := Of(b.Plan(), "vision/train"); d.Contracts[0].Flavor != c.want {
			t.Errorf("%s: %+v", c.objective, d.Contracts)
		}
	}
}

// Every term is within 0 and 1 and a number, whatever flavors state.
func TestTermsAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New().Consumer("rome").Tenant("vision", "rome").Provider("p")
		for _, name := range []string{"a", "b", "c"} {
			b.Offer("p/"+name, func(o *model.Offer) {
				if n := rapid.IntRange(0, 4).Draw(t, "cards"); n > 0 {
					Cards(rapid.SampledFrom([]string{"nvidia-h100", "nvidia-k80", "amd-mi300x", "odd"}).Draw(t, "model"), n, "80Gi")(o)
				}
				Capacity(rapid.SampledFrom([]string{"cpu=0", "cpu=8", "cpu=1000000"}).Draw(t, "cpu"))(o)
				if rapid.Bool().Draw(t, "priced") {
					Costs(rapid.SampledFrom([]string{"0", "0.000001", "3", "9000000"}).Draw(t, "price"))(o)
				}
				if rapid.Bool().Draw(t, "clean") {
					emits(rapid.Int64Range(-5, 5).Draw(t, "carbon"))(o)
				}
				if rapid.Bool().Draw(t, "near") {
					away(rapid.Int64Range(-5, 100).Draw(t, "latency"))(o)
				}
				if rapid.Bool().Draw(t, "rated") {
					o.Flavor.Spec.Properties.Reliability = Money(rapid.SampledFrom([]string{"0", "0.5", "1", "7"}).Draw(t, "reliability"))
				}
				o.Location.Region = rapid.SampledFrom([]string{"", "north", "south"}).Draw(t, "region")
			})
		}
		in := []func(*model.Intent){Wants(int32(rapid.IntRange(0, 2).Draw(t, "gpus"))), func(in *model.Intent) { in.Spec.Resources.Named = Amounts("cpu=0 memory=1Gi") }}
		if rapid.Bool().Draw(t, "data") {
			in = append(in, data("north", rapid.Int64Range(0, 1<<40).Draw(t, "size"), rapid.Int64Range(0, 1<<40).Draw(t, "egress")))
		}
		b.Fleet(func(f *v1alpha1.FleetSpec) {
			f.Transfer = []v1alpha1.TransferPrice{{From: "north", To: "south", PerGi: v1alpha1.MustDecimal("0.02")}}
		})
		weights := v1alpha1.Weights{}
		for _, w := range []*float64{&weights.Resources, &weights.Cost, &weights.Latency, &weights.Reliability, &weights.Performance, &weights.Energy} {
			*w = rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "weight")
		}
		if rapid.Bool().Draw(t, "own weights") {
			in = append(in, With(func(s *v1alpha1.IntentSpec) { s.Weights = &weights }))
		} else {
			in = append(in, objective(rapid.SampledFrom([]v1alpha1.Objective{v1alpha1.Balanced, v1alpha1.Cost, v1alpha1.Performance, v1alpha1.Latency, v1alpha1.Energy}).Draw(t, "objective")))
		}
		b.Intent("vision/train", in...)
		e, err := planner.Explain(b.W, "vision", "train")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range e.Offers {
			for name, v := range l.Scores {
				if math.IsNaN(v) || v < 0 || v > 1 {
					t.Fatalf("%s: the term %s is %v", l.Flavor.Ref(), name, v)
				}
			}
			if math.IsNaN(l.Score) || l.Score < 0 || l.Score > 1 {
				t.Fatalf("%s: the score is %v", l.Flavor.Ref(), l.Score)
			}
		}
	})
}
