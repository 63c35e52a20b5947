package match_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

type predicate func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error)

func (p predicate) Eval(in *v1alpha1.ResourceIntent, f *v1alpha1.Flavor, c *v1alpha1.Cluster) (bool, error) {
	return p(in, f, c)
}

// alike is an offer that has much in common with others, and some things of its
// own.
func alike(t *rapid.T, prices []*v1alpha1.Price) func(*model.Offer) {
	seldom := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, what) == 0 }
	return func(o *model.Offer) {
		s := &o.Flavor.Spec
		s.Capacity, s.GPU = Amounts("cpu=64 memory=512Gi"), nil
		if n := rapid.IntRange(0, 2).Draw(t, "cards"); n > 0 {
			Cards(rapid.SampledFrom([]string{"nvidia-h100", "nvidia-a100"}).Draw(t, "model"), 4*n, "80Gi")(o)
		}
		if s.GPU != nil && seldom("parts") {
			s.GPU.Sharing, s.GPU.UnitsPerGPU, s.GPU.Profile = "mig", 7, "1g.10gb"
		}
		if seldom("extended") {
			s.Capacity["rdma/hca"] = v1alpha1.AmountOf(rapid.Int64Range(0, 2).Draw(t, "hca"))
		}
		if s.ScalableTo = nil; seldom("grows") {
			s.ScalableTo = v1alpha1.Resources{"rdma/hca": v1alpha1.AmountOf(rapid.Int64Range(1, 4).Draw(t, "hca that could stand"))}
		}
		s.Architecture = rapid.SampledFrom([]string{"amd64", "amd64", "arm64"}).Draw(t, "architecture")
		o.Location = v1alpha1.Location{Region: rapid.SampledFrom([]string{"", "north", "south"}).Draw(t, "region"), Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")}
		o.Price = rapid.SampledFrom(prices).Draw(t, "price")
		if seldom("steps") {
			s.Partition = &v1alpha1.Partition{Min: Amounts("cpu=2 memory=48Gi"), Step: Amounts("cpu=2 memory=48Gi")}
		}
		if seldom("label") {
			s.Labels = map[string]string{"tier": "gold", v1alpha1.LabelEnforcement: "Soft"}
			s.Class = "fleetbroker"
		}
		if seldom("near") {
			s.Properties.LatencyMs = Ptr(int64(3))
		}
		if seldom("reliable") {
			s.Properties.Reliability = Money("0.999")
		}
		s.Cordon = seldom("cordoned")
		if seldom("unheard") {
			Heard(model.Silent)(o)
		}
	}
}

// choosy is an intent that asks for some of what distinguishes offers.
func choosy(t *rapid.T) func(*model.Intent) {
	seldom := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, what) == 0 }
	return func(in *model.Intent) {
		Wants(int32(rapid.IntRange(0, 2).Draw(t, "gpus")), rapid.SampledFrom([][]string{nil, {"h100"}}).Draw(t, "models")...)(in)
		s := &in.Spec
		p := &s.Placement
		if seldom("share") {
			s.Resources.GPU = &v1alpha1.GPURequest{Share: Money("0.4")}
		}
		if seldom("asks for hca") {
			s.Resources.Named["rdma/hca"] = v1alpha1.AmountOf(1)
		}
		if rapid.Bool().Draw(t, "regions") {
			p.Regions = []string{"north"}
		}
		if seldom("zones") {
			p.Zones = []string{"a"}
		}
		if seldom("architectures") {
			p.Architectures = []string{"arm64"}
		}
		if seldom("providers") {
			p.Providers.Deny = []string{"p0"}
		}
		if seldom("labels") {
			p.Labels = map[string]string{"tier": "gold"}
		}
		if seldom("spread") {
			p.Spread = []v1alpha1.Spread{{By: "zone"}}
		}
		if seldom("latency") {
			p.MaxLatency = v1alpha1.Duration{Duration: 5 * time.Millisecond}
		}
		if seldom("availability") {
			s.SLA = &v1alpha1.SLA{Availability: Money("99.5")}
		}
		if seldom("enforced") {
			s.Enforcement = v1alpha1.EnforceSoft
		}
		if seldom("where") {
			in.Where = predicate(func(_ *v1alpha1.ResourceIntent, f *v1alpha1.Flavor, _ *v1alpha1.Cluster) (bool, error) {
				return f.Metadata.Name > "f4", nil
			})
		}
		if seldom("data") {
			s.Data = &v1alpha1.DataLocation{Region: "north", SizeGi: 100}
		}
		s.Purchase = rapid.SampledFrom([][]v1alpha1.PriceClass{nil, {v1alpha1.Spot}, {v1alpha1.Spot, v1alpha1.OnDemand}}).Draw(t, "purchase")
		if seldom("bounded") {
			AtMost("20")(in)
		}
	}
}

// A class asks the first of many offers for what they have in common, and shows
// of each what it states itself.
func TestClasses_HoldWhatEachOfferYields(t *testing.T) {
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		w := New().Consumer("rome").Provider("p0", "p1").Tenant("ada", "rome")
		w.Fleet(func(f *v1alpha1.FleetSpec) {
			f.Transfer = []v1alpha1.TransferPrice{{From: "north", To: "south", PerGi: v1alpha1.MustDecimal("0.031")}}
			f.Policies = nil
		})
		flat := &v1alpha1.Price{Currency: "EUR", Flat: Money("9")}
		spot := &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("2")}, Spot: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("0.5")}}
		plain := &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("3"), "cpu": v1alpha1.MustDecimal("0.1")}}
		for i := range 20 {
			w.Offer(fmt.Sprintf("p%d/f%d", i%2, i/2), alike(t, []*v1alpha1.Price{nil, flat, spot, plain}))
		}
		for i := range 4 {
			w.Intent(fmt.Sprintf("ada/i%d", i), choosy(t))
		}
		if rapid.Bool().Draw(t, "ruled") {
			w.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "even"}, Predicate: predicate(func(_ *v1alpha1.ResourceIntent, f *v1alpha1.Flavor, _ *v1alpha1.Cluster) (bool, error) {
				return f.Metadata.Name != "f2", nil
			})}}
		}
		m := matcherOf(t, w.W)
		for _, in := range w.W.Intents {
			money := match.NoSpendLimits()
			if b := in.Spec.Budget; b != nil {
				money.Hourly, money.HourlySpot, money.Limited = quantity.Micro(b.MaxHourly.Micro()), quantity.Micro(b.MaxHourly.Micro()), true
			}
			m.Class(ask(in, money))
		}
		n, err := m.Check()
		if err != nil {
			t.Fatal(err)
		}
		checked += n
	})
	if checked == 0 {
		t.Fatal("no class was looked at")
	}
	t.Logf("%d answers of offers", checked)
}
