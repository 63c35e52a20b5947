package planner_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// condition makes an intent ask a condition of its own.
func condition(n int) func(*model.Intent) {
	p, err := celenv.Compile(fmt.Sprintf(`flavor.price.hourly < %d.0`, 1000+n))
	if err != nil {
		panic(err)
	}
	return func(in *model.Intent) { in.Where, in.Spec.Placement.Where = p, p.Source() }
}

// A tenant with many conditions delays no other: tenants take turns, what has no
// turn is queued by name and served in a later round, and what is held costs
// nothing and stays.
func TestConditionsOfARound(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti")).
		Tenant("nlp", "rome").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions = 10 })
	for i := range 8 {
		b.Intent(fmt.Sprintf("vision/a%d", i), tiny, condition(i))
	}
	b.Intent("nlp/z", tiny, condition(100)).Intent("vision/plain", tiny)
	p := b.Round()
	placed := p.Summary()[planner.Place]
	if Of(p, "nlp/z").Action != planner.Place || Of(p, "vision/plain").Action != planner.Place || placed < 3 || placed > 6 {
		t.Fatalf("%d placed\n%s", placed, describe(p))
	}
	waits := 0
	for _, d := range p.Intents {
		if d.Action == planner.Queued && d.Code == lifecycle.CodeConditions {
			waits++
		}
	}
	if waits != 10-placed || !p.Due.Equal(b.W.Now.Truncate(time.Minute).Add(time.Minute)) {
		t.Fatalf("%d wait, due %s\n%s", waits, p.Due, describe(p))
	}
	for range 8 {
		b.Tick(time.Minute)
		p = b.Round()
		for _, d := range p.Intents {
			if d.Action != planner.Keep && d.Action != planner.Place && d.Code != lifecycle.CodeConditions {
				t.Fatalf("%s/%s: %s\n%s", d.Tenant, d.Name, d.Action, describe(p))
			}
		}
	}
	if n := b.W.Ledger.Held(); n != 10 {
		t.Fatalf("%d of 10 are held in the end\n%s", n, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// Making what conditions are evaluated by counts with what they may cost: thousands of long
// ones, each of its own, would be made in one round otherwise, whatever it costs to ask them.
func TestConditionsCostTheirMaking(t *testing.T) {
	placed := func(rules int) int {
		b := paris().Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti")).
			Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions = 50_000 })
		b.W.Rules = rules
		for i := range 8 {
			p, err := celenv.Compile(fmt.Sprintf(`flavor.name != "%d"%s`, i, strings.Repeat(` && flavor.name != "none" + ""`, 15)))
			if err != nil {
				t.Fatal(err)
			}
			b.Intent(fmt.Sprintf("vision/a%d", i), tiny, func(in *model.Intent) { in.Where, in.Spec.Placement.Where = p, p.Source() })
		}
		return b.Round().Summary()[planner.Place]
	}
	if before, now := placed(draft.RulesConditionsMade-1), placed(draft.RulesConditionsMade); before != 8 || now < 1 || now > 4 {
		t.Errorf("%d placed before it counted, %d since", before, now)
	}
}

// Those that find nothing take turns too: each is looked at again and again,
// and nothing is written of those that only wait.
func TestConditionsTakeTurns(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("cpu=1 memory=1Gi")).Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions = 10 })
	for i := range 6 {
		b.Intent(fmt.Sprintf("vision/a%d", i), Wants(0), condition(i))
	}
	asked, quiet := map[string]int{}, 0
	for range 40 {
		p := b.Round()
		for _, d := range p.Intents {
			if d.Code != lifecycle.CodeConditions {
				asked[d.Name]++
			}
		}
		if len(p.States) == 0 {
			quiet++
		}
		b.Tick(time.Minute)
	}
	for i := range 6 {
		if n := asked[fmt.Sprint("a", i)]; n < 4 {
			t.Errorf("a%d had %d turns of 40", i, n)
		}
	}
	if quiet < 30 {
		t.Errorf("only %d of 40 rounds wrote nothing", quiet)
	}
}

// Whatever happens to a fleet whose conditions do not all fit into a round, a
// plan made from memory is the plan made from nothing, and so it is of the
// intents in another order.
func TestMemoryPlansConditionsAsFromNothing(t *testing.T) {
	bites, works := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		most := int64(rapid.IntRange(1, 60).Draw(t, "conditions"))
		work := int64(rapid.SampledFrom([]int{0, 1, 600, 1500}).Draw(t, "work"))
		s.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions, f.Limits.Work = most, work })
		m := &planner.Session{}
		for range rapid.IntRange(1, 12).Draw(t, "length") {
			said := s.event()
			if rapid.Bool().Draw(t, "asks") {
				ref := s.name()
				s.Intent(ref, s.anyIntent, s.crowd, condition(rapid.IntRange(0, 5).Draw(t, "condition")))
				said += ", " + ref + " asks"
			}
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600}).Draw(t, "seconds")) * time.Second)
			want, got := s.Plan(), m.Decide(s.W)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %q, from memory:\n%s\nfrom nothing:\n%s", said, describe(got), describe(want))
			}
			w := s.W
			w.Intents = slices.Clone(w.Intents)
			slices.Reverse(w.Intents)
			if other := planner.Decide(w); !reflect.DeepEqual(other, want) {
				t.Fatalf("after %q, in another order:\n%s\nwant:\n%s", said, describe(other), describe(want))
			}
			for _, d := range want.Intents {
				if d.Code == lifecycle.CodeConditions {
					bites++
				}
				if lifecycle.AwaitsTurn(d.Code) {
					works++
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "lands") > 0 {
				s.Apply(want)
			}
		}
	})
	if bites == 0 || works == 0 {
		t.Errorf("conditions were too few %d times, work %d times", bites, works)
	}
}
