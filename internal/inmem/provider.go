package inmem

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Node of a provider, with 96 CPUs, 1Ti of memory, 1Ti of ephemeral storage and 110 pods.
type Node struct {
	// Name of the node, and Pool: the flavor that its pool is offered as.
	Name, Pool string
	// GPUs is how many cards it has, of GPU.
	GPUs int64
	GPU  v1alpha1.FlavorGPU
}

// gpuResource is the extended resource of NVIDIA's device plugin.
const gpuResource = "nvidia.com/gpu"

// provider is a cluster that gives.
type provider struct {
	name  string
	nodes []Node
	// grants by slice, in the flavor's names.
	grants map[string]grant
	// leaving are grants that end with the next step: the slice is gone.
	leaving map[string]bool
	// owed are the slices that the ledger lists; nil: nobody said.
	owed map[string]bool
	seq  uint64
	// epoch of the agent's life, n of its lists, and the last one's text.
	epoch, n uint64
	listed   string
}

type grant struct {
	flavor    string
	resources v1alpha1.Resources
}

func newProvider(name string, nodes []Node, epoch uint64) *provider {
	return &provider{name: name, nodes: nodes, grants: map[string]grant{}, leaving: map[string]bool{}, epoch: epoch}
}

// hear takes what the ledger says now; nothing is older than the last.
func (p *provider) hear(in wire.Instructions) {
	if in.Version == "" || in.Seq < p.seq {
		return
	}
	p.seq, p.owed = in.Seq, map[string]bool{}
	for _, i := range in.Provide {
		p.owed[i.Slice] = i.Phase.Charged()
	}
}

// grant gives a slice what it asks for while the ledger lists it.
func (p *provider) grant(name string, sl *slice) bool {
	if !p.owed[name] {
		return false
	}
	in := v1alpha1.Resources{}
	for resource, amount := range sl.resources {
		if resource == gpuResource {
			resource = v1alpha1.GPU
		}
		in[resource] = amount
	}
	p.grants[name] = grant{sl.flavor, in}
	return true
}

// leave ends a grant with the next report but one: Liqo takes its quota away after the
// slice.
func (p *provider) leave(name string) {
	if _, granted := p.grants[name]; granted {
		p.leaving[name] = true
	}
}

// report is a provider's list, ready to send.
type report struct {
	provider   string
	generation wire.Generation
	flavors    []v1alpha1.Flavor
	honoured   uint64
}

func (p *provider) report() report {
	flavors := p.flavors()
	if text := fmt.Sprint(flavors); text != p.listed {
		p.n++
		p.listed = text
	}
	honoured := p.seq
	for name := range p.grants {
		if !p.owed[name] {
			honoured = 0 // something is still held that the ledger ends
		}
	}
	for name := range p.leaving {
		delete(p.grants, name)
		delete(p.leaving, name)
	}
	return report{p.name, wire.Generation{Epoch: p.epoch, N: p.n}, flavors, honoured}
}

// flavors is one for each pool, in order.
func (p *provider) flavors() []v1alpha1.Flavor {
	pools := map[string][]Node{}
	for _, n := range p.nodes {
		pools[n.Pool] = append(pools[n.Pool], n)
	}
	var out []v1alpha1.Flavor
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		f := v1alpha1.Flavor{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
			Metadata: v1alpha1.Metadata{Name: pool, Namespace: p.name},
			Spec:     v1alpha1.FlavorSpec{Type: "K8Slice", Architecture: "amd64", Capacity: v1alpha1.Resources{}, Class: v1alpha1.ClassFleetbroker},
		}
		for _, n := range pools[pool] {
			gpu := n.GPU
			gpu.ResourceName = gpuResource
			f.Spec.GPU = &gpu
			f.Spec.Capacity = f.Spec.Capacity.Add(v1alpha1.Resources{
				v1alpha1.CPU: v1alpha1.AmountOf(96_000), v1alpha1.Memory: v1alpha1.AmountOf(1 << 40), v1alpha1.EphemeralStorage: v1alpha1.AmountOf(1 << 40),
				v1alpha1.Pods: v1alpha1.AmountOf(110), v1alpha1.GPU: v1alpha1.AmountOf(n.GPUs),
			})
		}
		for name, g := range p.grants {
			if g.flavor != pool {
				continue
			}
			if f.Spec.Held == nil {
				f.Spec.Held = map[string]v1alpha1.Resources{}
			}
			f.Spec.Held[name] = g.resources.Clone()
		}
		out = append(out, f)
	}
	return out
}
