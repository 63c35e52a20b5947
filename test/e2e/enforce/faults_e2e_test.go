//go:build e2e

package enforce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// second adds milan, dearer than paris, with an agent of its own.
func second(o *rig.Options) {
	o.Providers["milan"] = []env.GPUNode{{Name: "milan-1", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}
	o.Inputs["clusters/milan.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: milan}\nspec:\n  roles: [provider]\n" +
		"  defaultPrice: {currency: EUR, perHour: {gpu: \"9.00\"}}\n"
}

const cheapest = "  weights: {cost: 1}\n"

// ownPod makes a pod of paris's own that takes GPUs of one of its nodes.
func (f *fleet) ownPod(name, node, gpus string) {
	f.t.Helper()
	requests := corev1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse(gpus)}
	if _, err := env.RunPod(f.ctx, f.Clusters["paris"].Config, "default", name, node, requests); err != nil {
		f.t.Fatal(err)
	}
}

// unanswered fails the test when a slice is answered within a while.
func (f *fleet) unanswered(name string, during time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		if s, err := f.copyOf(name); err == nil {
			if _, c := gpus(s); c.Status != "" {
				f.t.Fatalf("slice %s was answered: %s %s: %s", name, c.Status, c.Reason, c.Message)
			}
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatal(f.ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// What the provider's own pods took between decision and slice is refused with
// that reason, and the intent is planned again elsewhere.
func TestOwnWorkloadsCameFirst(t *testing.T) {
	f := start(t, second)
	f.agent("milan", f.daemon)
	f.Eventually("milan sells", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && !strings.Contains(market, "namespace: milan") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	f.twin.hold("*") // slices are under way for a while
	f.Put("vision", "train", intent("train", 8, cheapest))
	name := f.Contract("vision", "train", "Peering")
	f.ownPod("first", "paris-1", "8")
	f.ownPod("and-more", "paris-2", "1")
	f.Eventually("the agent knows of its pods", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && !strings.Contains(market, "gpu: \"9\"") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	f.twin.hold("")
	f.Eventually("the contract fails", func() error {
		if phase := f.Phases("vision", "train")[name]; phase != "Failed" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "grep", "-h", "-C", "2", "ProviderRefused", rig.Ledger, "--", "contracts/vision/")
	if err != nil || !strings.Contains(out, "other workloads came first") {
		t.Errorf("the ledger does not say why: %v\n%s", err, out)
	}
	for other, phase := range f.Phases("vision", "train") {
		if other != name && phase != "Reserved" && phase != "Peering" {
			t.Errorf("the other contract is %s", phase)
		}
	}
	if len(f.Phases("vision", "train")) != 2 {
		t.Errorf("its contracts are %v", f.Phases("vision", "train"))
	}
	f.Sound()
}

// A pod of the provider's own on promised capacity makes the contract Degraded,
// visible within a second, and well again when it goes. A slice of the class
// default that nobody's contract stands for takes capacity like such a pod.
func TestPromisedCapacityIsTaken(t *testing.T) {
	f := start(t, nil)
	f.Put("vision", "train", intent("train", 16))
	name := f.Contract("vision", "train", "Active")
	f.ownPod("own", "paris-1", "2")
	took := time.Now()
	f.Eventually("the contract is known to be Degraded", func() error { return f.shownAs(name, "Degraded", "NodeShrunk") })
	if d := time.Since(took); d > time.Second {
		t.Errorf("that took %s", d)
	}
	f.Contract("vision", "train", "Degraded")
	now := int64(0)
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "own", "default"
	if err := f.paris.Delete(f.ctx, pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	f.Contract("vision", "train", "Active")

	f.Put("vision", "train", intent("train", 14))
	f.answered(name, accepted, "", 14)
	f.bypass("by-the-side", "default", "2")
	f.twin.grantDefault("by-the-side")
	f.Eventually("what it took is not sold", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && !strings.Contains(market, "by-the-side") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	f.Put("vision", "later", intent("later", 1))
	f.Eventually("a contract for it waits", func() error {
		if got := f.Phases("vision", "later"); len(got) != 0 {
			return fmt.Errorf("its contracts are %v", got)
		}
		out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "grep", "-l", "state: Queued", rig.Ledger, "--", "contracts/vision/")
		if err == nil && !strings.Contains(out, "/later/") {
			err = fmt.Errorf("queued are %s", out)
		}
		return err
	})
	f.Sound()
}

// An agent that is killed grants nothing, takes nothing away, and goes on where
// it was.
func TestAgentKilled(t *testing.T) {
	f := start(t, nil)
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Active")
	if err := f.agents["paris"].Kill(); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "more", intent("more", 2))
	more := f.Contract("vision", "more", "Peering")
	f.Remove("vision", "train")
	f.unanswered(more, 3*time.Second)
	if s, err := f.copyOf(name); err == nil {
		if n, c := gpus(s); c.Status != accepted || n != 4 {
			t.Errorf("slice of the dead agent has %d GPUs, %s", n, c.Status)
		}
	}
	f.agent("paris", f.daemon)
	f.answered(more, accepted, "", 2)
	f.Contract("vision", "train", "Released")
	f.Sound()
}

// While the network to the broker is cut nothing new is granted and nothing
// denied, though a slice comes; what stands is kept.
func TestNetworkCut(t *testing.T) {
	f := prepare(t, nil)
	p := startProxy(t, f.daemon.Agents)
	f.agent("paris", &rig.Daemon{Agents: p.address})
	f.agent("rome", f.daemon)
	f.ready()
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Active")

	p.set(true)
	f.Put("vision", "more", intent("more", 2)) // the daemon has not noticed yet
	more := f.Contract("vision", "more", "Peering")
	f.bypass("forged", "fleetbroker", "1")
	f.unanswered(more, 5*time.Second) // more than twice its patience
	f.unanswered("forged", 0)
	if s, err := f.copyOf(name); err != nil {
		t.Error(err)
	} else if n, c := gpus(s); c.Status != accepted || n != 4 {
		t.Errorf("what stood has %d GPUs, %s", n, c.Status)
	}
	p.set(false)
	p.drop()
	f.answered(more, accepted, "", 2)
	f.answered("forged", denied, "NoContract", 0)
	f.Contract("vision", "more", "Active")
	f.Sound()
}

// A Tenant that is Cordoned gets nothing new and keeps what it has; Drained
// takes GPUs and pods away, and leaves CPU and memory.
func TestTenantCordonedAndDrained(t *testing.T) {
	f := start(t, nil)
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Active")
	condition := func(c authv1beta1.TenantCondition) {
		t.Helper()
		o := &authv1beta1.Tenant{}
		o.Name, o.Namespace = "rome", f.twin.providerSpace
		if err := f.paris.Patch(f.ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tenantCondition":"`+string(c)+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	condition(authv1beta1.TenantConditionCordoned)
	f.Put("vision", "more", intent("more", 2))
	// Denied before it was asked for, or after: it depends on who is faster.
	more := f.Contract("vision", "more", "Peering", "Degraded")
	f.answered(more, denied, "TenantCordoned", 0)
	f.answered(name, accepted, "", 4)
	condition(authv1beta1.TenantConditionActive)
	f.answered(more, accepted, "", 2)
	condition(authv1beta1.TenantConditionDrained)
	s := f.answered(name, denied, "TenantDrained", 0)
	if cpu, memory, pods := s.Status.Resources["cpu"], s.Status.Resources["memory"], s.Status.Resources["pods"]; cpu.Value() != 4 || memory.Value() != 16<<30 || pods.Value() != 0 {
		t.Errorf("a withdrawn slice has %v", s.Status.Resources)
	}
}
