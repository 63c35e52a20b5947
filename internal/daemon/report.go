package daemon

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// ReportAll tells a market what another one knew, provider by provider.
func ReportAll(m *market.Market, flavors []*v1alpha1.Flavor) error {
	by := map[string][]v1alpha1.Flavor{}
	for _, f := range flavors {
		by[f.Metadata.Namespace] = append(by[f.Metadata.Namespace], *f)
	}
	for name, list := range by {
		if err := m.Report(name, wire.Generation{Epoch: 1, N: 1}, list, true); err != nil {
			return fmt.Errorf("take the market's flavors of %s: %w", name, err)
		}
	}
	return nil
}
