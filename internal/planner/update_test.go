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

// updates bounds how many replicas may be without capacity.
func updates(maxUnavailable int32) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Update = &v1alpha1.Update{MaxUnavailable: Ptr(maxUnavailable)} })
}

// elsewhere forbids where an intent runs, so that it needs new contracts.
var elsewhere = With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{"paris"} })

// replicated is vision/train with three working replicas in paris, and room in
// lyon.
func replicated(t *testing.T, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	return running(t, append([]func(*model.Intent){Wants(2, "H100"), Times(3)}, changes...)...)
}

// stand is how many contracts work at each provider, as "paris 3, lyon 0".
func stand(b *Builder) string {
	n := map[string]int{}
	for _, c := range live(b, "vision/train") {
		if c.Status.Phase == v1alpha1.PhaseActive {
			n[c.Spec.Provider]++
		}
		n[c.Spec.Provider+" coming"] += map[bool]int{true: 1}[c.Status.Phase != v1alpha1.PhaseActive]
	}
	return fmt.Sprintf("paris %d, lyon %d and %d coming", n["paris"], n["lyon"], n["lyon coming"])
}

// steps plans rounds, in each of which everything becomes what the ledger states.
func steps(t *testing.T, b *Builder, want ...string) {
	t.Helper()
	for i, w := range want {
		p := b.Round()
		wantOnlyKeeps(t, b)
		if got := stand(b); got != w {
			t.Fatalf("step %d: %s; want %s\n%s", i, got, w, describe(p))
		}
		b.Tick(time.Minute).Deliver()
	}
}

func TestUpdateStepByStep(t *testing.T) {
	t.Run("without update all go at once", func(t *testing.T) {
		b := replicated(t)
		b.Intent("vision/train", elsewhere)
		steps(t, b, "paris 0, lyon 0 and 3 coming", "paris 0, lyon 3 and 0 coming")
	})
	t.Run("none may be missing: one stands beside the other until it works", func(t *testing.T) {
		b := replicated(t, updates(0))
		b.Intent("vision/train", elsewhere)
		steps(t, b, "paris 3, lyon 0 and 1 coming", "paris 2, lyon 1 and 1 coming", "paris 1, lyon 2 and 1 coming", "paris 0, lyon 3 and 0 coming")
		d := Of(b.Plan(), "vision/train")
		if d.Code != "" || d.Action != planner.Keep {
			t.Fatalf("%+v", d)
		}
	})
	t.Run("a reservation works as it is made", func(t *testing.T) {
		reserved := With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve })
		b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
			Intent("vision/train", Wants(2, "H100"), Times(3), updates(0), reserved)
		b.Round()
		b.Intent("vision/train", elsewhere).Round()
		wantOnlyKeeps(t, b)
		n := map[string]int{}
		for _, c := range b.Contracts("vision/train") {
			n[fmt.Sprintf("%s %s", c.Spec.Provider, c.Status.Phase)]++
		}
		if n["lyon Reserved"] != 3 || n["paris Reserved"] > 0 {
			t.Errorf("%v, want the three in lyon in place of those in paris", n)
		}
	})
	t.Run("one may be missing", func(t *testing.T) {
		b := replicated(t, updates(1))
		b.Intent("vision/train", elsewhere)
		steps(t, b, "paris 2, lyon 0 and 1 coming", "paris 1, lyon 1 and 1 coming", "paris 0, lyon 2 and 1 coming", "paris 0, lyon 3 and 0 coming")
	})
	t.Run("two may be missing", func(t *testing.T) {
		b := replicated(t, updates(2))
		b.Intent("vision/train", elsewhere)
		p := b.Plan()
		if d := Of(p, "vision/train"); d.Code != lifecycle.CodeUpdating || !strings.Contains(d.Reason, "1 replica is replaced after the others (update.maxUnavailable 2)") {
			t.Fatal(describe(p))
		}
		steps(t, b, "paris 1, lyon 0 and 2 coming", "paris 0, lyon 2 and 1 coming", "paris 0, lyon 3 and 0 coming")
	})
	t.Run("one that does not work already is replaced first", func(t *testing.T) {
		b := replicated(t, updates(0))
		for _, c := range live(b, "vision/train")[:1] {
			o := Ready(c)
			o.Consumer.NodeReady = false
			b.Observe(c.Metadata.Name, o)
		}
		b.Round()
		b.Tick(time.Second).Intent("vision/train", elsewhere)
		b.Round()
		if got := stand(b); got != "paris 2, lyon 0 and 1 coming" {
			t.Fatal(got)
		}
	})
	t.Run("what fits in place is changed at once", func(t *testing.T) {
		b := replicated(t, updates(0))
		b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Resources.Named["cpu"] = v1alpha1.AmountOf(9000) }))
		want(t, b, planner.Resize, lifecycle.CodeChanged)
		for _, c := range live(b, "vision/train") {
			if c.Spec.Resources[v1alpha1.CPU] != v1alpha1.AmountOf(9000) {
				t.Fatal(stand(b))
			}
		}
	})
	t.Run("a replacement that comes to nothing leaves the old one where it is", func(t *testing.T) {
		b := replicated(t, updates(0))
		b.Intent("vision/train", elsewhere)
		b.Round()
		b.Offer("lyon/h100", Heard(model.Lost))
		for range 3 {
			b.Tick(time.Minute).Round()
			if got := stand(b); !strings.HasPrefix(got, "paris 3") {
				t.Fatalf("%s\n%s", got, describe(b.Plan()))
			}
		}
	})
	t.Run("no room beside it: it waits", func(t *testing.T) {
		b := replicated(t, updates(0))
		b.Offer("lyon/h100", Capacity("gpu=1"))
		b.Intent("vision/train", elsewhere)
		p := want(t, b, planner.Queued, lifecycle.CodeNothingFits)
		if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "the old contract stays until the new one works") {
			t.Fatal(describe(p))
		}
	})
	t.Run("only its own capacity would do: it goes first where it may", func(t *testing.T) {
		moved := With(func(s *v1alpha1.IntentSpec) { s.Consumer = "turin" })
		for n, want := range map[int32]string{0: "paris 3, lyon 0 and 0 coming", 1: "paris 2, lyon 0 and 0 coming"} {
			b := replicated(t, updates(n))
			b.Drop("lyon/h100").Consumer("turin").Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Consumers = []string{"rome", "turin"} })
			b.Offer("paris/h100", Capacity("gpu=6")).Intent("vision/train", moved)
			b.Round()
			if got := stand(b); got != want {
				t.Fatalf("maxUnavailable %d: %s; want %s\n%s", n, got, want, describe(b.Plan()))
			}
			wantOnlyKeeps(t, b)
			for range 12 {
				b.Tick(time.Minute).Deliver().Round()
			}
			inTurin := 0
			for _, c := range live(b, "vision/train") {
				inTurin += map[bool]int{true: 1}[c.Spec.Consumer == "turin" && c.Status.Phase == v1alpha1.PhaseActive]
			}
			if inTurin != map[int32]int{0: 0, 1: 3}[n] {
				t.Fatalf("maxUnavailable %d: %d replicas in turin\n%s", n, inTurin, describe(b.Plan()))
			}
		}
	})
}

// TestUpdatesKeepEnough: whatever changes follow each other while clusters do
// what they are asked, no more than maxUnavailable replicas are without a working
// contract because of them, and in the end all are as the intent asks.
func TestUpdatesKeepEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas, most := rapid.Int32Range(1, 4).Draw(t, "replicas"), rapid.Int32Range(0, 3).Draw(t, "maxUnavailable")
		b := paris().Provider("lyon").Offer("paris/h100", Capacity("gpu=20")).Offer("lyon/h100", Cards("nvidia-h100", 20, "80Gi"), Costs("9")).
			Intent("vision/train", Wants(2, "H100"), Times(replicas), updates(most))
		b.Round()
		b.Tick(10 * time.Second).Deliver().Round()
		settle := func() {
			t.Helper()
			p := b.Round()
			if again := b.Plan(); again.Changes() {
				t.Fatalf("planning again changes:\n%s", describe(again))
			}
			working := map[int32]bool{}
			for _, c := range live(b, "vision/train") {
				if c.Status.Phase == v1alpha1.PhaseActive {
					working[c.Spec.Intent.Replica] = true
				}
			}
			if missing := int(replicas) - len(working); missing > int(most) {
				t.Fatalf("%d of %d replicas are without capacity, %d may be\n%s", missing, replicas, most, describe(p))
			}
		}
		denied := ""
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			b.Tick(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				denied = rapid.SampledFrom([]string{"paris", "lyon"}).Draw(t, "deny")
				b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{denied} }))
			default:
				b.Deliver()
			}
			settle()
		}
		for range 4*replicas + 4 {
			b.Tick(time.Minute).Deliver()
			settle()
		}
		list := b.Contracts("vision/train")
		for _, c := range list {
			if c.Spec.Provider == denied || c.Status.Phase != v1alpha1.PhaseActive || len(list) != int(replicas) {
				t.Fatalf("in the end %s is %s on %s, of %d\n%s", c.Metadata.Name, c.Status.Phase, c.Spec.Provider, len(list), describe(b.Plan()))
			}
		}
	})
}
