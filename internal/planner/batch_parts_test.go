package planner_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Replicas that may be split are whole or in parts, within what they ask for and what offers
// have, in whatever way their batch is solved; and planning again changes nothing.
func TestBatches_InParts(t *testing.T) {
	inParts := 0
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		b := New().Consumer("rome").Tenant("vision", "rome")
		quota := int64(1000)
		if number("quota", 0, 2) == 0 {
			n := int64(number("gpus", 4, 16))
			quota = n
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: &n} })
		}
		free := map[string]int64{}
		for i := range number("offers", 2, 4) {
			name := fmt.Sprintf("p%d", i%3)
			n := number("cards", 1, 5)
			free[fmt.Sprintf("o%d", i)] = int64(n)
			b.Provider(name).Offer(fmt.Sprintf("%s/o%d", name, i), Cards("nvidia-h100", n, "80Gi"), Costs(fmt.Sprint(number("price", 1, 4))))
		}
		wanted := map[string]*v1alpha1.IntentSpec{}
		for i := range number("intents", 2, 4) {
			ref := fmt.Sprintf("vision/i%d", i)
			b.Intent(ref, Wants(int32(number("wants", 1, 8)), "H100"), cheap, func(in *model.Intent) {
				if number("split", 0, 2) > 0 {
					in.Spec.Split = &v1alpha1.Split{MaxParts: int32(number("parts", 2, 3)), MinGPU: int32(number("least", 1, 2))}
				}
				wanted[in.Metadata.Name] = &in.Spec
			})
		}
		before := b.W
		p := b.Plan()
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), describe(p))
		}
		if other := planner.Decide(shuffled(before, 7)); !reflect.DeepEqual(p, other) {
			fail("another order gives another plan:\n%s", describe(other))
		}
		b.Apply(p)
		for name, spec := range wanted {
			sum, parts := int64(0), int32(0)
			for _, c := range b.Contracts("vision/" + name) {
				i := c.Spec.Intent
				if parts++; i.Of == 0 && c.Spec.GPUs.Count != int64(spec.Resources.GPU.Count) || i.Of > 0 && (i.Units != c.Spec.GPUs.Count || i.Units < int64(spec.Split.MinGPU) || i.Part >= spec.Split.MaxParts) {
					fail("%s has %d GPUs as %+v", name, c.Spec.GPUs.Count, i)
				}
				sum += c.Spec.GPUs.Count
				if free[c.Spec.Flavor] -= c.Spec.GPUs.Count; free[c.Spec.Flavor] < 0 {
					fail("%s is oversold", c.Spec.Flavor)
				}
			}
			if quota -= sum; quota < 0 {
				fail("the tenant holds more than its quota")
			}
			if sum > 0 && sum != int64(spec.Resources.GPU.Count) {
				fail("%s has %d GPUs in %d parts", name, sum, parts)
			}
			if parts > 1 {
				inParts++
			}
		}
		if again := b.Plan(); again.Changes() {
			fail("planning again changes:\n%s", describe(again))
		}
	})
	if inParts == 0 {
		t.Error("nothing was ever in parts")
	}
}

// A replica that may be split gives up a cheap offer where that lets its batch as a whole
// cost less: parts on b and c, so that who must be on a has room.
func TestBatch_PartsGiveWay(t *testing.T) {
	b := cities("a", "b", "c").
		Intent("vision/whole", Wants(8, "H100"), cheap).
		Intent("vision/parts", Wants(9, "H100"), cheap, splits(2, 1)).
		Intent("vision/small", Wants(4, "H100"), cheap)
	b.Round()
	got := pieces(b, "vision/whole") + "; " + pieces(b, "vision/parts") + "; " + pieces(b, "vision/small")
	cost := int64(0)
	for _, ref := range []string{"vision/whole", "vision/parts", "vision/small"} {
		for _, c := range b.Contracts(ref) {
			cost += c.Spec.Price.Hourly.Micro()
		}
	}
	// 21 of 24 cards are taken: the three that stay free are the most expensive, on c.
	if cost != (8*1+8*2+5*3)*1_000_000 {
		t.Errorf("%s costs %d, want 39 an hour", got, cost)
	}
}
