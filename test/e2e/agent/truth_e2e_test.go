//go:build e2e

package agent

import (
	"context"
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// offers waits until every broker has a flavor that is as expected.
func (f *fleet) offers(name, what string, expected func(*v1alpha1.Flavor) bool) {
	f.t.Helper()
	last := ""
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("%s is offered as %s", name, last)
		}
	})
	f.await(name+" "+what, func(b *broker) bool {
		o := b.offer(name)
		if o == nil {
			last = "nothing"
			return false
		}
		last = fmt.Sprintf("%+v", o.Spec)
		return expected(o)
	})
}

// cards are a node's as GPU feature discovery labels them when they are cut.
func cards(product, sharing, replicas string) map[string]string {
	return map[string]string{
		"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.family": "hopper",
		"nvidia.com/gpu.sharing-strategy": sharing, "nvidia.com/gpu.replicas": replicas,
	}
}

// Cards that are cut are offered under the names of their resources, and what
// the provider's own pods take of them is told in the same units.
func TestCutCardsAreResourcesOfTheirOwn(t *testing.T) {
	f := newFleet(t, func(f *fleet) {
		for _, n := range []env.GPUNode{
			{Name: "mig", Labels: cards("NVIDIA-H100-80GB-HBM3", "none", "1"), Extended: map[corev1.ResourceName]int64{"nvidia.com/mig-1g.10gb": 14}},
			{Name: "shared", Labels: cards("NVIDIA-H100-80GB-HBM3-SHARED", "time-slicing", "4"), Extended: map[corev1.ResourceName]int64{"nvidia.com/gpu.shared": 32}},
		} {
			n.Labels["fleetbroker.io/pool"] = n.Name
			if _, err := env.CreateGPUNode(t.Context(), f.cluster.Config, n); err != nil {
				t.Fatal(err)
			}
		}
	})
	is := func(gpu v1alpha1.FlavorGPU, capacity, used int64) func(*v1alpha1.Flavor) bool {
		return func(o *v1alpha1.Flavor) bool {
			g := o.Spec.GPU
			return g != nil && g.ResourceName == gpu.ResourceName && g.Sharing == gpu.Sharing && g.Profile == gpu.Profile && g.UnitsPerGPU == gpu.UnitsPerGPU &&
				g.Model == "nvidia-h100" && g.Memory == gpu.Memory && o.Spec.Capacity[v1alpha1.GPU].Int64() == capacity && o.Spec.Used[v1alpha1.GPU].Int64() == used
		}
	}
	gi := func(n int64) v1alpha1.MemorySize { return v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(n << 30)} }
	mig := v1alpha1.FlavorGPU{ResourceName: "nvidia.com/mig-1g.10gb", Sharing: "mig", Profile: "1g.10gb", UnitsPerGPU: 7, Memory: gi(10)}
	shared := v1alpha1.FlavorGPU{ResourceName: "nvidia.com/gpu.shared", Sharing: "time-slicing", UnitsPerGPU: 4, Memory: gi(20)}
	f.offers("mig", "as instances", is(mig, 14, 0))
	f.offers("shared", "as shares", is(shared, 32, 0))
	for node, requests := range map[string]corev1.ResourceList{"mig": quantities("nvidia.com/mig-1g.10gb", "3"), "shared": quantities("nvidia.com/gpu.shared", "5")} {
		if _, err := env.RunPod(t.Context(), f.cluster.Config, "default", node, node, requests); err != nil {
			t.Fatal(err)
		}
	}
	f.offers("mig", "with what is used", is(mig, 14, 3))
	f.offers("shared", "with what is used", is(shared, 32, 5))
}

// Nodes that are not ready, or on their way out, offer nothing new and keep what
// runs there; a slice of Liqo's own class, which nobody's contract stands for, is
// told as taken; and where a flavor is sold within a risk, so is what it uses.
func TestNodesOutOfServiceAndSlicesOnTheSide(t *testing.T) {
	f := newFleet(t, func(f *fleet) {
		for _, name := range []string{"n1", "n2", "n3"} {
			f.node(name, "h100-pool")
		}
	})
	gpus := func(capacity, used int64) func(*v1alpha1.Flavor) bool {
		return func(o *v1alpha1.Flavor) bool {
			return o.Spec.Capacity[v1alpha1.GPU].Int64() == capacity && o.Spec.Used[v1alpha1.GPU].Int64() == used && !o.Spec.Cordon
		}
	}
	f.offers("h100-pool", "whole", gpus(24, 0))
	for _, node := range []string{"n1", "n2"} {
		if _, err := env.RunPod(t.Context(), f.cluster.Config, "default", "own-"+node, node, quantities("cpu", "2", "nvidia.com/gpu", "3")); err != nil {
			t.Fatal(err)
		}
	}
	f.offers("h100-pool", "with what is used", gpus(24, 6))

	n := &corev1.Node{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	if err := f.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	f.offers("h100-pool", "without the node that is not ready", gpus(19, 6))
	n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	if err := f.client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.org/drain"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	f.offers("h100-pool", "without the node that is being deleted", gpus(14, 6))

	f.bypass("by-the-side", "2")
	f.offers("h100-pool", "less what Liqo granted by itself", func(o *v1alpha1.Flavor) bool {
		return gpus(14, 6)(o) && o.Spec.Held["by-the-side"][v1alpha1.GPU].Int64() == 2 && o.Spec.Usage == nil
	})
	note := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"fleetbroker.io/overcommit":"cpu=2 maxRisk=0.05"}}}`))
	if err := f.client.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}, note); err != nil {
		t.Fatal(err)
	}
	f.offers("h100-pool", "within a risk", func(o *v1alpha1.Flavor) bool {
		ratio, bounded := o.Spec.Overcommit["cpu"], o.Spec.Overcommit["maxRisk"]
		use := o.Spec.Usage["by-the-side"]
		return ratio.String() == "2" && bounded.String() == "0.05" && len(use) == 1 && use[v1alpha1.CPU].Int64() == 4000
	})
}

// bypass is a slice that Liqo granted by itself, as its class default.
func (f *fleet) bypass(name, gpus string) {
	f.t.Helper()
	consumer := liqov1beta1.ClusterID("rome")
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"liqo.io/replicated": "true"}},
		Spec:       authv1beta1.ResourceSliceSpec{Class: authv1beta1.ResourceSliceClassDefault, ConsumerClusterID: &consumer},
	}
	if err := f.client.Create(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
	s.Status.Resources = quantities("cpu", "4", "nvidia.com/gpu", gpus)
	s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{
		Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted, LastTransitionTime: metav1.Now(),
	}}
	if err := f.client.Status().Update(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
}

// Liqo's kinds and the agents' own may come after the agent: what needs them
// starts by itself.
func TestKindsMayBeInstalledLater(t *testing.T) {
	f := newFleetWithoutLiqo(t)
	f.node("n1", "h100-pool")
	f.runAgent()
	f.offers("h100-pool", "in Liqo's class", func(o *v1alpha1.Flavor) bool { return o.Spec.Class == "default" })
	if err := env.InstallLiqoCRDs(t.Context(), f.cluster.Config); err != nil {
		t.Fatal(err)
	}
	if err := env.InstallAgentCRDs(t.Context(), f.cluster.Config); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Create(t.Context(), &offloadingv1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Name: "s-ca3704aa0b06", Namespace: "default"},
		Spec:       offloadingv1beta1.QuotaSpec{User: "s-ca3704aa0b06", Resources: quantities("nvidia.com/gpu", "2")},
	}); err != nil {
		t.Fatal(err)
	}
	ask := &crd.ResourceRequest{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "default"}}
	ask.Spec.Resources.CPU = new(intstr.FromString("1"))
	if err := f.client.Create(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	f.offers("h100-pool", "in the class that the agent answers, with what Liqo grants", func(o *v1alpha1.Flavor) bool {
		return o.Spec.Class == "fleetbroker" && o.Spec.Held["s"][v1alpha1.GPU].Int64() == 2
	})
	envtest.Eventually(t, "the Advertisement", func(ctx context.Context) bool {
		a := &crd.Advertisement{}
		return f.client.Get(ctx, client.ObjectKey{Name: "h100-pool"}, a) == nil && a.Status.Capacity[v1alpha1.GPU] == "8"
	})
	envtest.Eventually(t, "why the request is not served", func(ctx context.Context) bool { // these brokers give no instructions
		return f.client.Get(ctx, client.ObjectKeyFromObject(ask), ask) == nil && ask.Status.Phase == crd.RequestPending && ask.Status.Reason == "NoAnswer"
	})
}
