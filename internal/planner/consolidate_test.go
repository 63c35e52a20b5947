package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func consolidating(mode, threshold string, hold time.Duration) func(*v1alpha1.FleetSpec) {
	return func(f *v1alpha1.FleetSpec) {
		f.Consolidation = v1alpha1.Consolidation{Mode: mode, Threshold: Money(threshold), Hold: v1alpha1.Duration{Duration: hold}}
	}
}

// beforeLyon is vision/train on paris at 4.00 for its card, 10 minutes before
// lyon appears at a price.
func beforeLyon(t *testing.T, mode, price string, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Fleet(consolidating(mode, "0.5", 30*time.Minute)).
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4")).
		Intent("vision/train", append([]func(*model.Intent){Wants(1, "H100")}, changes...)...)
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(9*time.Minute).Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs(price))
	return b
}

func TestConsolidationProposes(t *testing.T) {
	b := beforeLyon(t, "propose", "1.90")
	p := want(t, b, planner.Keep, "")
	d := Of(p, "vision/train")
	if len(d.Proposals) != 1 || d.Proposals[0].Flavor != "lyon/h100" || d.Proposals[0].Saves.String() != "2.1" || d.Proposals[0].Since != b.W.Now || len(p.States) != 1 {
		t.Fatalf("%+v\n%s", d.Proposals, describe(p))
	}
	if !strings.Contains(d.Reason, "to lyon/h100 and save 2.10 an hour") {
		t.Fatal(d.Reason)
	}
	// Written once, and it stays while the offer is better, by however little.
	for _, price := range []string{"1.90", "1.10", "3.99"} {
		b.Tick(time.Hour).Offer("lyon/h100", Costs(price))
		if p := b.Round(); p.Changes() {
			t.Fatalf("at %s:\n%s", price, describe(p))
		}
	}
	b.Tick(time.Hour).Offer("lyon/h100", Costs("4"))
	want(t, b, planner.Keep, "")
	if st := b.W.Ledger.State("vision", "train"); len(st.Status.Proposals) != 0 {
		t.Fatalf("%+v", st.Status.Proposals)
	}
}

func TestConsolidationMoves(t *testing.T) {
	for name, c := range map[string]struct {
		price  string
		intent func(*model.Intent)
		world  func(*Builder)
		moves  bool
	}{
		"half of the price is saved":      {price: "2.00", moves: true},
		"a little less":                   {price: "2.01"},
		"disruption counts with priority": {price: "2.00", intent: Priority(100), moves: true},
		"beside one that is less disturbed": {price: "2.00", intent: Priority(100), world: func(b *Builder) {
			b.Intent("vision/other", Wants(1, "H100"), func(in *model.Intent) { in.Spec.Placement.Regions = []string{"north"} })
		}},
		"objective cost": {price: "1.00", intent: cheap, moves: true},
		"but where the intent wants to be is nearer": {price: "1.00", intent: With(func(s *v1alpha1.IntentSpec) { s.Weights = &v1alpha1.Weights{Latency: 1} })},
		"not into what it may not have":              {price: "1.00", intent: With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{"lyon"} })},
		"not where there is no room":                 {price: "1.00", world: func(b *Builder) { b.Offer("lyon/h100", Capacity("gpu=0")) }},
		"not from spot to spot": {price: "9", intent: With(func(s *v1alpha1.IntentSpec) { s.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot} }), world: func(b *Builder) {
			b.Offer("lyon/h100", func(o *model.Offer) { o.Price.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("0.10")} })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
				Fleet(consolidating("apply", "0.5", 30*time.Minute)).
				Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4"), In("north", ""), func(o *model.Offer) {
					o.Price.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("4")}
					o.Flavor.Spec.Properties.LatencyMs = Ptr(int64(5))
				})
			if c.intent == nil {
				c.intent = func(*model.Intent) {}
			}
			b.Intent("vision/train", Wants(1, "H100"), c.intent)
			b.Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("20"))
			b.Fleet(func(f *v1alpha1.FleetSpec) { f.Weights = &v1alpha1.Weights{Cost: 1} })
			if c.world != nil {
				c.world(b)
			}
			b.Round()
			b.Tick(time.Minute).Deliver().Round()
			b.Offer("lyon/h100", func(o *model.Offer) { o.Price.PerHour = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(c.price)} })
			b.Round()
			b.Tick(29 * time.Minute)
			if p := b.Round(); Of(p, "vision/train").Action != planner.Keep {
				t.Fatalf("before the hold is over:\n%s", describe(p))
			}
			b.Tick(time.Minute)
			p := b.Round()
			if got := Of(p, "vision/train").Code == lifecycle.CodeConsolidated; got != c.moves {
				t.Fatalf("moves %v:\n%s", got, describe(p))
			}
			wantOnlyKeeps(t, b)
			if !c.moves {
				return
			}
			if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" || b.Contracts("vision/train")[0].Status.Target != v1alpha1.PhaseReleased {
				t.Fatal(on(b))
			}
		})
	}
}

// With prices as they are nothing comes back to where it was, whatever comes
// and goes, and no move is made below its threshold or before its time.
func TestConsolidationNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hold := time.Duration(rapid.IntRange(1, 60).Draw(t, "hold")) * time.Minute
		b := New().Consumer("rome").Tenant("vision", "rome").Fleet(consolidating("apply", "0.2", hold))
		n := rapid.IntRange(2, 5).Draw(t, "offers")
		for i := range n {
			p := fmt.Sprintf("p%d", i)
			b.Provider(p).Offer(p+"/h100", Cards("nvidia-h100", rapid.IntRange(1, 4).Draw(t, "cards"), "80Gi"), Costs(fmt.Sprintf("%d.%d", rapid.IntRange(1, 9).Draw(t, "price"), rapid.IntRange(0, 9).Draw(t, "cents")), "cpu=0.01"))
		}
		been := map[string]map[string]bool{} // replica → flavors left by a move
		for step := range 40 {
			ref := fmt.Sprintf("vision/i%d", rapid.IntRange(0, 4).Draw(t, "intent"))
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				objective := rapid.SampledFrom([]v1alpha1.Objective{"", v1alpha1.Cost}).Draw(t, "objective")
				b.Intent(ref, Wants(1, "H100"), Priority(int32(rapid.IntRange(0, 3).Draw(t, "priority")*100)), With(func(s *v1alpha1.IntentSpec) { s.Objective = objective }))
				delete(been, ref)
			case 2:
				b.Remove(ref)
				delete(been, ref)
			}
			b.Tick(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute).Deliver()
			p := b.Round()
			for i := range p.Contracts {
				before, after := p.Contracts[i].Before, p.Contracts[i].After
				if before == nil || after == nil || !strings.HasPrefix(after.Status.Reason, lifecycle.CodeConsolidated+":") || before.Status.Phase != v1alpha1.PhaseActive {
					continue
				}
				ref := "vision/" + after.Spec.Intent.Name
				next := b.Contracts(ref)[len(b.Contracts(ref))-1]
				if been[ref] == nil {
					been[ref] = map[string]bool{}
				}
				been[ref][before.Spec.Provider] = true
				if been[ref][next.Spec.Provider] {
					t.Fatalf("step %d: %s comes back to %s\n%s", step, ref, next.Spec.Provider, describe(p))
				}
				if next.Spec.Price.Hourly.Cmp(before.Spec.Price.Hourly) >= 0 {
					t.Fatalf("step %d: %s goes from %s to %s an hour", step, ref, before.Spec.Price.Hourly, next.Spec.Price.Hourly)
				}
				state := p.States
				for k := range state {
					if state[k].Before != nil && state[k].Before.Metadata.Name == after.Spec.Intent.Name {
						for _, pr := range state[k].Before.Status.Proposals {
							if pr.Contract == after.Metadata.Name && b.W.Now.Sub(pr.Since.Time) < hold {
								t.Fatalf("step %d: %s moves %s after it was proposed", step, ref, b.W.Now.Sub(pr.Since.Time))
							}
						}
					}
				}
			}
			if again := b.Plan(); again.Changes() {
				t.Fatalf("step %d: planning again changes:\n%s", step, describe(again))
			}
		}
	})
}

// What a place is worth to others decides whether a contract moves there, and is no money that
// is saved: people are shown what the price falls by.
func TestConsolidation_SavesIsMoney(t *testing.T) {
	for mode, within := range map[string]v1alpha1.WithinPolicy{"alone": v1alpha1.WithinNone, "together": ""} {
		b := choosy(8, 0, "2.9", 0).Tenant("other", "rome").Fleet(consolidating("apply", "0.01", time.Minute)).
			Fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money("1.2") }).
			Intent("other/flex", Wants(2), Times(2), cheapest, With(func(s *v1alpha1.IntentSpec) {
				s.Placement.Within = &v1alpha1.Within{By: "provider", Policy: within}
			}))
		b.Round()
		b.Tick(time.Minute).Deliver().Round()
		for i := range 3 {
			b.Offer(fmt.Sprintf("paris/h100-%d", 97+i), Cards("nvidia-h100", 4, "80Gi"), Costs("2"))
		}
		p := b.Round()
		d := b.W.Ledger.State("other", "flex")
		if len(d.Status.Proposals) == 0 {
			t.Errorf("%s: nothing is proposed\n%s", mode, describe(p))
		}
		for _, one := range d.Status.Proposals {
			if one.Saves.Text() != "1.80" {
				t.Errorf("%s: a proposal saves %s, want 1.80, 2 GPUs from 2.90 to 2.00", mode, one.Saves.Text())
			}
		}
		b.Tick(2 * time.Minute)
		p = b.Round()
		want := map[string]string{"alone": "saves 1.80 EUR/h", "together": "which saves 3.60 EUR/h"}[mode]
		if d := Of(p, "other/flex"); !strings.Contains(d.Reason, want) {
			t.Errorf("%s: got %q, want %q\n%s", mode, d.Reason, want, describe(p))
		}
	}
}
