package spread

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	marketstore "github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// sharing is a world whose replicas share the store that they really do.
type sharing struct {
	*world
	apis   map[string]*storetest.API
	stores map[string]*marketstore.Shared
}

func newSharing(t *testing.T, clusters int, names ...string) *sharing {
	s := &sharing{world: newWorld(t, clusters), apis: map[string]*storetest.API{}, stores: map[string]*marketstore.Shared{}}
	objects := &storetest.Objects{}
	for _, name := range names {
		r := &replica{w: s.world, name: name, maps: map[string]map[string]v1alpha1.ConsumerObservation{}}
		r.spread = over(r, s.clock, nil)
		s.replicas[name] = r
		s.apis[name] = objects.API()
		s.stores[name] = marketstore.NewShared(marketstore.Options{
			API: s.apis[name], Market: market.New(market.Options{Now: s.clock.Now}), Replica: name, Life: "1", Now: s.clock.Now,
			Observed: func(from, cluster string, report wire.Observed) { _ = r.spread.Told(from, cluster, report) },
		})
		s.stores[name].Follow(t.Context(), s.apis[name].Follow)
		r.spread.Join(s.stores[name], name)
		r.spread.Deliver(s.desired)
	}
	return s
}

// pass lets time pass for the store and for the replicas that are not dead.
func (s *sharing) pass(d time.Duration) {
	for range d / lookEvery {
		for range lookEvery / time.Second {
			s.clock.Step(time.Second)
			for name, api := range s.apis {
				if !s.replicas[name].dead {
					api.Deliver(0)
					s.stores[name].Look(s.t.Context())
					api.Deliver(0)
				}
			}
		}
		s.clock.Step(-lookEvery) // pass steps it again
		s.world.pass(lookEvery)
	}
}

// By the store that replicas really share: both try all when they start, who gets no
// Lease lets go within a few heartbeats, and all is seen by both.
func TestSpread_ByTheStoreOfReplicas(t *testing.T) {
	s := newSharing(t, 20, "a", "b")
	s.pass(2 * time.Minute)
	for cluster := range s.desired {
		if n := s.watching(cluster); n != 1 {
			t.Errorf("%s is watched by %d", cluster, n)
		}
	}
	s.balanced("by the store")
}

// The clusters of a replica that stops as planned are another's within two seconds, those
// of one that is killed when it has missed a beat.
func TestSpread_TakesOverInTime(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(s *sharing)
		within time.Duration
	}{
		"stops as planned": {func(s *sharing) { s.stores["a"].Withdraw(t.Context()) }, 2 * time.Second},
		"is killed":        {func(*sharing) {}, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharing(t, 20, "a", "b", "c")
			s.pass(3 * time.Minute)
			test.end(s)
			s.kill("a")
			s.pass(test.within)
			for cluster := range s.desired {
				if n := s.watching(cluster); n != 1 {
					t.Errorf("%s after it %s: %d try to deliver to %s", test.within, name, n, cluster)
				}
			}
		})
	}
}

// Who only misses a beat keeps its clusters: others try, get no Lease, and let go.
func TestSpread_WhoMissesABeatKeepsItsClusters(t *testing.T) {
	s := newSharing(t, 20, "a", "b")
	s.pass(20 * time.Minute) // each cluster is with the first by now
	s.balanced("before")
	of := map[string]string{}
	for cluster, holder := range s.leases {
		of[cluster] = holder
	}
	beaten, fail := false, false
	s.apis["a"].Fault = func(string) (fails, made bool) {
		beaten = true
		return fail, false
	}
	for !beaten {
		s.pass(lookEvery)
	}
	fail = true
	clear(s.watchers)
	s.pass(17 * time.Second) // shorter than what cuts a off, and longer than b waits for its beat
	tried := 0
	for _, n := range s.watchers {
		tried += n - 1
	}
	if tried == 0 {
		t.Error("nobody tried to deliver to the clusters of who missed a beat")
	}
	s.apis["a"].Fault = nil
	s.pass(time.Minute)
	for cluster, holder := range s.leases {
		if holder != of[cluster] {
			t.Errorf("%s moved from %s to %s", cluster, of[cluster], holder)
		}
	}
	s.balanced("after")
}

// That the store asks to wait is logged once until a word is taken, whatever is left to wait.
func TestSpread_LogsOnceThatItHasToWait(t *testing.T) {
	s := newSharing(t, 1, "a")
	var lines logtest.Lines
	s.replicas["a"].spread.log = slog.New(slog.NewTextHandler(&lines, nil))
	s.pass(10 * time.Second)
	for word := range 11 { // six at once, and one each five seconds
		s.replicas["a"].maps["c000"] = map[string]v1alpha1.ConsumerObservation{"k": {Reachable: true, Message: fmt.Sprint(word)}}
		s.pass(lookEvery)
	}
	if n := strings.Count(lines.String(), "changes too often"); n == 0 || n > 2 {
		t.Errorf("that it has to wait was logged %d times in 5 s, want once after each word that is taken:\n%s", n, lines.String())
	}
}
