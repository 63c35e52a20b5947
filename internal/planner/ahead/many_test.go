package ahead_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestManyBookings_GrowWithTheirNumber: what a round allocates for bookings of one intent on
// one offer grows with how many they are, and not with their square.
func TestManyBookings_GrowWithTheirNumber(t *testing.T) {
	made := func(replicas int32, more ...func(*model.Offer)) uint64 {
		b := plantest.New().Consumer("rome").Provider("paris").Tenant("vision", "rome", mayBook).
			Offer("paris/h100", append(more, plantest.Cards("nvidia-h100", 1024, "80Gi"), plantest.Costs("2.5"), plantest.Capacity("cpu=40960 memory=160Ti pods=40960 ephemeral-storage=100Ti"))...).
			Intent("vision/train", plantest.Wants(1, "H100"), plantest.Times(replicas), books(48*time.Hour, time.Hour), plantest.With(func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(false) }))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := planner.Decide(b.W)
		runtime.ReadMemStats(&after)
		if n := len(p.Contracts); n != int(replicas) {
			t.Fatalf("%d of %d are booked: %s", n, replicas, plantest.Of(p, "vision/train").Reason)
		}
		return after.Mallocs - before.Mallocs
	}
	made(10)
	few, many := made(150), made(600)
	if many > 6*few {
		t.Errorf("150 bookings take %d allocations, 600 take %d: want some four times as many", few, many)
	}
	few, many = made(150, on128Nodes), made(600, on128Nodes)
	if many > 6*few {
		t.Errorf("on nodes, 150 bookings take %d allocations, 600 take %d: want some four times as many", few, many)
	}
}

// on128Nodes makes an offer 128 nodes of 8 cards.
func on128Nodes(o *model.Offer) {
	plantest.Spec(func(s *v1alpha1.FlavorSpec) {
		s.Nodes = &v1alpha1.FlavorNodes{Count: 128, Size: plantest.Amounts("gpu=8 cpu=320 memory=1280Gi pods=320 ephemeral-storage=800Gi")}
	})(o)
}

// TestManyIntents_BookInMeasure: what a round allocates for intents that book on one offer,
// each a replica at one of 60 starts, grows with how many they are and not with their square:
// as they come, and in each later round that finds them booked.
func TestManyIntents_BookInMeasure(t *testing.T) {
	made := func(intents int) (first, later uint64) {
		b := plantest.New().Consumer("rome").Provider("paris").Tenant("vision", "rome", mayBook).
			Offer("paris/h100", plantest.Cards("nvidia-h100", 1024, "80Gi"), plantest.Costs("2.5"), plantest.Capacity("cpu=40960 memory=160Ti pods=40960 ephemeral-storage=100Ti"))
		for i := range intents {
			b.Intent(fmt.Sprintf("vision/i%d", i), plantest.Wants(1, "H100"), books(48*time.Hour+time.Duration(i%60)*time.Hour, 100*time.Hour))
		}
		decide := func() (p *planner.Plan, allocated uint64) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p = planner.Decide(b.W)
			runtime.ReadMemStats(&after)
			return p, after.Mallocs - before.Mallocs
		}
		p, first := decide()
		if n := len(p.Contracts); n != intents {
			t.Fatalf("%d of %d are booked", n, intents)
		}
		b.Apply(p)
		p, later = decide()
		if n := len(p.Contracts); n != 0 {
			t.Fatalf("%d of %d bookings change", n, intents)
		}
		return first, later
	}
	made(10)
	fewFirst, fewLater := made(100)
	manyFirst, manyLater := made(400)
	t.Logf("100 intents: %d and %d allocations; 400: %d and %d", fewFirst, fewLater, manyFirst, manyLater)
	if manyFirst > 6*fewFirst || manyLater > 6*fewLater {
		t.Errorf("100 intents take %d and later %d allocations, 400 take %d and %d: want some four times as many", fewFirst, fewLater, manyFirst, manyLater)
	}
}

// TestAnOfferThatShrinks_IsComparedInMeasure: what a round allocates for bookings that their
// offer can hold no more grows with how many they are and not with their square: as they are
// told so, in each later round, and as they move.
func TestAnOfferThatShrinks_IsComparedInMeasure(t *testing.T) {
	made := func(intents int) (took [3]uint64) {
		b := plantest.New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome", mayBook)
		room := plantest.Capacity("cpu=40960 memory=160Ti pods=40960 ephemeral-storage=100Ti")
		b.Offer("paris/h100", plantest.Cards("nvidia-h100", 1024, "80Gi"), plantest.Costs("2.5"), room)
		for i := range intents {
			b.Intent(fmt.Sprintf("vision/i%03d", i), plantest.Wants(1, "H100"), books(48*time.Hour+time.Duration(i%60)*time.Hour, 100*time.Hour+time.Duration(i)*time.Minute))
		}
		if n := len(b.Round().Contracts); n != intents {
			t.Fatalf("%d of %d are booked", n, intents)
		}
		b.Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"))
		for i := range took {
			if i == len(took)-1 {
				b.Offer("lyon/h100", plantest.Cards("nvidia-h100", 1024, "80Gi"), plantest.Costs("2.5"), room)
				b.Tick(time.Hour)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := planner.Decide(b.W)
			runtime.ReadMemStats(&after)
			took[i] = after.Mallocs - before.Mallocs
			changed := 0
			for _, c := range p.Contracts {
				if c.After != nil && c.After.Spec.Provider == "lyon" {
					changed++
				}
			}
			if moved := intents - 8; i == len(took)-1 && changed != moved {
				t.Fatalf("%d of %d bookings move", changed, moved)
			} else if i == 0 && len(p.Contracts) != moved {
				t.Fatalf("%d of %d are told", len(p.Contracts), moved)
			}
			b.Apply(p)
		}
		return took
	}
	made(10)
	few, many := made(100), made(400)
	t.Logf("100 intents: %d allocations; 400: %d", few, many)
	for i := range few {
		if many[i] > 6*few[i] {
			t.Errorf("round %d: 100 intents take %d allocations, 400 take %d: want some four times as many", i, few[i], many[i])
		}
	}
}
