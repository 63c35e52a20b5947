package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func spotAt(gpu string) func(*model.Offer) {
	return func(o *model.Offer) {
		p := *o.Price
		p.Spot = nil
		if gpu != "" {
			p.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(gpu)}
		}
		o.Price = &p
	}
}

// onSpot is an intent that runs on spot capacity in paris; elsewhere it would
// cost more.
func onSpot(t *testing.T, elsewhere bool, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	b := paris().Offer("paris/h100", spotAt("1.10"))
	if elsewhere {
		b.Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9"))
	}
	b.Intent("vision/train", append([]func(*model.Intent){Wants(4, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) {
		s.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}
	})}, changes...)...)
	settled(b)
	if c := b.Contracts("vision/train")[0]; c.Spec.Price.Class != v1alpha1.Spot || c.Spec.Provider != "paris" {
		t.Fatalf("%+v", c.Spec)
	}
	return b
}

func TestSpotInterrupted(t *testing.T) {
	first := func(b *Builder) *v1alpha1.Contract {
		for c := range b.W.Ledger.Contracts() {
			if c.Spec.Intent.Ordinal == 0 {
				return c
			}
		}
		return nil
	}
	t.Run("no spot price, another place", func(t *testing.T) {
		b := onSpot(t, true, grace(2*time.Minute)).Offer("paris/h100", spotAt(""))
		// On demand it would be cheaper in paris, but that is the same flavor: a contract of another class all the same.
		step(t, b, "moves", map[string]string{"vision/train": "move Interrupted"})
		if c := first(b); c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Target != v1alpha1.PhasePreempted {
			t.Fatalf("%+v", c.Status)
		}
		b.Tick(time.Minute).Deliver().Round()
		if c := first(b); c.Status.Phase != v1alpha1.PhasePreempted {
			t.Fatalf("%+v", c.Status)
		}
	})
	t.Run("notice, then gone", func(t *testing.T) {
		b := onSpot(t, false, grace(2*time.Minute), Wants(8, "H100")).Offer("paris/h100", spotAt(""))
		step(t, b, "notice", map[string]string{"vision/train": "preempt Interrupted"})
		b.Tick(time.Minute)
		step(t, b, "still there", map[string]string{"vision/train": "keep Interrupted"})
		b.Tick(time.Minute)
		step(t, b, "gone", map[string]string{"vision/train": "preempt NothingFits"})
		if c := first(b); c.Status.Target != v1alpha1.PhasePreempted || c.Status.Why() != "Interrupted: paris takes back the spot capacity of h100" {
			t.Fatalf("%+v", c.Status)
		}
		b.Tick(time.Minute).Deliver()
		step(t, b, "again, on demand", map[string]string{"vision/train": "place"})
	})
	t.Run("sold again in time", func(t *testing.T) {
		b := onSpot(t, false, grace(2*time.Minute), Wants(8, "H100")).Offer("paris/h100", spotAt(""))
		b.Round()
		b.Tick(time.Minute).Offer("paris/h100", spotAt("1.20"))
		step(t, b, "may stay", map[string]string{"vision/train": "keep"})
		if c := first(b); c.Status.Displaced != nil || c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("%+v", c.Status)
		}
	})
	t.Run("the flavor is reported no more", func(t *testing.T) {
		b := onSpot(t, true).Offer("paris/h100", Heard(model.Withdrawn))
		step(t, b, "moves at once", map[string]string{"vision/train": "move Interrupted"})
		b = onSpot(t, true, With(func(s *v1alpha1.IntentSpec) { s.Purchase = nil }), With(func(s *v1alpha1.IntentSpec) { s.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot} }))
		b.W.Deaf = true
		b.Offer("paris/h100", Heard(model.Withdrawn))
		if p := b.Round(); p.Changes() {
			t.Fatal(describe(p))
		}
	})
	t.Run("too many at once are held back", func(t *testing.T) {
		b := onSpot(t, true, Wants(1, "H100"), Times(6)).Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(5)) })
		b.Offer("paris/h100", Heard(model.Withdrawn))
		if p := b.Round(); p.HeldBackEnds != 6 || len(p.Contracts) != 0 {
			t.Fatal(describe(p))
		}
	})
	t.Run("drained", func(t *testing.T) {
		b := onSpot(t, false, Wants(8, "H100"))
		b.Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(b.W.Now.Add(time.Minute)) })).Round()
		b.Tick(time.Minute)
		step(t, b, "gone", map[string]string{"vision/train": "queue NothingFits"})
		if c := first(b); c.Status.Target != v1alpha1.PhasePreempted {
			t.Fatalf("%+v", c.Status)
		}
	})
}

// Some replicas on demand and the rest at spot price are two intents. Where spot capacity is
// taken back the rest gives way, and what was bought on demand stays; where it is sold again
// the rest is placed again.
func TestSpotInterrupted_OnDemandBaseStays(t *testing.T) {
	buys := func(classes ...v1alpha1.PriceClass) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Purchase = classes })
	}
	b := paris().Offer("paris/h100", spotAt("1.10"))
	b.Intent("vision/base", Wants(1, "H100"), cheap, Times(2), buys(v1alpha1.OnDemand))
	b.Intent("vision/rest", Wants(1, "H100"), cheap, Times(4), buys(v1alpha1.Spot), grace(2*time.Minute))
	settled(b)
	held := func(what string, base, rest int) {
		t.Helper()
		for intent, want := range map[string]struct {
			n     int
			class v1alpha1.PriceClass
		}{"vision/base": {base, v1alpha1.OnDemand}, "vision/rest": {rest, v1alpha1.Spot}} {
			n := 0
			for _, c := range b.Contracts(intent) {
				if c.Status.Phase == v1alpha1.PhaseActive && c.Status.Displaced == nil {
					n++
				}
				if c.Spec.Price.Class != want.class {
					t.Errorf("%s: %s is bought %s", what, c.Metadata.Name, c.Spec.Price.Class)
				}
			}
			if n != want.n {
				t.Errorf("%s: %s has %d, want %d", what, intent, n, want.n)
			}
		}
	}
	held("placed", 2, 4)
	before := b.Contracts("vision/base")

	b.Offer("paris/h100", spotAt("")).Round()
	held("notice", 2, 0)
	b.Tick(2 * time.Minute).Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := b.Contracts("vision/rest"); len(got) != 0 {
		t.Errorf("the rest still holds %d", len(got))
	}
	held("taken back", 2, 0)

	b.Tick(time.Hour).Offer("paris/h100", spotAt("1.20"))
	settled(b)
	held("sold again", 2, 4)
	for i, c := range b.Contracts("vision/base") {
		if c.Metadata.Name != before[i].Metadata.Name {
			t.Errorf("%s on demand became %s", before[i].Metadata.Name, c.Metadata.Name)
		}
	}
}
