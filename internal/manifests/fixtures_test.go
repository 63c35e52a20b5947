package manifests

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// noon is when the first contract of a test starts.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func res(cpuMilli, memoryGi, gpus int64) v1alpha1.Resources {
	return v1alpha1.Resources{
		v1alpha1.CPU:              v1alpha1.AmountOf(cpuMilli),
		v1alpha1.Memory:           v1alpha1.AmountOf(memoryGi << 30),
		v1alpha1.Pods:             v1alpha1.AmountOf(50),
		v1alpha1.EphemeralStorage: v1alpha1.AmountOf(200 << 30),
		"nvidia.com/gpu":          v1alpha1.AmountOf(gpus),
	}
}

// contract is an active contract of intent <tenant>/<intent> that gives 4 GPUs
// of paris to rome, changed by edits.
func contract(tenant, intent, suffix string, edits ...func(*v1alpha1.Contract)) *v1alpha1.Contract {
	c := &v1alpha1.Contract{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindContract},
		Metadata: v1alpha1.Metadata{Name: tenant + "-" + intent + "-0-" + suffix, Namespace: tenant},
		Spec: v1alpha1.ContractSpec{
			Intent:    v1alpha1.ContractIntent{Name: intent},
			Consumer:  "rome",
			Provider:  "paris",
			Flavor:    "h100-pool",
			Slice:     tenant + "-" + intent + "-0-" + suffix,
			Resources: res(16000, 128, 4),
			Term:      v1alpha1.Term{Start: v1alpha1.TimeOf(noon)},
			Stage:     v1alpha1.StagePeer,
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// warm is a slice of pool h100-warm.
func warm(suffix string, edits ...func(*v1alpha1.Contract)) *v1alpha1.Contract {
	return contract(v1alpha1.FleetTenant, "h100-warm", suffix, edits...)
}

func offload(namespaces ...v1alpha1.OffloadNamespace) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) { c.Spec.Offload = &v1alpha1.Offload{Namespaces: namespaces} }
}

func provider(name string) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) { c.Spec.Provider = name }
}

func later(d time.Duration) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) { c.Spec.Term.Start = v1alpha1.TimeOf(noon.Add(d)) }
}

func inPhase(p v1alpha1.Phase) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) { c.Status.Phase = p }
}

// onNodes lays a contract of so many GPUs on nodes, with so many on each.
func onNodes(of int64, gpus ...int64) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) {
		c.Spec.Resources["nvidia.com/gpu"] = v1alpha1.AmountOf(of)
		for i, n := range gpus {
			part := v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(n)}
			for name, all := range c.Spec.Resources {
				if name != "nvidia.com/gpu" {
					part[name] = v1alpha1.AmountOf(all.Int64() / int64(len(gpus)))
				}
			}
			c.Spec.Nodes = append(c.Spec.Nodes, v1alpha1.ContractNode{Node: fmt.Sprintf("n%013d", i), Resources: part})
		}
	}
}

func drained(c *v1alpha1.Contract) {
	c.Status.Phase = v1alpha1.PhaseReleasing
	c.Status.Drained = v1alpha1.TimeOf(noon.Add(time.Hour))
}

// fleet is rome, a consumer, and two providers, one of which Liqo knows by
// another name.
func fleet() map[string]*v1alpha1.Cluster {
	out := map[string]*v1alpha1.Cluster{}
	for _, name := range []string{"rome", "paris", "milan"} {
		out[name] = &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}}
	}
	out["milan"].Spec.Liqo.ClusterID = "cl-milan"
	return out
}
