package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// storing is a broker whose store is a real one.
type storing struct {
	store.Store
	calls int
}

func (s *storing) Observe(ctx context.Context, report wire.Observed) error {
	s.calls++
	err := s.Store.Observe(ctx, "rome", report)
	if stale := new(wire.StaleEpochError); errors.As(err, &stale) {
		return &transport.StaleError{Last: stale.Last} // as it comes over the wire
	}
	return err
}

// A word of an agent whose clock was ahead, or one that somebody forged, delays what is
// true by one exchange.
func TestTeller_GoesAboveAnEpochAhead(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	m := market.New(market.Options{Now: clock})
	objects := &storetest.Objects{}
	api := objects.API()
	shared := store.NewShared(store.Options{API: api, Market: m, Replica: "a", Life: "1", Now: clock})
	shared.Follow(t.Context(), api.Follow)
	for range 2 {
		now = now.Add(time.Second)
		api.Deliver(0)
		shared.Look(t.Context())
		api.Deliver(0)
	}
	for name, test := range map[string]struct {
		store store.Store
		calls int
	}{
		"memory": {&store.Memory{Market: m, Replica: "a"}, 1},
		"shared": {shared, 2},
	} {
		t.Run(name, func(t *testing.T) {
			broker := &storing{Store: test.store}
			ahead := &teller{}
			if err := ahead.tell(t.Context(), broker, wire.Observed{Problem: "ahead"}, now.Add(300*24*time.Hour)); err != nil {
				t.Fatal(err)
			}
			broker.calls = 0
			own := &teller{}
			if err := own.tell(t.Context(), broker, wire.Observed{Problem: "true"}, now); err != nil {
				t.Fatal(err)
			}
			if broker.calls != test.calls {
				t.Errorf("%d exchanges, want %d", broker.calls, test.calls)
			}
			broker.calls = 0
			if err := own.tell(t.Context(), broker, wire.Observed{Problem: "true again"}, now); err != nil || broker.calls != 1 {
				t.Errorf("the next word: %d exchanges, %v", broker.calls, err)
			}
		})
	}
	if o, err := api.Observation(t.Context(), "rome"); err != nil || o.Spec.Generation != (wire.Generation{Epoch: epochOf(now.Add(300*24*time.Hour)) + 1, N: 2}).String() {
		t.Errorf("the store has %v, %v", o, err)
	}
}

// A broker that names an epoch that no other takes is not followed when it fails.
func TestTeller_BeginsAgain(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := &teller{}
	lies := observing(func(wire.Observed) error { return &transport.StaleError{Last: wire.Generation{Epoch: 1<<63 - 1, N: 1}} })
	if err := w.tell(t.Context(), lies, wire.Observed{}, now); err == nil {
		t.Fatal("a word that was refused twice counts as told")
	}
	var got string
	honest := observing(func(o wire.Observed) error { got = o.Generation; return nil })
	if err := w.tell(t.Context(), honest, wire.Observed{}, now); err != nil || got != (wire.Generation{Epoch: epochOf(now), N: 1}).String() {
		t.Errorf("told as %s, %v", got, err)
	}
}

type observing func(wire.Observed) error

func (f observing) Observe(_ context.Context, report wire.Observed) error { return f(report) }
