package planner_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/planner/sealed"
)

// Whatever happens to a fleet, a plan made from memory is the plan made from
// nothing, word for word; and memory is what most of them are made from.
func TestMemoryPlansAsFromNothing(t *testing.T) {
	rounds, scratch := 0, uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		s := newBooking(t)
		m := &planner.Session{Fault: func(why string) { t.Fatalf("a fault: %s", why) }}
		ordered := rapid.IntRange(0, 7).Draw(t, "ordered") > 0
		ask := func(said string) *planner.Plan {
			t.Helper()
			if ordered { // as the reader of a fleet gives them
				s.W.Intents = slices.Clone(s.W.Intents)
				slices.SortFunc(s.W.Intents, func(a, b *model.Intent) int {
					return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
				})
			}
			changed := sealed.World(s.W)
			want := s.Plan()
			got := m.Decide(s.W)
			if at := changed(); at != "" {
				t.Fatalf("after %q, planning changed %s in place", said, at)
			}
			rounds++
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %q, from memory (%d of %d from nothing):\n%s\nfrom nothing:\n%s", said, m.Scratch(), rounds, describe(got), describe(want))
			}
			return got
		}
		for range rapid.IntRange(1, 14).Draw(t, "length") {
			said := s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600, 200 * 3600}).Draw(t, "seconds")) * time.Second)
			p := ask(said)
			if rapid.IntRange(0, 3).Draw(t, "lands") > 0 {
				s.Apply(p)
				ask("applied")
			}
			if rapid.IntRange(0, 7).Draw(t, "another list") == 0 {
				s.W.Intents, s.W.Offers = copies(s.W.Intents), copies(s.W.Offers)
			}
		}
		scratch += m.Scratch()
	})
	if rounds > 100 && scratch > uint64(rounds)/2 {
		t.Fatalf("%d of %d plans were made from nothing", scratch, rounds)
	}
	t.Logf("%d of %d plans were made from nothing", scratch, rounds)
}

// copies are equal values in another list.
func copies[T any](list []*T) []*T {
	out := make([]*T, len(list))
	for i, one := range list {
		mine := *one
		out[i] = &mine
	}
	return out
}

// A mistake in bringing the memory up to date costs the round its time: the
// plan is made from nothing, and the caller learns what went wrong and where.
func TestMemoryTellsOfItsFaults(t *testing.T) {
	w := demand(market(20), 10)
	var faults []string
	m := &planner.Session{Fault: func(why string) { faults = append(faults, why) }}
	m.Decide(w.W)
	m.Break()
	w.Offer(w.W.Offers[3].Flavor.Ref(), Spec(func(f *v1alpha1.FlavorSpec) { f.Used = Amounts("cpu=1") }))
	if got, want := m.Decide(w.W), planner.Decide(w.W); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", describe(got), describe(want))
	}
	if len(faults) != 1 || !strings.Contains(faults[0], "index out of range") || !strings.Contains(faults[0], "offersChanged") {
		t.Errorf("told of %d faults: %q", len(faults), faults)
	}
	if m.Decide(w.W); len(faults) != 1 || m.Scratch() != 2 {
		t.Errorf("after it %d faults, and %d plans from nothing", len(faults), m.Scratch())
	}
}

// Where warm pools are among them, too, intents that come, go and change are
// taken over, and nothing is planned from nothing.
func TestMemoryBesideWarmPools(t *testing.T) {
	b := twoFlavors(200).Consumer("rome").Fleet(func(f *v1alpha1.FleetSpec) {
		for _, name := range []string{"cold", "warm"} {
			f.WarmPools = append(f.WarmPools, v1alpha1.WarmPool{Name: name, Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{Count: 1}}})
		}
	})
	m := &planner.Session{}
	next := func(said string) {
		t.Helper()
		b.W.Intents = slices.SortedFunc(slices.Values(b.W.Intents), func(x, y *model.Intent) int {
			return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
		})
		want, got := b.Plan(), m.Decide(b.W)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s, from memory:\n%s\nfrom nothing:\n%s", said, describe(got), describe(want))
		}
		b.Apply(got)
	}
	for _, name := range []string{"bio/b", "bio/d", "vision/b", "vision/d"} {
		b.Intent(name, Wants(1))
	}
	next("at first")
	next("at rest")
	for _, name := range []string{"bio/a", "bio/c", "bio/e", "vision/a", "vision/c", "vision/e"} {
		next("before " + name)
		b.Intent(name, Wants(1))
		next(name + " came")
		b.Intent(name, Wants(2))
		next(name + " changed")
		b.Remove(name)
		next(name + " went")
	}
	if m.Scratch() != 1 {
		t.Errorf("%d plans were made from nothing, want the first alone", m.Scratch())
	}
}
