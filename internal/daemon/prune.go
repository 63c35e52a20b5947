package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// pruneEvery is how often is looked for clusters that are not in the fleet.
const pruneEvery = time.Minute

// Prune keeps the market and its store free of clusters that were removed from the fleet, until the context
// ends. known gives which clusters are in it; nil while that is not certain, because the
// inputs cannot be read.
func Prune(ctx context.Context, shared store.Store, decides func() bool, known func() func(cluster string) bool, log *slog.Logger) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		is := known()
		if is == nil || shared.Status().Cut != "" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, pruneEvery)
		if err := shared.Prune(limited, decides(), is); err != nil && ctx.Err() == nil {
			log.Warn("what the market's store has of clusters that are not in the fleet is not deleted yet", "error", err)
		}
		cancel()
	}
}
