package planner_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Intents come and go, some by their price alone: a session decides as a plan from nothing
// does, a plan that was applied is followed by keeps alone, and places are left to others.
func TestScarcity_RandomStories(t *testing.T) {
	left := 0
	for _, seed := range []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 81} { // 81: a move leaves what one that waits is kept
		g := rand.New(rand.NewSource(seed))
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Tenant("bio", "rome")
		cards, models := []string{"nvidia-h100", "nvidia-a100", "nvidia-l40s"}, []string{"H100", "A100", "L40S"}
		for i := range 12 {
			b.Offer(fmt.Sprintf("%s/f%02d", []string{"paris", "lyon"}[i%2], i), Cards(cards[g.Intn(3)], 4+4*g.Intn(2), "80Gi"), Costs(fmt.Sprint(1+float64(g.Intn(20))/10)))
		}
		if seed%2 == 1 {
			b.Fleet(func(s *v1alpha1.FleetSpec) {
				s.Consolidation = v1alpha1.Consolidation{Mode: "apply", Threshold: Money("0.05"), Hold: v1alpha1.Duration{Duration: time.Minute}}
			})
		}
		s, there := planner.Session{Fault: func(why string) { t.Error(why) }}, []string{}
		for round := range 40 {
			for n := g.Intn(3); n >= 0; n-- {
				name := fmt.Sprintf("%s/x%d-%d", []string{"vision", "bio"}[g.Intn(2)], round, n)
				wants := Wants(int32(1 + g.Intn(4)))
				if g.Intn(3) > 0 {
					wants = Wants(int32(1+g.Intn(4)), models[g.Intn(3)])
				}
				b.Intent(name, wants, cheapest)
				there = append(there, name)
			}
			for len(there) > 16 {
				i := g.Intn(len(there))
				b.Remove(there[i])
				there = append(there[:i], there[i+1:]...)
			}
			want := b.Plan()
			if got := s.Decide(b.W); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, round %d: a session decides\n%s\nfrom nothing\n%s", seed, round, describe(got), describe(want))
			}
			for i := range want.Intents {
				for _, c := range want.Intents[i].Contracts {
					if c.Left != "" && c.Action == planner.Place {
						left++
					}
				}
			}
			b.Apply(want)
			wantOnlyKeeps(t, b)
			b.Tick(time.Minute).Deliver()
		}
	}
	if left < 20 {
		t.Errorf("%d places were left to others", left)
	}
}
