package store_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// pruning is an API server with definitions of before Heartbeats had connections.
type pruning struct{ store.API }

func (a pruning) PutHeartbeat(ctx context.Context, h *marketcrd.Heartbeat) (string, error) {
	h = h.DeepCopy()
	h.Spec.Connections, h.Spec.Pushes = nil, 0
	return a.API.PutHeartbeat(ctx, h)
}

// Fields that the API server drops, because its definitions are older, are said once, with
// what to do; with definitions of this program nothing is said.
func TestHeartbeat_OlderDefinitionsAreSaid(t *testing.T) {
	for _, older := range []bool{false, true} {
		r := newReplicas(t)
		api := r.objects.API()
		var through store.API = api
		if older {
			through = pruning{api}
		}
		var log bytes.Buffer
		one := &replica{name: "a", api: api, market: market.New(market.Options{})}
		one.store = store.NewShared(store.Options{
			API: through, Market: one.market, Replica: "a", Life: "1", Connections: func() int { return 0 }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		one.store.Follow(t.Context(), api.Follow)
		for range 3 {
			api.Deliver(0)
			one.store.Called() // a beat that does not wait for its time
			one.store.Look(t.Context())
			api.Deliver(0)
		}
		want := 0
		if older {
			want = 1
		}
		if got := strings.Count(log.String(), "older than this program"); got != want {
			t.Errorf("older definitions %t: said %d times, want %d:\n%s", older, got, want, log.String())
		}
		if older {
			logtest.Wants(t, log.String(), "FB1092")
		}
		if older && !strings.Contains(log.String(), "crds.yaml") {
			t.Errorf("no remedy in %s", log.String())
		}
	}
}
