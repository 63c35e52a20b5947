package spread

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	marketstore "github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// By the store that replicas really share: both try all when they start, who gets no
// Lease lets go within a few heartbeats, and all is seen by both.
func TestSpread_ByTheStoreOfReplicas(t *testing.T) {
	w := newWorld(t, 20)
	objects := &storetest.Objects{}
	apis, stores := map[string]*storetest.API{}, map[string]*marketstore.Shared{}
	for _, name := range []string{"a", "b"} {
		r := &replica{w: w, name: name, maps: map[string]map[string]v1alpha1.ConsumerObservation{}}
		r.spread = over(r, w.clock, nil)
		w.replicas[name] = r
		apis[name] = objects.API()
		stores[name] = marketstore.NewShared(marketstore.Options{
			API: apis[name], Market: market.New(market.Options{Now: w.clock.Now}), Replica: name, Life: "1", Now: w.clock.Now,
			Observed: func(cluster string, report wire.Observed) { _ = r.spread.Observed(cluster, report) },
		})
		stores[name].Follow(t.Context(), apis[name].Follow)
		r.spread.Join(stores[name], name)
		r.spread.Deliver(w.desired)
	}
	for range 60 {
		for range 2 {
			w.clock.Step(time.Second)
			for _, name := range []string{"a", "b"} {
				apis[name].Deliver(0)
				stores[name].Look(t.Context())
				apis[name].Deliver(0)
			}
		}
		w.clock.Step(-lookEvery) // pass steps it again
		w.pass(lookEvery)
	}
	for cluster := range w.desired {
		if n := w.watching(cluster); n != 1 {
			t.Errorf("%s is watched by %d", cluster, n)
		}
	}
	w.balanced("by the store")
}
