//go:build e2e

package enforce

import (
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

const (
	accepted = authv1beta1.ResourceSliceConditionAccepted
	denied   = authv1beta1.ResourceSliceConditionDenied
)

// An intent ends as a commit, a slice granted as the ledger says, and one that
// is released; its growth and shrinking are followed.
func TestGrantedAsTheLedgerSays(t *testing.T) {
	f := start(t, nil)
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Active")
	s := f.answered(name, accepted, "", 4)
	if s.Status.NodeSelector["fleetbroker.io/pool"] != "h100" {
		t.Errorf("pods are pinned to %v", s.Status.NodeSelector)
	}
	if got := s.Status.NodeLabels["granted.fleetbroker.io/contract"]; got != name {
		t.Errorf("it is granted for contract %q, want %q", got, name)
	}
	for key, want := range map[string]string{"gpu.fluidos.eu/model": "nvidia-h100", "gpu.fluidos.eu/memory": "80Gi", "fleetbroker.io/contract": name} {
		if node := f.nodeOf(name); node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q: %v", key, node.Labels[key], want, node.Labels)
		}
	}

	f.Put("vision", "train", intent("train", 6))
	f.answered(name, accepted, "", 6)
	f.Put("vision", "train", intent("train", 2))
	f.answered(name, accepted, "", 2)
	if got := f.Phases("vision", "train"); len(got) != 1 {
		t.Errorf("resizing made other contracts: %v", got)
	}

	f.Remove("vision", "train")
	f.Eventually("it is Released", func() error {
		if phase := f.Phases("vision", "train")[name]; phase != "Released" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	if _, err := f.copyOf(name); !errors.IsNotFound(err) {
		t.Errorf("the slice of a contract that was released is there: %v", err)
	}
	f.Put("vision", "again", intent("again", 16))
	again := f.Contract("vision", "again", "Active")
	if parts := f.written("vision", again).Spec.Nodes; len(parts) != 2 {
		t.Errorf("16 GPUs lie on %d nodes, want 2", len(parts))
	}
	for i := range 2 {
		node := f.nodeOf(fmt.Sprintf("%s.%d", again, i+1))
		if has := node.Status.Allocatable["nvidia.com/gpu"]; has.Value() != 8 {
			t.Errorf("Node %s has %s GPUs, want 8", node.Name, has.String())
		}
	}
	f.keepsToItsLevel(again)
	f.Sound()
}

// keepsToItsLevel: a contract of all of paris is asked to be under Hard limits while they are;
// it is Degraded while they are less, and nothing of it is taken away.
func (f *fleet) keepsToItsLevel(name string) {
	f.t.Helper()
	f.twin.enforces(offloadingv1beta1.HardLimitsEnforcement)
	f.Put("vision", "again", intent("again", 16, "  enforcement: Hard\n"))
	f.Eventually("the contract asks for Hard", func() error {
		if c := f.written("vision", name); c.Spec.Enforcement != v1alpha1.EnforceHard || c.Status.Phase != v1alpha1.PhaseActive {
			return fmt.Errorf("it asks for %q and is %s: %s", c.Spec.Enforcement, c.Status.Phase, c.Status.Why())
		}
		return nil
	})
	for _, step := range []struct {
		level  offloadingv1beta1.LimitsEnforcement
		phase  v1alpha1.Phase
		reason string
	}{
		{offloadingv1beta1.SoftLimitsEnforcement, v1alpha1.PhaseDegraded, ledger.DegradedEnforcement},
		{offloadingv1beta1.HardLimitsEnforcement, v1alpha1.PhaseActive, ""},
	} {
		f.twin.enforces(step.level)
		f.Contract("vision", "again", string(step.phase))
		if c := f.written("vision", name); c.Status.Reason != step.reason {
			f.t.Errorf("under %s limits it is %s: %s", step.level, c.Status.Phase, c.Status.Why())
		}
		f.answered(name, accepted, "", 16)
	}
}

// nodeOf waits for a virtual node's Node.
func (f *fleet) nodeOf(name string) *corev1.Node {
	f.t.Helper()
	node := &corev1.Node{}
	f.Eventually("Node "+name, func() error { return f.rome.Get(f.ctx, client.ObjectKey{Name: name}, node) })
	return node
}

// bypass makes a slice in rome that nobody's contract stands for.
func (f *fleet) bypass(name, class string, gpus string) *authv1beta1.ResourceSlice {
	f.t.Helper()
	provider := liqov1beta1.ClusterID("paris")
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.twin.consumerSpace, Labels: map[string]string{
			"liqo.io/remote-cluster-id": "paris", "liqo.io/remoteID": "paris", "liqo.io/replication": "true",
		}},
		Spec: authv1beta1.ResourceSliceSpec{
			Class: authv1beta1.ResourceSliceClass(class), ProviderClusterID: &provider,
			Resources: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("3"), "nvidia.com/gpu": resource.MustParse(gpus)},
		},
	}
	if err := f.rome.Create(f.ctx, s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// What no contract stands for is denied, and so is what is larger than its
// contract.
func TestDenied(t *testing.T) {
	f := start(t, nil)
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Active")

	f.bypass("forged", "fleetbroker", "1")
	f.answered("forged", denied, "NoContract", 0)

	// crd-replicator is cut off, so that nobody puts the copy right.
	s := f.answered(name, accepted, "", 4)
	f.twin.hold(name)
	s.Spec.Resources["nvidia.com/gpu"] = resource.MustParse("8")
	f.Eventually("the slice asks for more", func() error {
		fresh, err := f.copyOf(name)
		if err != nil {
			return err
		}
		fresh.Spec.Resources["nvidia.com/gpu"] = resource.MustParse("8")
		return f.paris.Update(f.ctx, fresh)
	})
	f.answered(name, denied, "LargerThanContract", 4)
	f.twin.hold("")
	f.answered(name, accepted, "", 4)
	f.Sound()
}
