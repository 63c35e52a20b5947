package market_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

func TestDiffers(t *testing.T) {
	clock := newClock()
	m := market.New(market.Options{Now: clock.Now})
	file := gpus("oslo", "a100", 4)
	files := func(key string, list ...*v1alpha1.Flavor) {
		m.SetInputs(market.Inputs{Key: key, Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")}, Flavors: list})
	}
	steps := []struct {
		what string
		do   func()
		want []string
	}{
		{"two report", func() {
			report(t, m, "paris", gen(1, 1), gpus("paris", "h100", 8))
			report(t, m, "berlin", gen(1, 1), gpus("berlin", "h100", 8))
		}, []string{"berlin", "paris"}},
		{"the same again", func() { report(t, m, "paris", gen(1, 2), gpus("paris", "h100", 8)) }, nil},
		{"one changes", func() { report(t, m, "berlin", gen(1, 2), gpus("berlin", "h100", 7)) }, []string{"berlin"}},
		{"a file comes", func() { files("1", &file) }, []string{"oslo"}},
		{"and goes", func() { files("2") }, []string{"oslo"}},
		{"one falls silent", func() {
			clock.pass(80 * time.Second)
			report(t, m, "paris", gen(1, 3), gpus("paris", "h100", 8))
			clock.pass(20 * time.Second)
		}, []string{"berlin"}},
	}
	files("0")
	before := m.Snapshot()
	for _, step := range steps {
		step.do()
		now := m.Snapshot()
		if got := now.Differs(before); !slices.Equal(got, step.want) {
			t.Errorf("%s: %q differ, want %q", step.what, got, step.want)
		}
		if got := before.Differs(now); !slices.Equal(got, step.want) {
			t.Errorf("%s, seen backwards: %q differ, want %q", step.what, got, step.want)
		}
		before = now
	}
}

// What did not change keeps its address, though its provider reports anew, and
// what did change says so.
func TestUnchangedOffersKeepTheirAddress(t *testing.T) {
	clock := newClock()
	m := market.New(market.Options{Now: clock.Now})
	m.SetInputs(market.Inputs{Key: "0", Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")}})
	used := func(f v1alpha1.Flavor, cpu int64) v1alpha1.Flavor {
		f.Spec.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(cpu)}
		return f
	}
	of := func(name string) *model.Offer { return m.Snapshot().Offer("paris", name) }
	report(t, m, "paris", gen(1, 1), used(gpus("paris", "a100", 4), 1000), gpus("paris", "h100", 8))
	a, h := of("a100"), of("h100")

	report(t, m, "paris", gen(1, 2), used(gpus("paris", "a100", 4), 2000), gpus("paris", "h100", 8))
	if of("h100") != h {
		t.Error("what reports the same is another offer")
	}
	if now := of("a100"); now == a || now.Flavor == a.Flavor || now.Flavor.Spec.Used[v1alpha1.CPU].Int64() != 2000 || a.Flavor.Spec.Used[v1alpha1.CPU].Int64() != 1000 {
		t.Errorf("other use: %+v, was %+v", now.Flavor.Spec.Used, a.Flavor.Spec.Used)
	}

	report(t, m, "paris", gen(1, 3), used(gpus("paris", "a100", 4), 2000), gpus("paris", "h100", 7))
	if now := of("h100"); now == h || now.Flavor == h.Flavor || now.Flavor.Spec.Capacity[v1alpha1.GPU].Int64() != 7 {
		t.Errorf("another size: %+v", now.Flavor.Spec.Capacity)
	}

	h = of("h100")
	clock.pass(100 * time.Second)
	if now := of("h100"); now == h || now.State != model.Silent || h.State != model.Fresh || now.Flavor != h.Flavor {
		t.Errorf("a silent provider's offer: %v, its flavor is another one: %v", now.State, now.Flavor != h.Flavor)
	}
}

// What contracts hold on nodes, and what is free of them, is what was reported last.
func TestNodesAreTheNewestReports(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	nodes := func(free int64, on string) v1alpha1.Flavor {
		f := gpus("paris", "h100", 8)
		f.Spec.Held = map[string]v1alpha1.Resources{"train": {v1alpha1.GPU: v1alpha1.AmountOf(2)}}
		f.Spec.Nodes = &v1alpha1.FlavorNodes{Groups: []v1alpha1.NodeGroup{{
			Shape: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(4)}, Free: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(free)}, Nodes: []string{"n0000000000001", "n0000000000002"},
		}}}
		f.Spec.HeldOn = map[string]map[string]v1alpha1.Resources{"train": {on: {v1alpha1.GPU: v1alpha1.AmountOf(2)}}}
		return f
	}
	for n, want := range []v1alpha1.Flavor{nodes(4, "n0000000000001"), nodes(4, "n0000000000002"), nodes(3, "n0000000000002")} {
		report(t, m, "paris", gen(1, uint64(n)+1), want) //nolint:gosec // small
		got := m.Snapshot().Offers()[0].Flavor
		if !v1alpha1.SameOnNodes(got.Spec.HeldOn, want.Spec.HeldOn) || !reflect.DeepEqual(got.Spec.Nodes, want.Spec.Nodes) {
			t.Errorf("report %d: %+v on nodes %+v", n, got.Spec.HeldOn, got.Spec.Nodes)
		}
	}
}
