package market

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A report has so many price windows in total: each costs work with every
// placement.
func TestWindowsOfAReport(t *testing.T) {
	made := func(flavors int) []v1alpha1.Flavor {
		windows := make([]v1alpha1.PriceWindow, maxWindows)
		for i := range windows {
			windows[i].Window = v1alpha1.Window{From: "20:00", To: "06:00", Timezone: "Europe/Rome"}
			windows[i].PerHour = map[string]v1alpha1.Decimal{"gpu": v1alpha1.DecimalFromInt(1)}
		}
		list := make([]v1alpha1.Flavor, flavors)
		for i := range list {
			f := &list[i]
			f.Metadata.Name, f.Metadata.Namespace = fmt.Sprintf("f%d", i), "paris"
			f.Spec.Capacity = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)}
			f.Spec.Price = &v1alpha1.Price{Currency: "EUR", PerHour: map[string]v1alpha1.Decimal{"gpu": v1alpha1.DecimalFromInt(1)}, Windows: windows}
		}
		return list
	}
	if _, err := check("paris", made(maxAllWindow/maxWindows)); err != nil {
		t.Error(err)
	}
	if _, err := check("paris", made(maxFlavors)); err == nil || !strings.Contains(err.Error(), "price windows in one report") {
		t.Error(err)
	}
}
