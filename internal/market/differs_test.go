package market_test

import (
	"slices"
	"testing"
	"time"

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
