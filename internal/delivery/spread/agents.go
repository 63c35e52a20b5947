package spread

import (
	"context"
	"errors"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

// Agents is delivery by clusters' own agents, of which every replica knows.
type Agents struct {
	*Deliverer

	// Store makes the others know.
	Store interface {
		Observe(ctx context.Context, cluster string, report wire.Observed) error
	}
}

// Observed implements the server's Delivery.
func (a Agents) Observed(ctx context.Context, cluster string, report wire.Observed) error {
	if _, _, err := a.Manifests(cluster); errors.Is(err, delivery.ErrNotDelivered) {
		return err
	}
	report.Differs = false // the daemon's own word
	if err := a.Store.Observe(ctx, cluster, report); err != nil {
		return err
	}
	return a.Deliverer.Observed(cluster, report)
}
