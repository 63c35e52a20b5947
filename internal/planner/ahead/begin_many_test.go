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

// TestManyBookings_BeginInMeasure: what a round allocates for bookings of one offer that begin
// at one instant grows with how many they are and not with their square: where they begin,
// where only some of them can, and where none did in time and they are given up.
func TestManyBookings_BeginInMeasure(t *testing.T) {
	room := plantest.Capacity("cpu=40960 memory=160Ti pods=40960 ephemeral-storage=100Ti")
	few, many := 100, 400
	for name, story := range map[string]struct {
		offer []func(*model.Offer)
		cards int // that the offer has in the end
		late  time.Duration
		phase v1alpha1.Phase
	}{
		"all begin":    {cards: 1024, phase: v1alpha1.PhaseReserved},
		"on nodes":     {offer: []func(*model.Offer){on128Nodes}, cards: 1024, phase: v1alpha1.PhaseReserved},
		"some begin":   {cards: 50, phase: v1alpha1.PhaseReserved},
		"are given up": {cards: 8, late: time.Hour, phase: v1alpha1.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			made := func(intents int) uint64 {
				b := plantest.New().Consumer("rome").Provider("paris").Tenant("vision", "rome", mayBook)
				offer := func(cards int) {
					b.Offer("paris/h100", append([]func(*model.Offer){plantest.Cards("nvidia-h100", cards, "80Gi"), plantest.Costs("2.5"), room}, story.offer...)...)
				}
				offer(1024)
				for i := range intents {
					b.Intent(fmt.Sprintf("vision/i%03d", i), plantest.Wants(1, "H100"), books(48*time.Hour, 100*time.Hour+time.Duration(i)*time.Minute))
				}
				if n := len(b.Round().Contracts); n != intents {
					t.Fatalf("%d of %d are booked", n, intents)
				}
				b.Tick(48*time.Hour + story.late)
				offer(story.cards)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				p := planner.Decide(b.W)
				runtime.ReadMemStats(&after)
				n, want := 0, min(story.cards, intents)
				if story.phase == v1alpha1.PhaseFailed {
					want = intents - story.cards
				}
				for _, c := range p.Contracts {
					if c.After != nil && c.After.Status.Phase == story.phase {
						n++
					}
				}
				if n != want {
					t.Fatalf("%d of %d become %s, want %d", n, intents, story.phase, want)
				}
				return after.Mallocs - before.Mallocs
			}
			made(10)
			few, many := made(few), made(many)
			t.Logf("100: %d allocations; 400: %d", few, many)
			if many > 6*few {
				t.Errorf("100 take %d allocations, 400 take %d: want some four times as many", few, many)
			}
		})
	}
}
