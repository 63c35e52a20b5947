//go:build e2e

package enforce

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
