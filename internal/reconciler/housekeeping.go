package reconciler

import (
	"context"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// housekeep deletes market snapshots past the fleet's retention, once a UTC
// day. A failure costs nothing but room, and is tried again the next day.
func (r *Reconciler) housekeep(ctx context.Context, in *inputs, now time.Time) {
	day := now.UTC().Truncate(24 * time.Hour)
	if day.Equal(r.kept) || r.shadow(in) || !r.mayPush(pushbudget.Status) {
		return
	}
	r.kept = day
	gone, err := r.opts.Repo.PruneMarket(ctx, now.Add(-in.fleet.Policy.Retention.Market.Duration))
	switch {
	case err != nil:
		r.opts.Log.Warn("old market snapshots cannot be removed: tried again tomorrow", "error", err)
	case len(gone) > 0:
		r.opts.Log.Info("deleted market snapshots past retention.market", "refs", gone)
	}
}
