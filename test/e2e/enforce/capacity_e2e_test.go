//go:build e2e && full

package enforce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

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
	watch := bounded.StartStopwatch()
	f.Eventually("the contract is known to be Degraded", func() error { return f.shownAs(name, "Degraded", "NodeShrunk") })
	if err := watch.Late(time.Second, 30*time.Second); err != nil {
		t.Error(err)
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
