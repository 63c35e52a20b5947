package inmem

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Workload is a Deployment of a consumer: pods that ask for GPUs.
type Workload struct {
	Namespace, Name string
	// Replicas is how many pods, each with so many GPUs.
	Replicas int
	GPUs     int64
}

// workload is a Workload with its pods.
type workload struct {
	Workload
	pods []*pod
}

// pod of a workload; node is the virtual node ("" while it waits), remote and there the
// provider and its node behind it.
type pod struct {
	name, node, remote, there string
}

// Pod as it is shown.
type Pod struct{ Name, Phase, Node string }

// VirtualNode as it is shown: a Node of the consumer.
type VirtualNode struct {
	Name  string
	GPUs  string
	Model string
	Ready bool
}

// Object of Liqo, as it is shown. GPUs is "" where the object asks for none.
type Object struct{ Kind, Namespace, Name, GPUs string }

// Deploy makes a workload on a consumer.
func (c *Clusters) Deploy(consumer string, w Workload) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	on := c.consumers[consumer]
	if on == nil {
		return fmt.Errorf("deploy %s/%s: there is no consumer %s", w.Namespace, w.Name, consumer)
	}
	set := &workload{Workload: w}
	for i := range w.Replicas {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", w.Namespace, w.Name, i))
		set.pods = append(set.pods, &pod{name: fmt.Sprintf("%s-%.10s-%.5s", w.Name, fmt.Sprintf("%x", sha256.Sum256([]byte(w.Name))), fmt.Sprintf("%x", sum))})
	}
	on.workloads = append(on.workloads, set)
	return nil
}

// schedule binds pods that wait to virtual nodes with free GPUs, and them to the nodes
// behind.
func (c *Clusters) schedule() {
	for _, on := range c.consumers {
		for _, w := range on.workloads {
			if _, offloaded := on.offloaded[w.Namespace]; !offloaded {
				continue
			}
			for _, p := range w.pods {
				if p.node == "" {
					c.bind(on, p, w.GPUs)
				}
			}
		}
	}
}

func (c *Clusters) bind(on *consumer, p *pod, gpus int64) {
	for _, name := range slices.Sorted(maps.Keys(on.nodes)) {
		node, sl := on.nodes[name], on.slices[name]
		if !node.up || node.deleting || sl == nil || sl.granted[gpuResource].Int64()-on.taken(sliceName(name)) < gpus {
			continue
		}
		from := c.providers[sl.provider]
		best, most := "", gpus-1
		for _, n := range from.nodes { // the emptiest
			if free := n.GPUs - c.takenAt(sl.provider, n.Name); n.Pool == sl.flavor && free > most {
				best, most = n.Name, free
			}
		}
		if best != "" {
			p.node, p.remote, p.there = sliceName(name), sl.provider, best
			return
		}
	}
}

// taken is how many GPUs pods use of a virtual node.
func (on *consumer) taken(node string) (n int64) {
	for _, w := range on.workloads {
		for _, p := range w.pods {
			if p.node == node {
				n += w.GPUs
			}
		}
	}
	return n
}

// takenAt is how many GPUs pods use of a provider's node.
func (c *Clusters) takenAt(provider, node string) (n int64) {
	for _, on := range c.consumers {
		for _, w := range on.workloads {
			for _, p := range w.pods {
				if p.remote == provider && p.there == node {
					n += w.GPUs
				}
			}
		}
	}
	return n
}

// evict takes the pods off a virtual node, and reports whether none was left to take.
func (on *consumer) evict(name string) bool {
	gone := true
	for _, w := range on.workloads {
		for _, p := range w.pods {
			if p.node == sliceName(name) {
				p.node, p.remote, p.there, gone = "", "", "", false
			}
		}
	}
	return gone
}

// Pods of a namespace of a cluster; on a provider that is "<namespace>-<consumer>".
func (c *Clusters) Pods(cluster, namespace string) (out []Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, on := range c.consumers {
		for _, w := range on.workloads {
			for _, p := range w.pods {
				switch {
				case on.name == cluster && w.Namespace == namespace && p.node == "":
					out = append(out, Pod{p.name, "Pending", "<none>"})
				case on.name == cluster && w.Namespace == namespace:
					out = append(out, Pod{p.name, "Running", p.node})
				case p.remote == cluster && w.Namespace+"-"+on.name == namespace:
					out = append(out, Pod{p.name, "Running", p.there})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Nodes are a consumer's virtual nodes that have joined.
func (c *Clusters) Nodes(consumer string) (out []VirtualNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	on := c.consumers[consumer]
	if on == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(on.nodes)) {
		sl := on.slices[name]
		if !on.nodes[name].up || sl == nil {
			continue
		}
		n := VirtualNode{Name: sliceName(name), GPUs: sl.granted[gpuResource].Canonical(v1alpha1.GPU), Ready: true}
		for _, there := range c.providers[sl.provider].nodes {
			if there.Pool == sl.flavor {
				n.Model = there.GPU.Model
			}
		}
		out = append(out, n)
	}
	return out
}

// Objects are Liqo's of a consumer: virtual nodes, slices, offloadings.
func (c *Clusters) Objects(consumer string) (out []Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	on := c.consumers[consumer]
	if on == nil {
		return nil
	}
	split := func(name string) (string, string) {
		namespace, name, _ := strings.Cut(name, "/")
		return namespace, name
	}
	for _, name := range slices.Sorted(maps.Keys(on.nodes)) {
		namespace, name := split(name)
		out = append(out, Object{"VirtualNode", namespace, name, ""})
	}
	for _, name := range slices.Sorted(maps.Keys(on.slices)) {
		gpus := on.slices[name].resources[gpuResource].Canonical(v1alpha1.GPU)
		namespace, name := split(name)
		out = append(out, Object{"ResourceSlice", namespace, name, gpus})
	}
	for _, namespace := range slices.Sorted(maps.Keys(on.offloaded)) {
		out = append(out, Object{"NamespaceOffloading", namespace, "offloading", ""})
	}
	return out
}
