package planner_test

import (
	"fmt"
	"reflect"
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

// Batches of all kinds of intents are kept together by no more than their
// commit: what is promised of one plan holds for them.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		for i := range rapid.IntRange(2, 14).Draw(t, "intents") {
			tenant := rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "tenant")
			s.Intent(fmt.Sprintf("%s/b%02d", tenant, i), func(in *model.Intent) {
				s.anyIntent(in)
				in.Spec.Suspend, in.Spec.Stage = false, ""
				if rapid.IntRange(0, 4).Draw(t, "cost") > 0 {
					in.Spec.Objective = v1alpha1.Cost
				}
			})
		}
		before := s.W
		p := s.Plan()
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), describe(p))
		}
		if other := planner.Decide(shuffled(before, 42)); !reflect.DeepEqual(p, other) {
			fail("another order gives another plan:\n%s", describe(other))
		}
		s.Apply(p)
		checkPlan(before, p, s.W.Ledger, fail)
		for range 2 {
			if again := s.Plan(); again.Changes() {
				fail("planning again changes:\n%s", describe(again))
			}
			s.Tick(0 * time.Second)
		}
	})
}

// Who has an alternative lets go first who has none, and of those that ask for
// whole cards the biggest goes first.
func TestTheLeastFlexibleGoesFirst(t *testing.T) {
	or := func(model string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) {
			s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 4, Models: []string{model}}}}
		})
	}
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi")).Offer("lyon/a100", Cards("nvidia-a100", 4, "80Gi")).
		Intent("vision/a", Wants(4, "H100"), or("A100")).Intent("vision/b", Wants(4, "H100"))
	b.Round()
	if places(b, "vision/a") != "lyon" || places(b, "vision/b") != "paris" {
		t.Fatalf("a on %q, b on %q", places(b, "vision/a"), places(b, "vision/b"))
	}
	b = New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi")).Offer("lyon/h100", Cards("nvidia-h100", 4, "80Gi")).
		Intent("vision/a", Wants(2, "H100")).Intent("vision/b", Wants(2, "H100")).Intent("vision/c", Wants(4, "H100"))
	p := b.Round()
	if s := p.Summary(); s[planner.Place] != 3 {
		t.Fatal(describe(p))
	}
}

// Of parts of cards the order is that of their names: their measure of what is
// stranded looks after the big ones, and the biggest first would leave gaps.
func TestSharesGoByName(t *testing.T) {
	b := sharing(1, 10, "time-slicing").Intent("vision/a", wantsUnits(6, "time-slicing"), queueFail).Intent("vision/b", wantsUnits(8, "time-slicing"), queueFail)
	p := b.Round()
	if Of(p, "vision/a").Action != planner.Place || Of(p, "vision/b").Action != planner.Refuse {
		t.Fatal(describe(p))
	}
}

func queueFail(in *model.Intent) { in.Spec.Queue.Policy = "fail" }

// scarce is a market in which one after the other is expensive: whoever comes first
// takes the place that another needs.
func scarce() *Builder {
	return New().Consumer("rome").Provider("paris", "lyon", "berlin").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("2")).
		Offer("lyon/a100", Cards("nvidia-a100", 4, "80Gi"), Costs("3")).
		Offer("berlin/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("9"))
}

func cheapest(in *model.Intent) { in.Spec.Objective = v1alpha1.Cost }

// together adds intents that are first seen in one commit.
func TestBatchMakesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Builder)
		want    map[string]string
		because bool
	}{
		"the choosy one goes first anyway": {
			func(b *Builder) {
				b.Intent("vision/any", Wants(4), cheapest).Intent("vision/choosy", Wants(4, "H100"), cheapest)
			},
			map[string]string{"any": "lyon/a100", "choosy": "paris/h100"}, false,
		},
		"one with many cores leaves the cheap cards": {
			// As flexible as the others and bigger, it goes first and takes all cores.
			func(b *Builder) {
				b.Offer("paris/h100", Capacity("cpu=32")).Drop("berlin/h100").
					Intent("vision/wide", Wants(2), cheapest, With(func(s *v1alpha1.IntentSpec) {
						s.Resources.Named = s.Resources.Named.Clone()
						s.Resources.Named["cpu"] = Amounts("cpu=30")["cpu"]
					})).
					Intent("vision/x", Wants(2), cheapest).Intent("vision/y", Wants(2), cheapest)
			},
			map[string]string{"wide": "lyon/a100", "x": "paris/h100", "y": "paris/h100"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := scarce()
			c.change(b)
			p := b.Round()
			for intent, where := range c.want {
				held := b.Contracts("vision/" + intent)
				if len(held) != 1 || held[0].Spec.Provider+"/"+held[0].Spec.Flavor != where {
					t.Fatalf("%s, want it on %s:\n%s", intent, where, describe(p))
				}
			}
			said := false
			for intent := range c.want {
				said = said || strings.Contains(Of(p, "vision/"+intent).Reason, "first seen together")
			}
			if said != c.because {
				t.Fatal(describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// What another commit brought is not moved, whatever that would save.
func TestBatchLeavesOthersAlone(t *testing.T) {
	b := scarce().Offer("lyon/a100", Capacity("gpu=4")).Intent("vision/first", Wants(4), cheapest)
	b.Round()
	b.Tick(time.Minute).Intent("vision/second", Wants(4, "H100"), cheapest)
	p := b.Round()
	if c := b.Contracts("vision/first")[0]; c.Spec.Provider != "paris" {
		t.Fatal(describe(p))
	}
	if c := b.Contracts("vision/second")[0]; c.Spec.Provider != "berlin" {
		t.Fatal(describe(p))
	}
}

// A tenant's budget holds for what a repair moves too.
func TestBatchRespectsBudgets(t *testing.T) {
	b := scarce().Tenant("poor", "rome", func(s *v1alpha1.TenantSpec) {
		s.Budget = &v1alpha1.TenantBudget{Hourly: Money("9"), Currency: "EUR"}
	}).Drop("berlin/h100").
		Offer("paris/h100", Capacity("cpu=32")).
		Intent("poor/wide", Wants(4), cheapest, With(func(s *v1alpha1.IntentSpec) {
			s.Resources.Named = s.Resources.Named.Clone()
			s.Resources.Named["cpu"] = Amounts("cpu=30")["cpu"]
		})).
		Intent("vision/x", Wants(2), cheapest).Intent("vision/y", Wants(2), cheapest).Intent("vision/z", Wants(2), cheapest)
	p := b.Round()
	if c := b.Contracts("poor/wide"); len(c) != 1 || c[0].Spec.Provider != "paris" {
		t.Fatal(describe(p)) // on lyon/a100 it would cost 12 an hour
	}
}

// A gang of which only a part fits waits whole, however many others of its
// batch the repair seats again.
func TestBatchKeepsGangsWhole(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Builder)
		pair   int // contracts
	}{
		"a quota for one of two": {
			func(b *Builder) {
				b.Tenant("poor", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(4))} }).
					Intent("poor/big", Wants(3), cheapest)
			}, 0,
		},
		"room for one of two": {
			func(b *Builder) { b.Drop("lyon/a100").Drop("berlin/h100") }, 0,
		},
		"a quota for both": {
			func(b *Builder) {
				b.Tenant("poor", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(5))} }).
					Intent("poor/big", Wants(3), cheapest)
			}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := scarce().Tenant("poor", "rome")
			c.change(b)
			b.Intent("poor/pair", Wants(1), Times(2), cheapest).Intent("vision/x", Wants(1), Times(3), cheapest)
			p := b.Round()
			if held := b.Contracts("poor/pair"); len(held) != c.pair {
				t.Fatalf("%d of 2, want %d:\n%s", len(held), c.pair, describe(p))
			}
			if held := b.Contracts("vision/x"); len(held) != 3 {
				t.Fatal(describe(p))
			}
			if d := Of(p, "poor/pair"); d.Code == lifecycle.CodeInvariant {
				t.Fatal(describe(p)) // the repair itself must not get it wrong
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// Offers that share a price list take and cost the same, and have one deal in a batch's
// problem: the search goes by what a place takes there too.
func TestBatch_SearchesOffersOfOnePriceList(t *testing.T) {
	at := func(perCore string) *v1alpha1.Price {
		return &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"cpu": v1alpha1.MustDecimal(perCore)}}
	}
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome")
	sell := func(name, capacity string, price *v1alpha1.Price) {
		b.Offer("paris/"+name, func(o *model.Offer) { o.Flavor.Spec.Capacity, o.Price = Amounts(capacity), price })
	}
	list := at("0.05")
	for _, name := range []string{"a", "b", "c", "d"} {
		sell(name, "cpu=8 memory=64Gi", list)
	}
	sell("large", "cpu=64 memory=64Gi", at("0.5"))
	for i, cores := range []string{"5", "5", "5", "5", "5", "6", "4", "4", "3"} {
		b.Intent(fmt.Sprintf("vision/i%d", i), cheapest, func(in *model.Intent) {
			in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("memory=1Gi cpu=" + cores)}
		})
	}
	p := b.Plan()
	sum := int64(0)
	for i := range p.Contracts {
		sum += p.Contracts[i].After.Spec.Price.Hourly.Micro()
	}
	// 5+3, 4+4, 5 and 6 cores fit the four offers of the list; three replicas of 5 do not.
	if want := int64(27*50_000 + 15*500_000); len(p.Contracts) != 9 || sum != want {
		t.Fatalf("%d contracts at %d micro an hour, want 9 at %d:\n%s", len(p.Contracts), sum, want, describe(p))
	}
}

// An only replica that must be in some rack by the fleet's default is in one, or waits. By rules 23
// its batch was solved without that, and the plan's check refused it in each round.
func TestBatch_KeepsAnOnlyReplicaInARack(t *testing.T) {
	for rules, want := range map[int]string{23: "refuse InvariantViolated at []", 0: "queue WithinUnsatisfied at []"} {
		b := scarce().Offer("lyon/a100", Capacity("gpu=2"), labelled("rack", "r1")).Fleet(func(f *v1alpha1.FleetSpec) {
			f.Defaults.Within = &v1alpha1.Within{By: "label", Label: "rack"}
		})
		b.W.Rules = rules
		b.Intent("vision/alone", Wants(4), cheapest, gang).Intent("vision/any", Wants(4), cheapest)
		p := b.Round()
		d, at := Of(p, "vision/alone"), []string{}
		for _, c := range b.Contracts("vision/alone") {
			at = append(at, byFlavor(c))
		}
		if got := fmt.Sprintf("%s %s at %v", d.Action, d.Code, at); got != want {
			t.Errorf("rules %d: %s, want %s\n%s", rules, got, want, describe(p))
		}
	}
}
