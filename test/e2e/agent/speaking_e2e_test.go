//go:build e2e

package agent

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// gate keeps requests for Leases from an API server while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil: it is open
}

func (h *gate) close() { h.mu.Lock(); defer h.mu.Unlock(); h.shut = make(chan struct{}) }
func (h *gate) open()  { h.mu.Lock(); defer h.mu.Unlock(); close(h.shut); h.shut = nil }

type gatedTransport struct {
	*gate
	http.RoundTripper
}

func (t gatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	shut := t.shut
	t.mu.Unlock()
	if shut != nil && strings.Contains(r.URL.Path, "/leases/") {
		select {
		case <-shut:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return t.RoundTripper.RoundTrip(r)
}

// A replica of the agent that was cut off while it spoke for the cluster, and comes back
// when another one has taken over, leaves the Lease to that one; one that stops in its
// own term gives it up.
func TestReplicaThatWasCutOffLeavesTheLease(t *testing.T) {
	f := newFleetWithoutLiqo(t)
	ctx := t.Context()
	if err := f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleetbroker"}}); err != nil {
		t.Fatal(err)
	}
	way := &gate{}
	config := rest.CopyConfig(f.cluster.Config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return gatedTransport{way, rt} })
	replica := func() (stop func(), ended chan error) {
		running, cancel := context.WithCancel(ctx)
		ended = make(chan error, 1)
		go func() {
			ended <- agent.Run(running, agent.Options{
				Cluster: "paris", Config: config, CertDir: f.certs, Interval: time.Second, MetricsAddress: "0", HealthAddress: "0",
				LeaseNamespace: "fleetbroker", Brokers: []string{"https://" + f.brokers[0].address}, Log: slog.New(slog.DiscardHandler),
			})
		}()
		t.Cleanup(cancel)
		return cancel, ended
	}
	lease := func() (l coordinationv1.Lease, holder string) {
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "fleetbroker", Name: "fleet-agent"}, &l); err != nil || l.Spec.HolderIdentity == nil {
			return l, ""
		}
		return l, *l.Spec.HolderIdentity
	}
	speaks := func(context.Context) bool { _, who := lease(); return who != "" }

	_, ended := replica()
	envtest.Eventually(t, "the replica speaks for the cluster", speaks)
	way.close()
	// It renews every 2 s and gives up after 10 s more; what it then asks for waits 5 s.
	<-time.After(12500 * time.Millisecond)
	taken, _ := lease()
	other := "another"
	taken.Spec.HolderIdentity = &other
	now := metav1.NowMicro()
	taken.Spec.RenewTime = &now
	if err := f.client.Update(ctx, &taken); err != nil {
		t.Fatal(err)
	}
	way.open()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "leader election lost") {
			t.Errorf("the replica that was cut off ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the replica that was cut off goes on")
	}
	if _, who := lease(); who != other {
		t.Fatalf("the Lease is %q's, want %q's that has taken over", who, other)
	}

	gone, _ := lease()
	if err := f.client.Delete(ctx, &gone); err != nil {
		t.Fatal(err)
	}
	stop, ended := replica()
	// Once it has renewed: one that is stopped while it takes the Lease may not know that it has it.
	envtest.Eventually(t, "the next replica has renewed its Lease", func(context.Context) bool {
		l, who := lease()
		return who != "" && l.Spec.RenewTime.After(l.Spec.AcquireTime.Time)
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, who := lease(); who != "" {
		t.Errorf("the replica that stopped leaves the Lease %q's", who)
	}
}
