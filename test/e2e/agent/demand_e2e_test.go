//go:build e2e

package agent

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// demand is what a broker's market knows of the cluster's pods.
func (b *broker) demand() *v1alpha1.DemandSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.market.Snapshot().Demand()["paris"]
}

// TestReplicasFollowPodsThatWait: here the cluster consumes. A real scheduler
// says which pods fit nowhere, the agent reports them to the market over mutual
// TLS, and the planner makes of it more replicas of an intent, whose nodes then
// take the pods; and fewer once the pods are gone for long enough.
func TestReplicasFollowPodsThatWait(t *testing.T) {
	f := newFleet(t, func(*fleet) {})
	scheduler, err := env.StartScheduler(t.Context(), f.cluster, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scheduler.Stop(); err != nil {
			t.Error(err)
		}
	})
	b := plantest.New().Consumer("paris").Provider("rome").Tenant("vision", "paris").
		Offer("rome/h100", plantest.Cards("nvidia-h100", 16, "80Gi"), plantest.Costs("2.85")).
		Intent("vision/serve", plantest.Wants(2, "H100"), plantest.Follows(1, 3))
	round := func(want int) []*v1alpha1.Contract {
		t.Helper()
		b.W.Demand = f.brokers[0].snapshot().Demand()
		b.Round()
		list := b.Contracts("vision/serve")
		if len(list) != want {
			t.Fatalf("%d replicas, want %d; demand %+v", len(list), want, b.W.Demand["paris"])
		}
		return list
	}
	round(1)
	b.Tick(10 * time.Second).Deliver().Round()
	f.virtualNode(b.Contracts("vision/serve")[0])
	f.pod("p0")
	f.await("the first pod's node", func(b *broker) bool { d := b.demand(); return d != nil && busy(d) == 1 })
	if node := f.nodeOf("p0"); node != b.Contracts("vision/serve")[0].Spec.Slice {
		t.Fatalf("the scheduler put the first pod on %q", node)
	}

	// Two more find no room: each fills a node.
	f.pod("p1")
	f.pod("p2")
	f.await("the pods that wait", func(b *broker) bool {
		d := b.demand()
		return len(d.Pending) == 1 && d.Pending[0].Pods == 2 && d.Pending[0].Intents[0] == "vision.serve" && d.Pending[0].Requests["nvidia.com/gpu"].Int64() == 2
	})
	b.Tick(time.Hour)
	list := round(3)
	b.Tick(10 * time.Second).Deliver().Round()
	for _, c := range list {
		f.virtualNode(c)
	}
	f.await("nobody to wait any more", func(b *broker) bool { d := b.demand(); return len(d.Pending) == 0 && busy(d) == 3 })

	// Pods that are gone leave their node idle; ten minutes later it goes.
	gone := f.nodeOf("p1")
	now := int64(0)
	if err := f.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p1", Namespace: "vision"}}, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	f.await("the idle node", func(b *broker) bool { d := b.demand(); return busy(d) == 2 && !d.Nodes[gone].IdleSince.IsZero() })
	b.W.Now = v1alpha1.TimeOf(time.Now().Add(9 * time.Minute))
	round(3)
	b.W.Now = v1alpha1.TimeOf(time.Now().Add(11 * time.Minute))
	for _, c := range round(3) {
		if (c.Spec.Slice == gone) != (c.Status.Phase == v1alpha1.PhaseReleasing) {
			t.Errorf("%s is %s, the idle node is %s", c.Spec.Slice, c.Status.Phase, gone)
		}
	}
}

func (b *broker) snapshot() *market.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.market.Snapshot()
}

func busy(d *v1alpha1.DemandSeen) (n int) {
	for _, use := range d.Nodes {
		if use.Pods > 0 {
			n++
		}
	}
	return n
}

// virtualNode makes the node that a contract's slice becomes.
func (f *fleet) virtualNode(c *v1alpha1.Contract) {
	f.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.Slice, Labels: map[string]string{"liqo.io/type": "virtual-node"}}}
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintIntent, Value: v1alpha1.IntentValue("vision", "serve"), Effect: corev1.TaintEffectNoSchedule}}
	if err := f.client.Create(f.t.Context(), n); client.IgnoreAlreadyExists(err) != nil {
		f.t.Fatal(err)
	} else if err != nil {
		return
	}
	n.Status.Capacity = quantities("cpu", "8", "memory", "64Gi", "pods", "20", "ephemeral-storage", "50Gi", "nvidia.com/gpu", fmt.Sprint(c.Spec.Resources["nvidia.com/gpu"].Int64()))
	n.Status.Allocatable = n.Status.Capacity
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if err := f.client.Status().Update(f.t.Context(), n); err != nil {
		f.t.Fatal(err)
	}
	// The API server taints a new node until it is seen ready; nobody else here
	// would take that taint off.
	if err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		f.t.Fatal(err)
	}
	n.Spec.Taints = n.Spec.Taints[:0]
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintIntent, Value: v1alpha1.IntentValue("vision", "serve"), Effect: corev1.TaintEffectNoSchedule})
	if err := f.client.Update(f.t.Context(), n); err != nil {
		f.t.Fatal(err)
	}
}

// pod makes one that wants two cards and may use the intent's nodes.
func (f *fleet) pod(name string) {
	f.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vision"}}
	if err := f.client.Create(f.t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		f.t.Fatal(err)
	}
	off := false
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "vision"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &off,
			Tolerations:                  []corev1.Toleration{{Key: v1alpha1.TaintIntent, Operator: corev1.TolerationOpEqual, Value: v1alpha1.IntentValue("vision", "serve"), Effect: corev1.TaintEffectNoSchedule}},
			Containers: []corev1.Container{{Name: "main", Image: "example.org/none", Resources: corev1.ResourceRequirements{
				Requests: quantities("cpu", "2", "nvidia.com/gpu", "2"), Limits: quantities("nvidia.com/gpu", "2"),
			}}},
		},
	}
	if err := f.client.Create(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

// nodeOf is where the scheduler put a pod.
func (f *fleet) nodeOf(name string) (node string) {
	f.t.Helper()
	envtest.Eventually(f.t, name+" to be bound", func(ctx context.Context) bool {
		p := &corev1.Pod{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "vision", Name: name}, p); err != nil {
			return false
		}
		node = p.Spec.NodeName
		return node != ""
	})
	return node
}
