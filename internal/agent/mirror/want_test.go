package mirror

import (
	"fmt"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

func res(gpu int64, cpu int64) v1alpha1.Resources {
	return v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpu), v1alpha1.CPU: v1alpha1.AmountOf(cpu * 1000)}
}

func TestAdvertisementsShowWhatIsLeft(t *testing.T) {
	flavor := func(name, pool string) v1alpha1.Flavor {
		f := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: name, Namespace: "paris"}}
		f.Spec.Capacity, f.Spec.Used, f.Spec.Pool = res(8, 64), res(1, 4), pool
		f.Spec.Held = map[string]v1alpha1.Resources{name + "-c": res(2, 10)}
		return f
	}
	over := flavor("c", "")
	over.Spec.Held["more"] = res(9, 0)
	got := Want(State{Flavors: []v1alpha1.Flavor{flavor("a", "p"), flavor("b", "p"), over}})
	text := ""
	for _, a := range got.Advertisements {
		text += fmt.Sprintln(a.Name, a.Status.Held, a.Status.Available, a.Status.Contracts)
	}
	const want = `a map[cpu:10 gpu:2] map[cpu:40 gpu:5] 1
b map[cpu:10 gpu:2] map[cpu:40 gpu:5] 1
c map[cpu:10 gpu:11] map[cpu:50 gpu:0] 2
`
	if text != want {
		t.Errorf("shows\n%swant\n%s", text, want)
	}
	if got.Providers != nil || got.Reservations != nil {
		t.Error("without instructions nothing is known of contracts")
	}
}

func slice(name, consumer string, status authv1beta1.ResourceSliceConditionStatus, gpus string) authv1beta1.ResourceSlice {
	s := authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if consumer != "" {
		id := liqov1beta1.ClusterID(consumer)
		s.Spec.ConsumerClusterID, s.Labels = &id, map[string]string{labelReplicated: "true"}
	}
	if status != "" {
		s.Status.Resources = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus), "rdma/hca": resource.MustParse("0")}
		s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{Type: authv1beta1.ResourceSliceConditionTypeResources, Status: status, Message: "words"}}
	}
	return s
}

func TestInstructionsShowWhatIsKept(t *testing.T) {
	contract := func(name string, phase v1alpha1.Phase) wire.Instruction {
		return wire.Instruction{
			Contract: name, Slice: name, Consumer: "rome", ConsumerLiqoID: "cl-rome", Provider: "paris", Phase: phase,
			Resources: v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(4), "cpu": {}},
		}
	}
	in := &wire.Instructions{
		Provide: []wire.Instruction{
			contract("kept", v1alpha1.PhaseActive), contract("less", v1alpha1.PhaseActive), contract("denied", v1alpha1.PhaseDegraded),
			contract("absent", v1alpha1.PhaseReserved), contract("waits", v1alpha1.PhaseReserved), contract("ends", v1alpha1.PhaseReleasing),
		},
		Consume: []wire.Instruction{contract("here", v1alpha1.PhaseActive), contract("underway", v1alpha1.PhaseReserved)},
	}
	got := Want(State{Instructions: in, Refused: map[string]string{"denied": "own workloads"}, Slices: []authv1beta1.ResourceSlice{
		slice("kept", "cl-rome", "Accepted", "4"), slice("less", "cl-rome", "Accepted", "2"), slice("denied", "cl-rome", "Denied", "0"),
		slice("waits", "cl-rome", "", ""), slice("ends", "cl-rome", "Accepted", "4"), slice("absent", "cl-milan", "Accepted", "4"), slice("here", "", "Accepted", "4"),
	}})
	text := ""
	for _, p := range got.Providers {
		text += fmt.Sprintln(p.Name, p.Status.Phase, p.Status.Slice, p.Status.Enforced, p.Status.Message)
	}
	for _, r := range got.Reservations {
		text += fmt.Sprintln(r.Name, r.Spec.TargetClusterID, r.Status.Phase, r.Status.Delivered)
	}
	const want = `kept Active Accepted true 
less Active Accepted false 
denied Degraded Denied false refused: own workloads
absent Reserved Absent false 
waits Reserved Pending false 
ends Releasing Accepted false 
here paris Active true
underway paris Reserved false
`
	if text != want {
		t.Errorf("shows\n%swant\n%s", text, want)
	}
}

// The picture says that a term runs out from when notifications do.
func TestPicturesSayWhatEndsSoon(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	term := v1alpha1.Term{Start: v1alpha1.TimeOf(start), End: v1alpha1.TimeOf(start.Add(100 * time.Hour))}
	for name, c := range map[string]struct {
		phase v1alpha1.Phase
		after time.Duration
		want  bool
	}{
		"not yet":     {v1alpha1.PhaseActive, 89 * time.Hour, false},
		"a tenth":     {v1alpha1.PhaseActive, 90 * time.Hour, true},
		"ends anyway": {v1alpha1.PhaseReleasing, 95 * time.Hour, false},
	} {
		in := &wire.Instructions{Consume: []wire.Instruction{{Contract: "a", Phase: c.phase, Term: term}}}
		got := Want(State{Now: start.Add(c.after), Instructions: in})
		if got.Reservations[0].Status.Expiring != c.want {
			t.Errorf("%s: expiring is %t", name, got.Reservations[0].Status.Expiring)
		}
	}
}
