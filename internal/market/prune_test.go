package market_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Providers that were removed from the fleet, or were never in it, are forgotten after ten
// minutes with what they offered; one that is back in time is not.
func TestPrune(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	m := market.New(market.Options{Now: func() time.Time { return now }})
	report := func(provider string) {
		t.Helper()
		f := v1alpha1.Flavor{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor}, Metadata: v1alpha1.Metadata{Name: "pool", Namespace: provider},
			Spec: v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(8000)}},
		}
		if err := m.Report(provider, wire.Generation{Epoch: 7, N: 1}, []v1alpha1.Flavor{f}, true); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		report(fmt.Sprintf("former-%d", i))
	}
	report("paris")
	report("oslo")
	known := func(names ...string) func(string) bool {
		return func(provider string) bool {
			for _, name := range names {
				if provider == name {
					return true
				}
			}
			return false
		}
	}
	for minute := range 11 {
		if minute == 9 { // oslo's file is back
			m.Prune(known("paris", "oslo"))
		} else {
			m.Prune(known("paris"))
		}
		if got := market.Providers(m); minute < 10 && len(got) != 52 {
			t.Fatalf("%d providers after %d minutes", len(got), minute)
		}
		now = now.Add(time.Minute)
	}
	if got := market.Providers(m); len(got) != 2 {
		t.Errorf("%d providers are known, want paris and oslo", len(got))
	}
	if _, flavors, _ := m.Offers(market.Query{}); len(flavors) != 2 {
		t.Errorf("%d flavors are offered, want 2", len(flavors))
	}
	if err := m.Report("former-1", wire.Generation{Epoch: 7, N: 1}, nil, false); !errors.Is(err, market.ErrUnknownBase) {
		t.Errorf("the list of one that was forgotten: %v", err)
	}
}
