//go:build e2e

package request

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// ledger is one fleet's, as its broker answers from it: who reserved there and released.
type ledger struct {
	fleet string

	mu                 sync.Mutex
	reserved, released map[string]int
}

// Reserve implements Broker.
func (l *ledger) Reserve(_ context.Context, key string, _ wire.ReservationRequest) (wire.Reservation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved[key]++
	return wire.Reservation{ID: wire.ReservationID("rome", key), Contract: l.fleet + "-0"}, nil
}

// Release implements Broker.
func (l *ledger) Release(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released[id]++
	return nil
}

func (l *ledger) of(m map[string]int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(m))
}

// Agents of two fleets in one cluster, which both know every ResourceRequest: each is
// reserved in one fleet and released in that one, also when the other agent runs alone.
func TestTwoFleetsInOneClusterServeARequestOnce(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "rome"})
	ctx := t.Context()
	if err := env.InstallAgentCRDs(ctx, cluster.Config); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := crd.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ledgers := []*ledger{}
	stops := []context.CancelFunc{}
	for _, fleet := range []string{"acme-1f0c", "beta-77aa"} {
		l := &ledger{fleet: fleet, reserved: map[string]int{}, released: map[string]int{}}
		mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		r := &Reconciler{Cluster: "rome", Client: mgr.GetClient(), Broker: l, Log: slog.New(slog.DiscardHandler), Instructions: func() *wire.Instructions { return &wire.Instructions{Fleet: fleet} }}
		if err := r.SetUp(mgr); err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- mgr.Start(running) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		ledgers, stops = append(ledgers, l), append(stops, stop)
	}
	const requests = 20
	keys := map[string]string{} // of each fleet that serves it
	for i := range requests {
		o := &crd.ResourceRequest{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r%02d", i), Namespace: "default"}}
		o.Spec.Resources = crd.RequestedResources{CPU: new(intstr.FromInt32(4))}
		if err := objects.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	envtest.Eventually(t, "all to be reserved", func(ctx context.Context) bool {
		var list crd.ResourceRequestList
		if err := objects.List(ctx, &list); err != nil {
			t.Error(err)
		}
		for _, o := range list.Items {
			if o.Status.Contract == "" && o.Status.ReservationName == "" {
				return false
			}
			keys[string(o.UID)] = o.Status.Fleet
		}
		return len(list.Items) == requests
	})
	for _, l := range ledgers {
		for _, key := range l.of(l.reserved) {
			if keys[key] != l.fleet {
				t.Errorf("a request of fleet %q was reserved by %s", keys[key], l.fleet)
			}
		}
	}
	if a, b := len(ledgers[0].of(ledgers[0].reserved)), len(ledgers[1].of(ledgers[1].reserved)); a+b != requests {
		t.Errorf("%d and %d reservations for %d requests", a, b, requests)
	}
	// Deleted while the first fleet's agent is away: its own wait for it.
	stops[0]()
	if err := objects.DeleteAllOf(ctx, &crd.ResourceRequest{}, client.InNamespace("default")); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	envtest.Eventually(t, "those of the other fleet to be released", func(ctx context.Context) bool {
		var list crd.ResourceRequestList
		if err := objects.List(ctx, &list); err != nil {
			t.Error(err)
		}
		for _, o := range list.Items {
			if o.Status.Fleet != ledgers[0].fleet {
				return false
			}
		}
		return len(list.Items) == len(ledgers[0].of(ledgers[0].reserved))
	})
	for _, id := range ledgers[1].of(ledgers[1].released) {
		for key, fleet := range keys {
			if fleet == ledgers[0].fleet && id == wire.ReservationID("rome", key) {
				t.Errorf("%s released what %s reserved", ledgers[1].fleet, fleet)
			}
		}
	}
}
