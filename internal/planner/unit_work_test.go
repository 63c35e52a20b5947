package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// unitWorld has units of so many intents that belong together, of which a quota lets all but
// one have a place: what that misses is seen at the last of them, on each of 40 providers.
// Their turns are those of all first, of all second and so on.
func unitWorld(units, of int) *Builder {
	b := New().Consumer("rome").Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(of - 1))}
	}).Tenant("nlp", "rome")
	for i := range 40 {
		p := fmt.Sprintf("p%02d", i)
		b.Provider(p).Offer(p+"/h100", Cards("h100", of+8, "80Gi"), Capacity("cpu=4096 memory=16Ti pods=4096"), Costs(fmt.Sprintf("2.%02d", i)))
	}
	for u := range units {
		for i := range of {
			b.Intent(fmt.Sprintf("vision/u%d-%d", u, i), Wants(1), With(func(s *v1alpha1.IntentSpec) {
				s.Placement.Together = []string{fmt.Sprintf("u%d-%d", u, (i+1)%of)}
				s.Resources.Named, s.Priority = Amounts("cpu=1 memory=1Gi pods=1"), int32(of-i) //nolint:gosec // few
			}))
		}
	}
	return b.Intent("nlp/good", Wants(1))
}

// What was tried of a unit, and taken back, is not tried again in each turn of its intents
// because another unit was tried in between.
func TestUnits_AreTriedOnce(t *testing.T) {
	const units, of, providers = 4, 16, 32
	b := unitWorld(units, of)
	b.W.Rules = draft.RulesTogetherCounted - 1
	_, did := planner.CountWork(b.W)
	if most := int64(2 * units * providers * of); did.Made > most || did.Made < most/4 {
		t.Errorf("%d contracts are made on trial, want at most %d", did.Made, most)
	}
}

// What is looked for a provider for intents that belong together counts against limits.work;
// who wants more is told so and others are served.
func TestWorkOfUnits(t *testing.T) {
	const units, of = 12, 64
	b := unitWorld(units, of)
	p, did := planner.CountWork(b.W)
	if d := Of(p, "nlp/good"); d.Action != planner.Place {
		t.Errorf("the other tenant's intent: %s, %s", d.Action, d.Reason)
	}
	waits := 0
	for u := range units {
		if d := Of(p, fmt.Sprintf("vision/u%d-1", u)); d.Action == planner.Queued && d.Code == lifecycle.CodeWork && strings.Contains(d.Reason, "spec.limits.work") {
			waits++
		}
	}
	if waits < units/2 || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > time.Minute {
		t.Errorf("%d of %d units wait for another turn, due %s", waits, units, p.Due)
	}
	// Each has once what it takes to be placed on one provider, whatever is left.
	least := int64(of * (100 + 400 + 41))
	if most := v1alpha1.DefaultWork + (units+1)*least; did.Parts > most || did.Parts < v1alpha1.DefaultWork {
		t.Errorf("%d looks, want at most %d", did.Parts, most)
	}
	again, other := planner.CountWork(b.W)
	if got, as := Of(again, "vision/u0-1"), Of(p, "vision/u0-1"); got.Reason != as.Reason || other.Parts != did.Parts {
		t.Errorf("the same world again: %d looks and %q, were %d and %q", other.Parts, got.Reason, did.Parts, as.Reason)
	}
}

// A unit that only the provider with the worst scores has room for is placed there, whatever
// limits.work is: each minute begins with another provider.
func TestWorkOfUnits_EachHasItsTurn(t *testing.T) {
	const providers = 7
	b := New().Consumer("rome").Tenant("vision", "rome").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 })
	for i := range providers {
		p := fmt.Sprintf("p%d", i)
		// Two offers of three, where two intents of two and one of two find no place.
		cards := 3
		if i == providers-1 {
			cards = 4
		}
		for _, k := range []string{"a", "b"} {
			b.Provider(p).Offer(p+"/"+k, Cards("h100", cards, "80Gi"), Capacity("cpu=64 memory=512Gi pods=100"), Costs(fmt.Sprint(1+i)))
		}
	}
	for i := range 3 {
		b.Intent(fmt.Sprintf("vision/i%d", i), Wants(2), cheap, With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{fmt.Sprintf("i%d", (i+1)%3)} }))
	}
	for range providers + 2 {
		b.Round()
		b.Tick(time.Minute).Deliver()
	}
	p := b.Plan()
	for i := range 3 {
		if d := Of(p, fmt.Sprintf("vision/i%d", i)); d.Action != planner.Keep {
			t.Errorf("i%d: %s %s", i, d.Action, d.Reason)
		}
	}
}

// What was decided by the rules of before is decided so again.
func TestWorkOfUnits_OlderRules(t *testing.T) {
	b := unitWorld(2, 8)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 60_000 })
	if d := Of(b.Plan(), "vision/u1-7"); d.Code != lifecycle.CodeWork {
		t.Fatalf("%s %s", d.Code, d.Reason)
	}
	b.W.Rules = draft.RulesTogetherCounted - 1
	if p, did := planner.CountWork(b.W); Of(p, "vision/u1-7").Code == lifecycle.CodeWork || did.Parts != 0 {
		t.Fatalf("by the rules before: %+v, %d looks", Of(p, "vision/u1-7"), did.Parts)
	}
}

// A session, which keeps what it worked out, stops at the same look.
func TestWorkOfUnits_InASession(t *testing.T) {
	b := unitWorld(3, 8)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 100_000 })
	var s planner.Session
	for i := range 4 {
		p, want := s.Decide(b.W), planner.Decide(b.W)
		for u := range 3 {
			for k := range 8 {
				name := fmt.Sprintf("vision/u%d-%d", u, k)
				if got, as := Of(p, name), Of(want, name); got.Reason != as.Reason || got.Code != as.Code {
					t.Fatalf("round %d, %s: %s %q\nwant %s %q", i, name, got.Code, got.Reason, as.Code, as.Reason)
				}
			}
		}
		b.Apply(p)
		b.Tick(20 * time.Second)
	}
}
