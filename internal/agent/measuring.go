package agent

import (
	"context"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// usePoll is how often the use of contracts is looked at. metrics-server itself
// measures four times a minute.
const usePoll = time.Minute

// measure looks at the use of contracts until the context ends, as long as a
// flavor is sold within a risk: for others nobody asks.
func (a *agent) measure(ctx context.Context) {
	ticker := time.NewTicker(usePoll)
	defer ticker.Stop()
	for {
		if f := a.flavors.Load(); f != nil && slices.ContainsFunc(*f, isRisky) {
			measured := a.meter.Read(ctx, labelOrigin)
			a.measured.Store(&measured)
			a.touch()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// isRisky reports whether a flavor is sold more than once within a risk.
func isRisky(f v1alpha1.Flavor) bool {
	_, bounded := f.Spec.Overcommit[keyMaxRisk]
	return bounded
}
