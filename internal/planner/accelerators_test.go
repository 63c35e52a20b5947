package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// coresAlone asks for cores alone.
var coresAlone = With(func(s *v1alpha1.IntentSpec) {
	s.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=1 memory=1Gi pods=2 ephemeral-storage=1Gi")}
})

func allowed(s *v1alpha1.IntentSpec) { s.Placement.AllowAccelerators = true }

// sells makes an offer sell GPUs by eights.
func sells(s *v1alpha1.FlavorSpec) {
	s.Partition = &v1alpha1.Partition{Min: Amounts("gpu=8 cpu=2"), Step: Amounts("gpu=8 cpu=1")}
}

// TestAccelerators_AreLeftToWhoAsks: what asks for none is placed on offers that have none;
// on others where the intent allows it and nothing else fits, and never for GPUs.
func TestAccelerators_AreLeftToWhoAsks(t *testing.T) {
	world := func(cpuPrice string) *Builder {
		b := paris().Offer("paris/h100", Spec(sells), Costs("0.01", "cpu=0.001", "memoryGi=0.001"))
		if cpuPrice != "" { // cut from the same nodes, a flavor of its own
			b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Pool = "p" }))
			b.Offer("paris/cores", Capacity("cpu=8 memory=64Gi pods=100 ephemeral-storage=1Ti"), Costs("0", "cpu="+cpuPrice), Spec(func(s *v1alpha1.FlavorSpec) { s.Pool = "p" }))
		}
		return b
	}
	for name, c := range map[string]struct {
		b      *Builder
		how    func(*v1alpha1.IntentSpec)
		want   string // flavor
		reason string
	}{
		"only GPUs":               {world(""), nil, "", "the only offer does not fit: it has accelerators, which are left to who asks for some (placement.allowAccelerators)"},
		"only GPUs, allowed":      {world(""), allowed, "h100", ""},
		"cores of the same nodes": {world("5"), nil, "cores", ""},
		"cores that cost more":    {world("5"), allowed, "cores", ""},
		"cores are not for sale":  {world("5").Offer("paris/cores", Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = true })), allowed, "h100", ""},
		"by thrift":               {world("5"), func(s *v1alpha1.IntentSpec) { allowed(s); s.Objective = v1alpha1.Cost }, "cores", ""},
		"a device that counts":    {world("5").Offer("paris/cores", Capacity("cpu=8 memory=64Gi pods=100 ephemeral-storage=1Ti habana.ai/gaudi=8")), nil, "", "none of 2 offers fits: 2 have accelerators, which are left"},
		"a device that does not":  {world("5").Offer("paris/cores", Capacity("cpu=8 memory=64Gi pods=100 ephemeral-storage=1Ti rdma/hca=8")), nil, "cores", ""},
		"a name of the fleet's": {world("5").Offer("paris/cores", Capacity("cpu=8 memory=64Gi pods=100 ephemeral-storage=1Ti example.org/npu=8")).
			Fleet(func(s *v1alpha1.FleetSpec) { s.Accelerators = []string{"example.org/*"} }), nil, "", "2 have accelerators"},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.b.Intent("vision/web", coresAlone)
			if c.how != nil {
				b.Intent("vision/web", With(c.how))
			}
			p := b.Round()
			d, got := Of(p, "vision/web"), b.Contracts("vision/web")
			if c.want == "" {
				if len(got) > 0 || !strings.Contains(d.Reason, c.reason) {
					t.Fatalf("got %q, want %q\n%s", d.Reason, c.reason, describe(p))
				}
				return
			}
			if len(got) != 1 || got[0].Spec.Flavor != c.want || got[0].Spec.GPUs != nil {
				t.Fatalf("want %s without GPUs\n%s", c.want, describe(p))
			}
			for r, a := range got[0].Spec.Resources {
				if strings.Contains(r, "/") && !a.IsZero() {
					t.Errorf("%s %s", r, a.Canonical(r))
				}
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// Where no offer has none, the field that helps is named, with what it would cost.
func TestAccelerators_FieldIsNamed(t *testing.T) {
	b := paris().Offer("paris/h100", Costs("2", "cpu=0.5")).Intent("vision/web", coresAlone)
	d := Of(b.Plan(), "vision/web")
	if !slices.Equal(d.Try, []string{"placement.allowAccelerators: true  # 0.50 EUR/h"}) || !slices.Equal(d.Near, []string{"paris/h100 has accelerators"}) {
		t.Errorf("near %q, try %q", d.Near, d.Try)
	}
}

// What is there stays on its terms: it is neither moved nor ended because a new rule would
// not place it, also when the intent changes otherwise, and it does not grow.
func TestAccelerators_WhatExistsIsKept(t *testing.T) {
	b := paris().Intent("vision/web", coresAlone, With(allowed))
	b.Round()
	was := b.Contracts("vision/web")[0]
	b.Intent("vision/web", With(func(s *v1alpha1.IntentSpec) { s.Placement.AllowAccelerators = false }), func(in *model.Intent) { in.Metadata.Labels = map[string]string{"a": "b"} })
	b.Tick(1e9).Deliver().Round()
	if got := b.Contracts("vision/web"); len(got) != 1 || got[0].Metadata.Name != was.Metadata.Name || got[0].Spec.Provider != was.Spec.Provider {
		t.Fatalf("%+v", got)
	}
	b.Intent("vision/web", With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(2000) }))
	p := b.Tick(1e9).Round()
	if got := b.Contracts("vision/web"); len(got) != 1 || got[0].Spec.Resources[v1alpha1.CPU] != v1alpha1.AmountOf(1000) {
		t.Fatalf("it grew\n%s", describe(p))
	}
}

// TestAccelerators_AreNotFree: an accelerator that an offer names no price for is not sold,
// and where the price is missing is said; anything else without a price costs nothing.
func TestAccelerators_AreNotFree(t *testing.T) {
	price := func(per, spot v1alpha1.UnitPrices) func(*model.Offer) {
		return func(o *model.Offer) { o.Price = &v1alpha1.Price{Currency: "EUR", PerHour: per, Spot: spot} }
	}
	one, nothing := v1alpha1.MustDecimal("1"), v1alpha1.Zero
	flat := v1alpha1.MustDecimal("16")
	for name, c := range map[string]struct {
		offer    []func(*model.Offer)
		how      func(*v1alpha1.IntentSpec)
		rejected string // requirement, "" for none
		note     bool
		unpriced string
	}{
		"no price for GPUs":       {[]func(*model.Offer){price(v1alpha1.UnitPrices{"cpu": one}, nil)}, nil, "price.gpu", true, ""},
		"nothing is a price":      {[]func(*model.Offer){price(v1alpha1.UnitPrices{"cpu": one, "gpu": nothing}, nil)}, nil, "", false, "ephemeral-storage memory"},
		"GPUs alone":              {[]func(*model.Offer){price(v1alpha1.UnitPrices{"gpu": one}, nil)}, nil, "", false, "cpu ephemeral-storage memory"},
		"flat":                    {[]func(*model.Offer){func(o *model.Offer) { o.Price = &v1alpha1.Price{Currency: "EUR", Flat: &flat} }}, nil, "", false, ""},
		"unpriced":                {[]func(*model.Offer){func(o *model.Offer) { o.Price = nil }}, nil, "", false, ""},
		"a price of spot alone":   {[]func(*model.Offer){price(v1alpha1.UnitPrices{"cpu": one}, v1alpha1.UnitPrices{"gpu": one})}, nil, "price.gpu", false, ""},
		"… which is bought":       {[]func(*model.Offer){price(v1alpha1.UnitPrices{"cpu": one}, v1alpha1.UnitPrices{"gpu": one})}, func(s *v1alpha1.IntentSpec) { s.Purchase = v1alpha1.PriceClasses{v1alpha1.OnDemand, v1alpha1.Spot} }, "", false, "ephemeral-storage memory"},
		"not asked for":           {[]func(*model.Offer){price(v1alpha1.UnitPrices{"cpu": one}, nil)}, func(s *v1alpha1.IntentSpec) { s.Resources.GPU = nil; allowed(s) }, "", true, "ephemeral-storage memory"},
		"another accelerator":     {[]func(*model.Offer){Capacity("gpu=8 cpu=64 memory=512Gi pods=100 google.com/tpu=4"), price(v1alpha1.UnitPrices{"gpu": one}, nil)}, func(s *v1alpha1.IntentSpec) { s.Resources.Named["google.com/tpu"] = v1alpha1.AmountOf(1) }, "price.google.com/tpu", true, ""},
		"a device without prices": {[]func(*model.Offer){Capacity("gpu=8 cpu=64 memory=512Gi pods=100 rdma/hca=4"), price(v1alpha1.UnitPrices{"gpu": one}, nil)}, func(s *v1alpha1.IntentSpec) { s.Resources.Named["rdma/hca"] = v1alpha1.AmountOf(1) }, "", false, "cpu ephemeral-storage memory rdma/hca"},
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Offer("paris/h100", c.offer...).Intent("vision/train", Wants(1))
			if c.how != nil {
				b.Intent("vision/train", With(c.how))
			}
			p := b.Plan()
			d := Of(p, "vision/train")
			if placed := d.Action == planner.Place; placed != (c.rejected == "") || c.rejected != "" && d.Rejected[c.rejected] != 1 {
				t.Errorf("%s, rejected %v; want %q", d.Action, d.Rejected, c.rejected)
			}
			if note := strings.Contains(strings.Join(p.Notes, "\n"), "cluster paris: no price is named for"); note != c.note {
				t.Errorf("notes %q", p.Notes)
			}
			if len(d.Contracts) == 1 && strings.Join(d.Contracts[0].Unpriced, " ") != c.unpriced {
				t.Errorf("costs nothing: %q, want %q", d.Contracts[0].Unpriced, c.unpriced)
			}
		})
	}
}

// TestSuggestions_StayWithTheVendor: of models that were not asked for only those of the
// same vendor are suggested, the cheapest first, and a typo is not repeated.
func TestSuggestions_StayWithTheVendor(t *testing.T) {
	b := paris().Provider("oslo", "lyon").Drop("paris/h100").
		Offer("paris/a100", Cards("nvidia-a100", 8, "40Gi"), Costs("3")).
		Offer("lyon/l40s", Cards("nvidia-l40s", 8, "48Gi"), Costs("1")).
		Offer("oslo/mi300x", Cards("amd-mi300x", 8, "192Gi"), Costs("0.5"), Spec(func(s *v1alpha1.FlavorSpec) { s.GPU.Vendor = "amd" }))
	for _, c := range [][3]string{
		{"H100", "resources.gpu.models: [H100, nvidia-l40s]  # 1.00 EUR/h", "resources.gpu.models: [H100, nvidia-a100]  # 3.00 EUR/h"},
		{"H1O0", "resources.gpu.models: [nvidia-l40s]  # 1.00 EUR/h", "resources.gpu.models: [nvidia-a100]  # 3.00 EUR/h"},
	} {
		b.Intent("vision/train", Wants(1, c[0]))
		if d := Of(b.Plan(), "vision/train"); !slices.Equal(d.Try, c[1:]) {
			t.Errorf("%s: try %q, want %q", c[0], d.Try, c[1:])
		}
	}
}

// TestFacts_OfElectricityAndReliability: an offer that does not state a fact fails who
// bounds it.
func TestFacts_OfElectricityAndReliability(t *testing.T) {
	with := func(carbon *int64, reliability string) func(*model.Offer) {
		return Spec(func(s *v1alpha1.FlavorSpec) {
			s.Properties.Carbon, s.Properties.Reliability = carbon, nil
			if reliability != "" {
				s.Properties.Reliability = Money(reliability)
			}
		})
	}
	carbon := With(func(s *v1alpha1.IntentSpec) { s.Placement.MaxCarbon = Ptr(int64(100)) })
	reliable := With(func(s *v1alpha1.IntentSpec) { s.Placement.MinReliability = Money("0.99") })
	for name, c := range map[string]struct {
		offer    func(*model.Offer)
		ask      func(*model.Intent)
		rejected string
	}{
		"clean":              {with(Ptr(int64(100)), ""), carbon, ""},
		"dirty":              {with(Ptr(int64(101)), ""), carbon, "placement.maxCarbon"},
		"nobody knows":       {with(nil, ""), carbon, "placement.maxCarbon"},
		"reliable":           {with(nil, "0.99"), reliable, ""},
		"less reliable":      {with(nil, "0.989"), reliable, "placement.minReliability"},
		"of unknown history": {with(nil, ""), reliable, "placement.minReliability"},
	} {
		p := paris().Offer("paris/h100", c.offer).Intent("vision/train", Wants(1), c.ask).Plan()
		if d := Of(p, "vision/train"); (d.Action == planner.Place) != (c.rejected == "") || c.rejected != "" && d.Rejected[c.rejected] != 1 {
			t.Errorf("%s: %s %v", name, d.Action, d.Rejected)
		}
	}
}

// TestEnforcement_IsKnown: Hard is placed where the level is known to be Hard alone, and a
// level that falls below what a contract asks for makes it Degraded until it is back.
func TestEnforcement_IsKnown(t *testing.T) {
	level := func(class, level string) func(*model.Offer) {
		return Spec(func(s *v1alpha1.FlavorSpec) {
			s.Class, s.Labels = class, nil
			if level != "" {
				s.Labels = map[string]string{v1alpha1.LabelEnforcement: level}
			}
		})
	}
	asks := func(e v1alpha1.Enforcement) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Enforcement = e })
	}
	cluster := func(change func(*v1alpha1.ClusterSpec)) func(*v1alpha1.Cluster) {
		return func(c *v1alpha1.Cluster) { change(&c.Spec) }
	}
	declared := func(grants string) func(*v1alpha1.Cluster) {
		return cluster(func(s *v1alpha1.ClusterSpec) { s.Liqo.Classes = []v1alpha1.SliceClass{{Name: "gold", Grants: grants}} })
	}
	for name, c := range map[string]struct {
		offer   func(*model.Offer)
		cluster func(*v1alpha1.Cluster)
		ask     v1alpha1.Enforcement
		fits    bool
	}{
		"Hard":                     {level("fleetbroker", "Hard"), nil, v1alpha1.EnforceHard, true},
		"not known":                {level("fleetbroker", ""), nil, v1alpha1.EnforceHard, false},
		"not known, Soft":          {level("fleetbroker", ""), nil, v1alpha1.EnforceSoft, true},
		"stated by the cluster":    {level("fleetbroker", ""), cluster(func(s *v1alpha1.ClusterSpec) { s.Labels = map[string]string{v1alpha1.LabelEnforcement: "Hard"} }), v1alpha1.EnforceHard, true},
		"the report goes first":    {level("fleetbroker", "Soft"), cluster(func(s *v1alpha1.ClusterSpec) { s.Labels = map[string]string{v1alpha1.LabelEnforcement: "Hard"} }), v1alpha1.EnforceHard, false},
		"Soft is not Hard":         {level("fleetbroker", "Soft"), nil, v1alpha1.EnforceHard, false},
		"None is not Soft":         {level("fleetbroker", "None"), nil, v1alpha1.EnforceSoft, false},
		"Liqo's own class":         {level("default", "Hard"), nil, v1alpha1.EnforceHard, false},
		"a class that agents give": {level("gold", "Hard"), declared("agent"), v1alpha1.EnforceHard, true},
		"a class of others":        {level("gold", "Hard"), declared("others"), v1alpha1.EnforceHard, false},
	} {
		b := paris().Offer("paris/h100", c.offer).Intent("vision/train", Wants(1), asks(c.ask))
		if c.cluster != nil {
			b.Cluster("paris", c.cluster)
		}
		if p := b.Plan(); (Of(p, "vision/train").Action == planner.Place) != c.fits {
			t.Errorf("%s: %s", name, describe(p))
		}
	}
	b := paris().Offer("paris/h100", level("fleetbroker", "Hard")).Intent("vision/train", Wants(1), asks(v1alpha1.EnforceHard))
	b.Round()
	for _, step := range []struct {
		level  string
		phase  v1alpha1.Phase
		reason string
	}{{"Hard", v1alpha1.PhaseActive, ""}, {"Soft", v1alpha1.PhaseDegraded, "EnforcementFell"}, {"", v1alpha1.PhaseActive, ""}, {"None", v1alpha1.PhaseDegraded, "EnforcementFell"}, {"Hard", v1alpha1.PhaseActive, ""}} {
		b.Tick(1e9).Deliver().Offer("paris/h100", level("fleetbroker", step.level)).Round()
		if got := b.Contracts("vision/train"); len(got) != 1 || got[0].Status.Phase != step.phase || got[0].Status.Reason != step.reason {
			t.Fatalf("level %q: got %+v", step.level, got[0].Status)
		}
	}
}

// TestRules_WhatIsOlderIsCounted: a contract records the rules that it was placed by, and
// those of older ones are counted until they are resized.
func TestRules_WhatIsOlderIsCounted(t *testing.T) {
	const older = "1 contract was placed under older rules, and is kept on its terms"
	b := paris().Intent("vision/train", Wants(1))
	b.W.Rules = planner.Rules - 1
	b.Round()
	b.W.Rules = 0
	if c := b.Contracts("vision/train")[0]; c.Decision.Rules != planner.Rules-1 || !slices.Contains(planner.BeyondLimits(&b.W), older) {
		t.Errorf("rules %d, %q", c.Decision.Rules, planner.BeyondLimits(&b.W))
	}
	wantOnlyKeeps(t, b)
	b.Intent("vision/train", Wants(2)).Round()
	if c := b.Contracts("vision/train")[0]; c.Decision.Rules != planner.Rules || slices.Contains(planner.BeyondLimits(&b.W), older) {
		t.Errorf("rules %d, %q", c.Decision.Rules, planner.BeyondLimits(&b.W))
	}
}

// A TPU's topology is a label of its flavor: slices of another shape with as many chips free
// are not taken for it, and what is missing is said by the label.
func TestAccelerators_OfOneTopology(t *testing.T) {
	const label = "cloud.google.com/gke-tpu-topology"
	tpus := func(topology string, chips string) []func(*model.Offer) {
		return []func(*model.Offer){
			Capacity("cpu=224 memory=1536Gi pods=100 ephemeral-storage=1Ti google.com/tpu=64"), Costs("0", "google.com/tpu="+chips),
			Spec(func(s *v1alpha1.FlavorSpec) { s.GPU, s.Labels = nil, map[string]string{label: topology} }),
		}
	}
	world := func(wanted string) *Builder {
		return paris().Drop("paris/h100").Provider("ashburn").Offer("ashburn/v5e-8", tpus("2x4", "1.2")...).Offer("ashburn/v5e-16", tpus("4x4", "1.1")...).
			Intent("vision/train", With(func(s *v1alpha1.IntentSpec) {
				s.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=24 memory=192Gi pods=2 ephemeral-storage=1Gi google.com/tpu=8")}
				s.Placement.Labels = map[string]string{label: wanted}
			}))
	}
	for topology, flavor := range map[string]string{"2x4": "v5e-8", "4x4": "v5e-16"} {
		b := world(topology)
		p := b.Round()
		if got := b.Contracts("vision/train"); len(got) != 1 || got[0].Spec.Flavor != flavor || got[0].Spec.Resources["google.com/tpu"] != v1alpha1.AmountOf(8) {
			t.Errorf("%s: want %s\n%s", topology, flavor, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
	b := world("4x8")
	p := b.Round()
	if d := Of(p, "vision/train"); len(b.Contracts("vision/train")) > 0 || d.Rejected["placement.labels"] != 2 {
		t.Errorf("4x8: rejected %v\n%s", d.Rejected, describe(p))
	}
}

// What may be next to accelerators is so only where it fits nowhere else in any way: not to
// share a domain that it only prefers, and not to be whole where it may be in parts. By the
// rules before 23 it was.
func TestAllowAccelerators_OnlyWhereNothingElseFits(t *testing.T) {
	allow := With(func(s *v1alpha1.IntentSpec) { s.Placement.AllowAccelerators = true })
	split := With(func(s *v1alpha1.IntentSpec) { s.Split = &v1alpha1.Split{MaxParts: 3} })
	required := With(func(s *v1alpha1.IntentSpec) { s.Placement.Within = &v1alpha1.Within{By: "provider"} })
	cpu := func(n string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) {
			s.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=" + n + " memory=1Gi")}
		})
	}
	for name, c := range map[string]struct {
		rules   int
		changes []func(*model.Intent)
		want    string
	}{
		"replicas":             {0, []func(*model.Intent){cpu("16"), Times(8), allow}, "lyon/cpu paris/cpu"},
		"more than fit":        {0, []func(*model.Intent){cpu("16"), Times(12), allow}, "lyon/cpu paris/cpu paris/h100"},
		"in one provider":      {0, []func(*model.Intent){cpu("16"), Times(8), allow, required}, "paris/cpu paris/h100"},
		"in parts":             {0, []func(*model.Intent){cpu("120"), split, allow}, "lyon/cpu paris/cpu"},
		"replicas by rules 22": {draft.RulesAskedFirst - 1, []func(*model.Intent){cpu("16"), Times(8), allow}, "paris/cpu paris/h100"},
		"in parts by them":     {draft.RulesAskedFirst - 1, []func(*model.Intent){cpu("120"), split, allow}, "paris/h100"},
	} {
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
			Offer("paris/cpu", Capacity("cpu=80 memory=512Gi pods=500 ephemeral-storage=10Ti"), Costs("0", "cpu=0.02")).
			Offer("lyon/cpu", Capacity("cpu=64 memory=512Gi pods=500 ephemeral-storage=10Ti"), Costs("0", "cpu=0.03")).
			Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Capacity("cpu=512 memory=2Ti pods=500 ephemeral-storage=10Ti"), Costs("2", "cpu=0.02"))
		b.Intent("vision/web", c.changes...)
		b.W.Rules = c.rules
		var at []string
		d := Of(b.Plan(), "vision/web")
		for _, c := range d.Contracts {
			at = append(at, c.Provider+"/"+c.Flavor)
		}
		slices.Sort(at)
		if got := strings.Join(slices.Compact(at), " "); got != c.want {
			t.Errorf("%s: it is on %q, want %q (%s)", name, got, c.want, d.Reason)
		}
	}
}
