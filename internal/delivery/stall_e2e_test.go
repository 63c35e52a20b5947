//go:build e2e

package delivery

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// stalls reaches clusters of package env over connections that stop in the middle
// of an answer and stay open, as behind a proxy that has forgotten them.
type stalls struct {
	testAccess
	cluster string
	after   atomic.Pointer[atomic.Int64] // bytes that may still come from the cluster; nil: all
}

// RESTConfig implements Access.
func (s *stalls) RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	config, err := s.testAccess.RESTConfig(ctx, cluster)
	if err == nil && cluster.Metadata.Name == s.cluster {
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallingConn{Conn: c, s: s, closed: make(chan struct{})}, nil
		}
	}
	return config, err
}

type stallingConn struct {
	net.Conn
	s      *stalls
	once   sync.Once
	closed chan struct{}
	stuck  atomic.Bool
}

// Read implements net.Conn.
func (c *stallingConn) Read(p []byte) (int, error) {
	if left := c.s.after.Load(); left != nil && left.Load() <= 0 || c.stuck.Load() {
		c.stuck.Store(true) // for good, whatever becomes of new ones
		<-c.closed
		return 0, net.ErrClosed
	} else if left != nil {
		n, err := c.Conn.Read(p[:min(int64(len(p)), max(1, left.Load()))])
		left.Add(-int64(n))
		return n, err
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *stallingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Answers of a cluster that stall in the middle of their body hold nobody else up,
// the status says that it does not answer, and once new connections work the
// cluster is served, though the old ones were never closed.
func testStalls(t *testing.T, access testAccess) {
	// How soon an idle connection is asked whether it lives: 30 s and 15 s otherwise.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	s := &stalls{testAccess: access, cluster: "rome"}
	r := newRig(t, s, nil)
	first := desired(t, "rome", contract("rome", "train"))
	r.deliver(first)
	r.settled(t, first)
	for i, bytes := range []int64{1, 700, 5000} {
		intents := []string{"serve", "batch", "infer"}[:i+1]
		all, there := []*v1alpha1.Contract{contract("rome", "train")}, []*v1alpha1.Contract{}
		for _, intent := range intents {
			all, there = append(all, contract("rome", intent)), append(there, contract("oslo", intent))
		}
		left := new(atomic.Int64)
		left.Store(bytes)
		s.after.Store(left)
		more, next := desired(t, "rome", all...), desired(t, "oslo", there...)
		watch := bounded.StartStopwatch()
		r.deliver(more, next)
		r.settled(t, next)
		if err := watch.Late(10*time.Second, time.Minute); err != nil {
			t.Errorf("after %d bytes, oslo beside a stalled rome: %v", bytes, err)
		}
		envtest.Eventually(t, "the status to say that rome does not answer", func(context.Context) bool {
			status := r.Status()["rome"]
			return !status.Reachable && status.Problem != ""
		})
		t.Logf("after %d bytes: %s", bytes, r.Status()["rome"].Problem)
		s.after.Store(nil)
		r.settledAfterOutage(t, more)
	}
	r.deliver(desired(t, "rome"), desired(t, "oslo"))
	r.settledAfterOutage(t, desired(t, "rome"))
}
