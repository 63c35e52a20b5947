package market_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// What was made smaller is shown as it was until its provider is heard again,
// whether that says something new or that all is as it was.
func TestStillHeld(t *testing.T) {
	now := newClock()
	m := market.New(market.Options{Now: now.Now})
	report(t, m, "paris", gen(1, 1), gpus("paris", "h100", 8), gpus("paris", "a100", 8))
	four, two := v1alpha1.Resources{"gpu": v1alpha1.AmountOf(4)}, v1alpha1.Resources{"gpu": v1alpha1.AmountOf(2)}
	is := func(flavor string, want v1alpha1.Resources, when string) {
		t.Helper()
		if got := m.Snapshot().Offer("paris", flavor).Flavor.Spec.Held["train"]; !got.Equal(want) {
			t.Errorf("%s: train holds %v of %s, want %v", when, got.Canonical(), flavor, want.Canonical())
		}
	}
	before := m.Snapshot()
	m.StillHeld("paris", "h100", "train", ledger.Had{Resources: four})
	is("h100", four, "told")
	is("a100", nil, "told of another flavor")
	if after := m.Snapshot(); after.Generation() == before.Generation() || before.Offer("paris", "h100").Flavor.Spec.Held != nil {
		t.Error("an older snapshot changed, or nobody sees that there is a new one")
	}
	m.StillHeld("paris", "h100", "train", ledger.Had{Resources: two})
	is("h100", four, "told of less")
	if err := m.Report("paris", gen(1, 1), nil, false); err != nil {
		t.Fatal(err)
	}
	is("h100", nil, "heard again, nothing new")

	m.StillHeld("paris", "h100", "train", ledger.Had{Resources: two})
	held := gpus("paris", "h100", 8)
	held.Spec.Held = map[string]v1alpha1.Resources{"train": four}
	report(t, m, "paris", gen(1, 2), held)
	is("h100", four, "reported as not made smaller yet")
	m.StillHeld("paris", "h100", "train", ledger.Had{Resources: two})
	is("h100", four, "reported as more than told")
	report(t, m, "paris", gen(1, 3), gpus("paris", "h100", 8))
	is("h100", nil, "reported as gone")

	m.SetInputs(market.Inputs{Flavors: []*v1alpha1.Flavor{new(gpus("oslo", "h100", 8))}})
	m.StillHeld("oslo", "h100", "train", ledger.Had{Resources: four}) // nobody would take it back
	if got := m.Snapshot().Offer("oslo", "h100").Flavor.Spec.Held; got != nil {
		t.Errorf("a provider without an agent holds %v", got)
	}
	m.StillHeld("rome", "h100", "train", ledger.Had{Resources: four})
}
