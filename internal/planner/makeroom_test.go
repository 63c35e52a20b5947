package planner_test

import (
	"bytes"
	"fmt"
	"slices"
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

// inTheWay is nlp/either on the only T4, which it took because that was the cheapest of
// what it can use, half an hour before nlp/one comes, which can use nothing else.
func inTheWay(either func(*model.Intent), changes ...func(*Builder)) *Builder {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Tenant("nlp", "rome").
		Fleet(consolidating("apply", "0.5", 30*time.Minute)).
		Offer("paris/t4", Cards("nvidia-t4", 1, "16Gi"), Costs("1")).
		Offer("lyon/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("1.4")).
		Intent("nlp/either", Wants(1, "T4", "L4"), cheapest, either)
	settled(b).Tick(28*time.Minute).Intent("nlp/one", Wants(1, "T4"), cheapest)
	for _, change := range changes {
		change(b)
	}
	return b
}

// One contract moves for an intent that finds no place, where the fleet, the moved intent and
// the one that waits allow it.
func TestMakesRoom(t *testing.T) {
	one := func(changes ...func(*model.Intent)) func(*Builder) {
		return func(b *Builder) { b.Intent("nlp/one", changes...) }
	}
	price := func(l4 string) func(*Builder) {
		return func(b *Builder) { b.Offer("lyon/l4", Costs(l4)) }
	}
	fleet := func(change func(*v1alpha1.FleetSpec)) func(*Builder) {
		return func(b *Builder) { b.Fleet(change) }
	}
	for name, c := range map[string]struct {
		change func(*Builder)
		moves  bool
		either func(*model.Intent) // what is else of nlp/either
	}{
		"as it is":                     {func(*Builder) {}, true, nil},
		"with queue.policy fail":       {one(With(func(s *v1alpha1.IntentSpec) { s.Queue.Policy = "fail" })), true, nil},
		"by rules 23":                  {func(b *Builder) { b.W.Rules = 23 }, false, nil},
		"proposals alone":              {fleet(consolidating("propose", "0.5", 30*time.Minute)), false, nil},
		"no consolidation":             {fleet(consolidating("off", "0.5", 30*time.Minute)), false, nil},
		"half more for both":           {price("2"), true, nil},
		"a little more than that":      {price("2.01"), false, nil},
		"all that the fleet pays":      {func(b *Builder) { price("5")(b); b.Fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money("3") }) }, true, nil},
		"a fleet that pays nothing":    {fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money("1") }), false, nil},
		"where that costs nothing":     {func(b *Builder) { price("1")(b); b.Fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money("1") }) }, true, nil},
		"its own budget":               {func(*Builder) {}, false, AtMost("1.39")},
		"its own budget is enough":     {func(*Builder) {}, true, AtMost("1.40")},
		"not by cost alone":            {func(*Builder) {}, false, func(in *model.Intent) { in.Spec.Objective = "" }},
		"it may not go there":          {func(*Builder) {}, false, With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{"lyon"} })},
		"it is of higher priority":     {func(*Builder) {}, false, Priority(1)},
		"the one that waits is higher": {one(Priority(1)), true, nil},
		"no room elsewhere":            {func(b *Builder) { b.Offer("lyon/l4", Cards("nvidia-l4", 0, "24Gi")) }, false, nil},
		"it does not fit then either":  {one(Wants(2, "T4")), false, nil},
		"suspended":                    {one(With(func(s *v1alpha1.IntentSpec) { s.Suspend = true })), false, nil},
		"only wants to know":           {one(With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind })), false, nil},
		"over its own budget":          {one(AtMost("0.99")), false, nil},
		"over its tenant's quota": {func(b *Builder) {
			b.Tenant("nlp", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(0))} })
		}, false, nil},
		"the other provider is silent":   {func(b *Builder) { b.Drop("lyon/l4") }, false, nil},
		"the fleet is suspended":         {fleet(func(s *v1alpha1.FleetSpec) { s.Suspend = true }), false, nil},
		"it spreads":                     {func(*Builder) {}, false, With(func(s *v1alpha1.IntentSpec) { s.Placement.Spread = []v1alpha1.Spread{{By: "provider", MaxSkew: 1}} })},
		"not yet there for half an hour": {func(b *Builder) { b.Tick(-time.Minute) }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.either == nil {
				c.either = func(*model.Intent) {}
			}
			b := inTheWay(c.either, c.change)
			p := b.Round()
			moved := strings.HasPrefix(Of(p, "nlp/either").Reason, "makes room for nlp/one, which finds no place")
			if moved != c.moves {
				t.Fatalf("moves %v, want %v\n%s", moved, c.moves, describe(p))
			}
			wantOnlyKeeps(t, b)
			if c.moves {
				wantRoomTaken(t, b, p)
			}
		})
	}
}

// wantRoomTaken follows a move for nlp/one until it has the place, and another that wants it
// has not.
func wantRoomTaken(t *testing.T, b *Builder, p *planner.Plan) {
	t.Helper()
	if d := Of(p, "nlp/either"); d.Action != planner.Move || d.Code != lifecycle.CodeConsolidated {
		t.Fatalf("got %s %s\n%s", d.Action, d.Code, describe(p))
	}
	if d := Of(p, "nlp/one"); d.Action != planner.Queued || d.Code != lifecycle.CodeMakingRoom || !strings.Contains(d.Reason, "waits until nlp/either, which moved to make room for it, is seen gone from paris/t4") {
		t.Fatalf("got %s %s\n%s", d.Action, d.Code, describe(p))
	}
	old := b.Contracts("nlp/either")[0]
	if d := old.Status.Displaced; old.Status.Phase != v1alpha1.PhaseReleasing || d == nil || d.Cause != v1alpha1.Moved || d.By != "nlp/one" {
		t.Fatalf("got %+v", old.Status)
	}
	b.Tick(time.Minute).Intent("nlp/late", Wants(1, "T4"), cheapest)
	if p := b.Round(); Of(p, "nlp/one").Code != lifecycle.CodeMakingRoom {
		t.Fatalf("until it is seen gone:\n%s", describe(p))
	}
	wantOnlyKeeps(t, b)
	b.Tick(time.Minute).Deliver()
	p = b.Round()
	if d := Of(p, "nlp/one"); d.Action != planner.Place || Of(p, "nlp/late").Action != planner.Queued {
		t.Fatalf("once it is seen gone:\n%s", describe(p))
	}
	if c := b.Contracts("nlp/one")[0]; !slices.Equal(c.Decision.Displaced, []string{old.Metadata.Name}) {
		t.Errorf("got %v, want the contract that moved", c.Decision.Displaced)
	}
	wantOnlyKeeps(t, b)
}

// No tenant pays more for what another wants: what is in another tenant's way moves only to
// where that costs no more.
func TestMakesRoom_ForAnotherTenant(t *testing.T) {
	for l4, moves := range map[string]bool{"1.01": false, "1": true, "0.99": true} {
		b := inTheWay(func(*model.Intent) {}, func(b *Builder) {
			b.Offer("lyon/l4", Costs(l4)).Remove("nlp/one").Intent("vision/one", Wants(1, "T4"), cheapest)
		})
		p := b.Round()
		if moved := strings.HasPrefix(Of(p, "nlp/either").Reason, "makes room for vision/one, "); moved != moves {
			t.Errorf("at %s: moves %t, want %t\n%s", l4, moved, moves, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
}

// It is moved as soon as it has been where it is for long enough, and the plan says when that is.
func TestMakesRoom_AfterHold(t *testing.T) {
	b := inTheWay(func(*model.Intent) {}, func(b *Builder) { b.Tick(-10 * time.Minute) })
	p := b.Round()
	if got := p.Due.Sub(b.W.Now.Time); got != 10*time.Minute {
		t.Fatalf("due after %s, want 10m\n%s", got, describe(p))
	}
	b.Tick(10 * time.Minute)
	if p := b.Round(); Of(p, "nlp/either").Action != planner.Move {
		t.Fatalf("after half an hour it is not moved\n%s", describe(p))
	}
}

// Of several that could, the one whose move costs least goes, and nobody else; each that waits
// has another one moved for it.
func TestMakesRoom_CheapestMove(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon", "nice").Tenant("vision", "rome").Tenant("nlp", "rome").
		Fleet(consolidating("apply", "0.5", 30*time.Minute)).
		Offer("paris/t4", Cards("nvidia-t4", 3, "16Gi"), Costs("1")).
		Offer("lyon/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("1.4")).
		Offer("nice/a10", Cards("nvidia-a10", 8, "24Gi"), Costs("1.2")).
		Intent("nlp/a", Wants(1, "T4", "L4"), cheapest).
		Intent("nlp/b", Wants(1, "T4", "A10"), cheapest).
		Intent("nlp/c", Wants(1, "T4", "L4", "A10"), cheapest, Priority(10))
	settled(b).Tick(28*time.Minute).Intent("nlp/one", Wants(1, "T4"), cheapest, Priority(10))
	for _, want := range []string{"nlp/b", "nlp/c"} {
		p := b.Round()
		for _, ref := range []string{"nlp/a", "nlp/b", "nlp/c"} {
			if got := Of(p, ref).Action == planner.Move; got != (ref == want) {
				t.Fatalf("%s moves %v, want %s to\n%s", ref, got, want, describe(p))
			}
		}
		wantOnlyKeeps(t, b)
		b.Tick(time.Minute).Deliver().Intent("nlp/two", Wants(1, "T4"), cheapest, Priority(10))
	}
}

// Intents come and go: at most once in `hold` something moves for one intent, and nothing that
// has just come or moved; with prices as they are, moves come to an end once nobody comes.
func TestMakesRoom_NoPingPong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const hold = 10 * time.Minute
		b := New().Consumer("rome").Tenant("vision", "rome").Tenant("nlp", "rome").Fleet(consolidating("apply", "0.1", hold))
		models := []string{"T4", "L4", "A10"}
		for i := range rapid.IntRange(2, 5).Draw(t, "offers") {
			p := fmt.Sprintf("p%d", i)
			card := "nvidia-" + strings.ToLower(models[i%len(models)])
			b.Provider(p).Offer(p+"/x", Cards(card, rapid.IntRange(1, 3).Draw(t, "cards"), "24Gi"), Costs(fmt.Sprintf("%d.%d", rapid.IntRange(1, 2).Draw(t, "price"), rapid.IntRange(0, 9).Draw(t, "cents"))))
		}
		var memory planner.Session
		moved := 0 // in the last rounds
		for step := range 90 {
			if step < 40 {
				i := rapid.IntRange(0, 5).Draw(t, "intent") // one size each: what is taken off one is sold in the next round
				ref := fmt.Sprintf("%s/i%d", rapid.SampledFrom([]string{"vision", "nlp"}).Draw(t, "tenant"), i)
				switch rapid.IntRange(0, 3).Draw(t, "event") {
				case 0, 1:
					n := rapid.IntRange(1, 3).Draw(t, "models")
					objective := rapid.SampledFrom([]v1alpha1.Objective{"", v1alpha1.Cost}).Draw(t, "objective")
					policy := rapid.SampledFrom([]string{"", "fail"}).Draw(t, "policy")
					b.Intent(ref, Wants(1+int32(i%2), models[:n]...), With(func(s *v1alpha1.IntentSpec) { s.Objective, s.Queue.Policy = objective, policy }))
				case 2:
					b.Remove(ref)
				}
			}
			b.Tick(time.Duration(rapid.IntRange(1, 15).Draw(t, "minutes")) * time.Minute)
			if step >= 40 || rapid.Bool().Draw(t, "delivered") {
				b.Deliver()
			}
			before := b.W
			p := b.Round()
			if kept := memory.Decide(before); !bytes.Equal(encoded(kept), encoded(p)) {
				t.Fatalf("step %d: with what is kept\n%s\nfrom nothing\n%s", step, describe(kept), describe(p))
			}
			if step < 50 {
				if again := b.Plan(); again.Changes() {
					t.Fatalf("step %d: planning again changes:\n%s\n%s", step, describe(p), describe(again))
				}
			}
			checkDisplaced(before, p, b.W.Ledger, func(format string, args ...any) {
				t.Fatalf("step %d: %s\n%s", step, fmt.Sprintf(format, args...), describe(p))
			})
			if moved++; !slices.ContainsFunc(p.Contracts, func(c model.Change) bool { return c.Before == nil }) {
				moved = 0
			}
			if step > 70 && moved > 0 {
				t.Fatalf("step %d: nobody has come for 30 rounds, and still it moves\n%s", step, describe(p))
			}
		}
	})
}
