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
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// queued is a world in which vision/old holds six of eight cards for four
// hours more, vision/big waits for all eight, and two are free.
func queued(t *testing.T) *Builder {
	t.Helper()
	b := paris().Intent("vision/old", Wants(6, "H100"), For(4*time.Hour))
	b.Round()
	b.Tick(time.Second).Deliver().Round()
	b.Tick(time.Second).Intent("vision/big", Wants(8, "H100"), For(time.Hour))
	p := b.Round()
	const kept = "what it needs of paris/h100 is kept from those that would hold it beyond 2026-11-20T16:00:00Z; "
	if d := Of(p, "vision/big"); d.Action != planner.Queued || !strings.HasPrefix(d.Reason, kept) || d.Expected != Time("2026-11-20T16:00:00Z") {
		t.Fatal(describe(p))
	}
	b.Tick(time.Second)
	return b
}

// Beside the first in line others are served by what they would leave of what
// it needs.
func TestReservation(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Builder)
		served bool
	}{
		"without an end":      {func(*Builder) {}, false},
		"ends too late":       {func(b *Builder) { b.Intent("vision/small", For(5*time.Hour)) }, false},
		"ends as others come": {func(b *Builder) { b.Intent("vision/small", For(4*time.Hour-2*time.Second)) }, false},
		"ends before":         {func(b *Builder) { b.Intent("vision/small", For(3*time.Hour)) }, true},
		"a deadline before": {func(b *Builder) {
			b.Intent("vision/small", With(func(s *v1alpha1.IntentSpec) { s.Schedule.Deadline = v1alpha1.TimeOf(Start.Add(3 * time.Hour)) }))
		}, true},
		"of higher priority":     {func(b *Builder) { b.Intent("vision/small", Priority(1)) }, true},
		"there is another place": {func(b *Builder) { b.Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("9")) }, true},
		"takes nothing that it needs": {func(b *Builder) {
			b.Intent("vision/small", Wants(0), func(in *model.Intent) { in.Spec.Resources.GPU = nil })
		}, true},
		"more stands than it needs": {func(b *Builder) {
			b.Offer("paris/h100", Capacity("gpu=10")).Intent("vision/big", Wants(8, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Schedule.Duration.Duration = time.Hour }))
		}, true},
		"it gives up before": {func(b *Builder) {
			b.Intent("vision/big", With(func(s *v1alpha1.IntentSpec) { s.Queue.Timeout.Duration = time.Hour }))
		}, true},
		"it may not start then": {func(b *Builder) {
			b.Intent("vision/big", With(func(s *v1alpha1.IntentSpec) {
				s.Schedule.Deadline = v1alpha1.TimeOf(Start.Add(4*time.Hour + time.Minute))
			}))
		}, true},
		"nobody knows when": {func(b *Builder) { b.Intent("vision/old", For(0)) }, true},
		"its quota is in the way": {func(b *Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(8))} })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := queued(t).Intent("vision/small", Wants(2, "H100"))
			c.change(b)
			p := b.Round()
			if got := len(b.Contracts("vision/small")) == 1; got != c.served {
				t.Fatalf("served %v\n%s", got, describe(p))
			}
			const why = "; what is free of paris/h100 is kept for vision/big until 2026-11-20T16:00:00Z: with a schedule.duration that ends 5m before, it need not wait for that"
			if d := Of(p, "vision/small"); !c.served && !strings.Contains(d.Reason, why) || strings.Contains(Of(p, "vision/big").Reason, why) {
				t.Fatalf("it does not say for whom and until when\n%s", describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// What ends within seconds of what a reservation needs is there for others too:
// nobody waits for a day because two contracts did not end in the same second.
func TestEndsSecondsApartAreOne(t *testing.T) {
	b := paris().Intent("vision/old", Wants(5, "H100"), For(4*time.Hour))
	b.Round()
	b.Tick(4*time.Second).Deliver().Intent("vision/next", Wants(2, "H100"), For(4*time.Hour)).Round()
	b.Tick(time.Second).Deliver().Intent("vision/big1", Wants(3, "H100")).Intent("vision/big2", Wants(3, "H100")).Round()
	p := b.Tick(time.Second).Intent("vision/small", Wants(1, "H100"), For(5*time.Hour)).Round()
	if len(b.Contracts("vision/small")) != 1 || Of(p, "vision/big1").Action != planner.Queued || Of(p, "vision/big2").Action != planner.Queued {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
}

// Small ones that come all the time do not keep a big one waiting.
func TestBigOnesAreNotOvertakenForEver(t *testing.T) {
	b := paris()
	for i := range 40 {
		b.Intent(fmt.Sprintf("vision/small%02d", i), Wants(2, "H100"), For(2*time.Hour))
		if i == 4 {
			b.Intent("vision/big", Wants(4, "H100"), Times(2), For(time.Hour))
		}
		b.Tick(30 * time.Minute).Deliver().Round()
		b.Tick(10 * time.Second).Deliver().Round()
		if list := b.Contracts("vision/big"); len(list) == 2 {
			// Those that existed when it came end within two hours.
			if waited := list[0].Spec.Term.Start.Sub(Start.Time); waited > 5*time.Hour {
				t.Fatalf("served after %s", waited)
			}
			return
		}
	}
	t.Fatalf("never served\n%s", describe(b.Plan()))
}

// Whatever tenants ask for at equal priority, for however long, in gangs and
// alone: while everything has a term, those that need much are served though
// small ones never stop coming.
func TestNobodyStarvesWhateverTheSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards := rapid.IntRange(2, 4).Draw(t, "cards")
		b := New().Consumer("rome").Provider("paris", "lyon").
			Offer("paris/h100", Cards("nvidia-h100", cards, "80Gi"), Static).Offer("lyon/h100", Cards("nvidia-h100", 2, "80Gi"), Static)
		tenants := []string{"ada", "bob"}[:rapid.IntRange(1, 2).Draw(t, "tenants")]
		for _, name := range tenants {
			b.Tenant(name, "rome")
		}
		ask := func(name string, changes ...func(*model.Intent)) string {
			ref := rapid.SampledFrom(tenants).Draw(t, "who") + "/" + name
			b.Intent(ref, append([]func(*model.Intent){
				Wants(1), For(time.Duration(rapid.IntRange(1, 4).Draw(t, "hours")) * time.Hour),
				With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve }),
			}, changes...)...)
			return ref
		}
		big := map[string]bool{}
		for step := range 80 {
			for i := range rapid.IntRange(1, 2).Draw(t, "small ones") {
				ask(fmt.Sprintf("s%03d-%d", step, i))
			}
			if step < 8 && rapid.IntRange(0, 3).Draw(t, "a big one") == 0 {
				much := Wants(int32(cards)) //nolint:gosec // a few
				if rapid.Bool().Draw(t, "gang") {
					much = Times(int32(cards + 2)) //nolint:gosec // a few
				}
				big[ask(fmt.Sprintf("b%03d", step), much)] = true
			}
			b.Tick(30 * time.Minute).Round()
			p := b.Tick(10 * time.Second).Round()
			for _, d := range p.Intents {
				if ref := d.Tenant + "/" + d.Name; d.Action == planner.Done || d.Position > 6 && !big[ref] {
					b.Remove(ref) // the others have had enough of waiting
				}
				if len(d.Contracts) > 0 {
					delete(big, d.Tenant+"/"+d.Name)
				}
			}
			if step >= 8 && len(big) == 0 {
				return
			}
		}
		t.Fatalf("%v starve\n%s", big, describe(b.Plan()))
	})
}
