package agent

import (
	"context"
	"errors"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// observer takes what an agent sees of what it applied; a transport.Transport is one.
type observer interface {
	Observe(ctx context.Context, report wire.Observed) error
}

// teller orders what an agent tells one broker of what it sees: each word's generation is
// above the one before, and above every word that the broker names as newer. The zero
// value begins with the clock. One goroutine uses it.
type teller struct{ generation wire.Generation }

// tell tells a broker. One that knows a newer word, of the agent before this one or of a
// clock that was ahead, is told again at once, above that.
func (w *teller) tell(ctx context.Context, broker observer, report wire.Observed, now time.Time) error {
	if w.generation.Epoch == 0 {
		w.generation.Epoch = epochOf(now)
	}
	w.generation.N++
	report.Generation = w.generation.String()
	err := broker.Observe(ctx, report)
	if stale := new(transport.StaleError); errors.As(err, &stale) {
		w.generation = wire.Generation{Epoch: max(stale.Last.Epoch+1, epochOf(now)), N: 1}
		report.Generation = w.generation.String()
		err = broker.Observe(ctx, report)
	}
	if err != nil && w.generation.Epoch > epochOf(now.Add(ownEpochs)) {
		w.generation = wire.Generation{} // as sender.beginAgain
	}
	return err
}

// epochOf is the epoch of who begins at a time.
func epochOf(now time.Time) uint64 {
	return uint64(max(now.UnixNano(), 1)) //nolint:gosec // above zero
}
