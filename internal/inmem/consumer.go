package inmem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// consumer is a cluster in which capacity appears. Slices and virtual nodes are keyed
// "<namespace>/<name>"; a virtual node has its slice's name.
type consumer struct {
	name      string
	slices    map[string]*slice
	nodes     map[string]*virtualNode
	offloaded map[string]bool // namespaces with a NamespaceOffloading; true once it is ready
	passed    tree.Hash       // the tree in force when a pass had nothing left to do
	workloads []*workload
}

type slice struct {
	contract, provider, flavor string
	resources                  v1alpha1.Resources
	create                     bool
	granted                    v1alpha1.Resources // in the slice's names; nil: not granted
	deleting                   bool
}

type virtualNode struct {
	contract string
	up       bool
	deleting bool
}

func newConsumer(name string) *consumer {
	return &consumer{name: name, slices: map[string]*slice{}, nodes: map[string]*virtualNode{}, offloaded: map[string]bool{}}
}

// wants is what a tree of manifests asks for.
type wants struct {
	slices    map[string]*slice
	nodes     map[string]string // to the contract
	offloaded map[string]bool
}

// object is the part of a Kubernetes object that matters here.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec struct {
		ProviderClusterID string
		Resources         v1alpha1.Resources
	}
}

// read is what manifests ask for.
func read(t tree.Tree) (*wants, error) {
	w := &wants{slices: map[string]*slice{}, nodes: map[string]string{}, offloaded: map[string]bool{}}
	err := t.Walk(func(path string, e tree.Entry) error {
		if strings.HasSuffix(path, "kustomization.yaml") || strings.Contains(path, "policies/") {
			return nil
		}
		content, err := t.Store.File(e.Hash, 0)
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(content, []byte("\n---\n")) {
			var o object
			if err := yaml.Unmarshal(doc, &o); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			w.add(o)
		}
		return nil
	})
	return w, err
}

func (w *wants) add(o object) {
	name := o.Metadata.Namespace + "/" + o.Metadata.Name
	contract := o.Metadata.Labels[v1alpha1.LabelContract]
	switch o.Kind {
	case "ResourceSlice":
		w.slices[name] = &slice{
			contract: contract, provider: o.Spec.ProviderClusterID, resources: o.Spec.Resources,
			flavor: o.Metadata.Annotations[v1alpha1.AnnotationFlavor],
			create: o.Metadata.Annotations[manifests.AnnotationCreateVirtualNode] == "true",
		}
	case "VirtualNode":
		w.nodes[name] = contract
	case "NamespaceOffloading":
		w.offloaded[o.Metadata.Namespace] = true
	}
}

// pass brings a consumer in line with what was delivered.
func (c *Clusters) pass(ctx context.Context, d Daemon, on *consumer) error {
	c.mu.Lock()
	want, there := c.desired[on.name]
	c.mu.Unlock()
	if !there {
		return nil
	}
	w, err := read(want.Tree)
	if err != nil {
		return fmt.Errorf("read the manifests of %s at %s: %w", on.name, want.Commit.Short(), err)
	}
	c.mu.Lock()
	steps := on.steps(w)
	c.mu.Unlock()
	if len(steps) > 0 {
		if now, err := d.Confirm(ctx, on.name); err != nil || now != want.Tree.Root {
			return nil //nolint:nilerr // the remote has other manifests, or did not answer: the next turn asks again
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, step := range steps {
		step()
	}
	on.passed = want.Tree.Root
	return nil
}

// steps is what is to be done now, in Liqo's order.
func (on *consumer) steps(w *wants) []func() {
	var out []func()
	do := func(f func()) { out = append(out, f) }
	for ns := range w.offloaded {
		if _, there := on.offloaded[ns]; !there {
			do(func() { on.offloaded[ns] = false })
		}
	}
	names := map[string]bool{}
	for name := range w.slices {
		names[name] = true
	}
	for name := range on.slices {
		names[name] = true
	}
	for name := range on.nodes {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		on.unit(name, w, do)
	}
	for ns := range on.offloaded {
		if !w.offloaded[ns] {
			do(func() { delete(on.offloaded, ns) })
		}
	}
	return out
}

// unit is the steps of one slice and its virtual node.
func (on *consumer) unit(name string, w *wants, do func(func())) {
	ws, wn := w.slices[name], w.nodes[name]
	sl, node := on.slices[name], on.nodes[name]
	if (sl != nil && sl.deleting && ws != nil) || (node != nil && node.deleting && wn != "") {
		return // what is applied to an object on its way out is lost with it
	}
	if wn != "" && node == nil {
		do(func() { on.nodes[name] = &virtualNode{contract: wn} })
	}
	switch {
	case ws == nil && sl != nil && node == nil && !sl.deleting:
		do(func() { sl.deleting = true })
	case ws != nil && sl == nil:
		do(func() { on.slices[name] = ws })
	case ws != nil && (!sl.resources.Equal(ws.resources) || sl.create != ws.create):
		do(func() { sl.resources, sl.create = ws.resources, ws.create })
	}
	if wn == "" && node != nil && !node.deleting {
		do(func() { node.deleting = true })
	}
}

// observe is what is seen of a contract.
func (on *consumer) observe(want delivery.Desired, k *v1alpha1.Contract) v1alpha1.ConsumerObservation {
	o := v1alpha1.ConsumerObservation{Reachable: true, Offloading: true}
	presence := func(there bool) v1alpha1.Presence {
		switch {
		case there:
			return v1alpha1.Present
		case on.passed == want.Tree.Root:
			return v1alpha1.Absent
		}
		return v1alpha1.Unknown
	}
	var sl *slice
	var node *virtualNode
	for _, name := range slices.Sorted(maps.Keys(on.slices)) {
		if s := on.slices[name]; s.contract == k.Metadata.Name {
			sl = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(on.nodes)) {
		if n := on.nodes[name]; n.contract == k.Metadata.Name {
			node = n
		}
	}
	o.Slice, o.VirtualNode, o.Node = presence(sl != nil), presence(node != nil), presence(node != nil && node.up)
	if sl != nil {
		o.Granted = sl.granted
	}
	if sl != nil && node != nil && node.up {
		o.NodeReady, o.Allocatable = true, sl.granted
	}
	if k.Spec.Offload != nil {
		for _, ns := range k.Spec.Offload.Namespaces {
			if !on.offloaded[ns.Name] {
				o.Offloading, o.OffloadingMessage = false, "namespace "+ns.Name+" is not ready"
			}
		}
	}
	return o
}

// liqo takes one step of Liqo's controllers for each slice and offloading.
func (c *Clusters) liqo(on *consumer) {
	for ns := range on.offloaded {
		on.offloaded[ns] = true
	}
	for _, name := range slices.Sorted(maps.Keys(on.nodes)) {
		sl, node := on.slices[name], on.nodes[name]
		switch {
		case node.deleting && on.evict(name):
			delete(on.nodes, name)
		case node.deleting:
		case sl != nil && sl.granted != nil:
			node.up = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(on.slices)) {
		sl := on.slices[name]
		p := c.providers[sl.provider]
		switch {
		case p == nil:
		case sl.deleting && on.nodes[name] == nil:
			delete(on.slices, name)
			p.leave(sliceName(name))
		case !sl.deleting && !sl.resources.Equal(sl.granted) && p.grant(sliceName(name), sl):
			sl.granted = sl.resources.Clone()
		}
	}
}

// sliceName is a slice's name without Liqo's namespace: what agents report by.
func sliceName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
