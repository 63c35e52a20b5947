package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// prune is what both replicas do for so many minutes: a decides.
func (r *replicas) prune(minutes int, known ...string) {
	r.t.Helper()
	for range minutes {
		r.tick(60)
		for i, one := range r.all {
			must(r.t, one.store.Prune(r.t.Context(), i == 0, func(cluster string) bool { return slices.Contains(known, cluster) }))
		}
	}
}

// What the store has of a cluster that was removed from the fleet is deleted by who decides,
// after ten minutes, and of no other; one that comes back within them keeps its objects.
func TestPrune(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	for _, cluster := range []string{"paris", "oslo", "bern"} {
		must(t, b.report(cluster, 7, 1, flavors(cluster, 8, 0)))
		if err := b.store.Observe(t.Context(), cluster, wire.Observed{Generation: "7.1", Root: strings.Repeat("a", 40)}); err != nil {
			t.Fatal(err)
		}
	}
	bad := storetest.Packed(flavors("nobody", 8, 0))
	bad.Name, bad.Spec.Generation = "nobody", "x"
	r.objects.Forge(bad)
	has := func(when string, want ...string) {
		t.Helper()
		ads, seen := r.objects.Names()
		if !slices.Equal(ads, want) {
			t.Errorf("%s: Advertisements of %v, want %v", when, ads, want)
		}
		want = slices.DeleteFunc(want, func(name string) bool { return name == "nobody" })
		if !slices.Equal(seen, want) {
			t.Errorf("%s: Observations of %v, want %v", when, seen, want)
		}
	}
	r.prune(9, "paris", "bern")
	has("within the grace", "bern", "nobody", "oslo", "paris")
	r.prune(1, "paris", "oslo", "bern") // oslo's file is back, or cannot be read
	r.prune(9, "paris", "bern")
	has("it was back", "bern", "oslo", "paris")
	r.prune(3, "paris", "bern")
	has("after the grace", "bern", "paris")
	// It is enrolled again: its next report is taken as of one that nobody knows.
	for _, one := range []*replica{a, b} {
		if err := one.report("oslo", 7, 1, nil); !errors.Is(err, market.ErrUnknownBase) {
			t.Errorf("%s answers that oslo's list still holds with %v", one.name, err)
		}
	}
	must(t, b.report("oslo", 7, 1, flavors("oslo", 4, 0)))
	r.tick(2)
	if a.gpus("oslo") != 4 {
		t.Errorf("a has %d GPUs of oslo", a.gpus("oslo"))
	}
}

// One that writes just then, and a store that is out of reach, keep the objects until the
// next time.
func TestPrune_TriesAgain(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("oslo", 7, 1, flavors("oslo", 8, 0)))
	r.prune(9)
	a.refuses(store.RefusalForbidden, "no", func(kind, _ string) bool { return kind == "advertisement" })
	r.tick(120)
	if err := a.store.Prune(t.Context(), true, func(string) bool { return false }); err == nil {
		t.Error("what could not be deleted is not said")
	}
	a.api.Refuse = nil
	r.prune(1)
	if ads, _ := r.objects.Names(); len(ads) != 0 {
		t.Errorf("Advertisements of %v", ads)
	}
}
