package sim

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

// twin is delivery as one daemon has it, without API servers: what package
// delivery promises in its invariants (Lease, Confirm before anything is
// written, order up and down, Absent only by who would know), on the simulated
// clusters.
type twin struct {
	d       *daemon
	desired map[string]delivery.Desired
	// passed is the tree that was in force on a cluster when nothing was left
	// to do there.
	passed     map[string]tree.Hash
	seen       v1alpha1.ConsumerObservations
	generation uint64
	noticing   map[string]bool
	passing    map[string]bool
}

var _ reconciler.Delivery = (*twin)(nil)

func newTwin(d *daemon) *twin {
	return &twin{
		d: d, desired: map[string]delivery.Desired{}, passed: map[string]tree.Hash{},
		seen: v1alpha1.ConsumerObservations{}, noticing: map[string]bool{}, passing: map[string]bool{},
	}
}

// Deliver implements reconciler.Delivery.
func (t *twin) Deliver(desired map[string]delivery.Desired) {
	t.desired = desired
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if c := t.d.s.consumerNamed(name); c != nil {
			t.look(c)
			t.passSoon(c, 5*time.Millisecond, 300*time.Millisecond)
		}
	}
}

// Observe implements reconciler.Delivery.
func (t *twin) Observe() (v1alpha1.ConsumerObservations, uint64) {
	return maps.Clone(t.seen), t.generation
}

// notice books a look at a cluster that has changed: watches lag.
func (t *twin) notice(c *consumer) {
	if t.noticing[c.name] {
		return
	}
	t.noticing[c.name] = true
	t.later(span(t.d.s.rng, time.Millisecond, 300*time.Millisecond), func() {
		t.noticing[c.name] = false
		t.look(c)
		t.passSoon(c, time.Millisecond, 100*time.Millisecond)
	})
}

// later books something for this life of the daemon.
func (t *twin) later(d time.Duration, run func()) {
	t.d.s.after(d, t.d.awake(func() {
		if t.d.twin == t && t.d.up {
			run()
		}
	}))
}

func (t *twin) passSoon(c *consumer, lo, hi time.Duration) {
	if t.passing[c.name] {
		return
	}
	t.passing[c.name] = true
	t.later(span(t.d.s.rng, lo, hi), func() {
		t.passing[c.name] = false
		t.pass(c)
	})
}

// look renews what is known of a cluster, and wakes the daemon when that is
// something new.
func (t *twin) look(c *consumer) {
	now := map[string]v1alpha1.ConsumerObservation{}
	want := t.desired[c.name]
	for _, k := range want.Contracts {
		now[k.Metadata.Name] = t.observe(c, want, k)
	}
	if reflect.DeepEqual(now, t.seen[c.name]) {
		return
	}
	t.seen[c.name] = now
	t.generation++
	t.d.wake()
}

// observe is what a cluster says of a contract.
func (t *twin) observe(c *consumer, want delivery.Desired, k *v1alpha1.Contract) v1alpha1.ConsumerObservation {
	if !t.d.reaches(c) {
		return v1alpha1.ConsumerObservation{Message: "the cluster does not answer"}
	}
	o := v1alpha1.ConsumerObservation{Reachable: true, Offloading: true}
	knows := c.holds(t.d) && t.passed[c.name] == want.Tree.Root
	presence := func(there bool) v1alpha1.Presence {
		switch {
		case there:
			return v1alpha1.Present
		case knows:
			return v1alpha1.Absent
		}
		return v1alpha1.Unknown
	}
	name := "liqo-tenant-" + k.Spec.Provider + "/" + manifests.SliceName(k)
	sl, node := c.slices[name], c.nodes[name]
	o.Slice, o.VirtualNode, o.Node = presence(sl != nil), presence(node != nil), presence(node != nil && node.up)
	if sl != nil {
		o.SliceDenied, o.Granted = sl.denied, sl.granted
	}
	if node != nil && node.up {
		o.NodeReady, o.Allocatable = node.ready, node.allocatable
	}
	if k.Spec.Offload != nil {
		for _, ns := range k.Spec.Offload.Namespaces {
			if !c.offloaded[ns.Name] {
				o.Offloading, o.OffloadingMessage = false, "namespace "+ns.Name+" is not ready"
			}
		}
	}
	return o
}

// pass brings a cluster in line with what is desired.
func (t *twin) pass(c *consumer) {
	want, ok := t.desired[c.name]
	if !ok {
		return
	}
	if want.Mode == delivery.None { // it only looks, and lets the Lease go
		if c.holds(t.d) {
			c.holder, c.until = "", 0
		}
		t.look(c)
		return
	}
	if !t.d.reaches(c) {
		t.look(c)
		t.passSoon(c, 5*time.Second, 10*time.Second)
		return
	}
	if !c.lease(t.d) {
		t.look(c)
		t.passSoon(c, leaseTime, leaseTime+time.Second)
		return
	}
	plan, err := t.wanted(want.Tree)
	if err != nil {
		t.d.s.fail("twin", "%s cannot read its manifests of %s at %s: %v", t.d.name, c.name, want.Commit.Short(), err)
		return
	}
	steps := t.steps(c, plan)
	if len(steps) > 0 {
		if !t.confirmed(c, want) {
			t.passSoon(c, time.Second, 4*time.Second)
			return
		}
		for _, step := range steps {
			t.d.maybeCrash("between two steps on " + c.name)
			step()
		}
	}
	t.passed[c.name] = want.Tree.Root
	t.look(c)
}

// confirmed asks the remote whether the manifests are still those.
func (t *twin) confirmed(c *consumer, want delivery.Desired) bool {
	h, err := t.d.loop.Confirm(context.Background(), c.name)
	if err != nil || h != want.Tree.Root {
		t.d.s.log("%s holds back on %s: %s", t.d.name, c.name, because(err))
		t.d.wake()
		return false
	}
	return true
}

func because(err error) string {
	if err != nil {
		return err.Error()
	}
	return "the remote has other manifests"
}

// wants is what a tree of manifests asks for.
type wants struct {
	slices    map[string]*liveSlice
	nodes     map[string]string // to the contract
	offloaded map[string]bool
}

// object is the part of a Kubernetes object that the twin goes by.
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

func (t *twin) wanted(manifest tree.Tree) (*wants, error) {
	out := &wants{slices: map[string]*liveSlice{}, nodes: map[string]string{}, offloaded: map[string]bool{}}
	err := manifest.Walk(func(path string, e tree.Entry) error {
		if strings.HasSuffix(path, "kustomization.yaml") || strings.Contains(path, "policies/") {
			return nil
		}
		objects, err := t.d.s.objectsOf(manifest, e)
		if err != nil {
			return err
		}
		for _, o := range objects {
			name := o.Metadata.Namespace + "/" + o.Metadata.Name
			contract := o.Metadata.Labels[v1alpha1.LabelContract]
			switch o.Kind {
			case "ResourceSlice":
				out.slices[name] = &liveSlice{
					contract: contract, provider: o.Spec.ProviderClusterID, resources: o.Spec.Resources,
					create: o.Metadata.Annotations[manifests.AnnotationCreateVirtualNode] == "true",
				}
			case "VirtualNode": // all that a slice has count as one, <slice>.1 and so on too
				slice, _, _ := strings.Cut(o.Metadata.Name, ".")
				out.nodes[o.Metadata.Namespace+"/"+slice] = contract
			case "NamespaceOffloading":
				out.offloaded[o.Metadata.Namespace] = true
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return out, err
}

// objectsOf reads a file of manifests, once for each content.
func (s *sim) objectsOf(in tree.Tree, e tree.Entry) ([]object, error) {
	if known, ok := s.objects[e.Hash]; ok {
		return known, nil
	}
	b, err := in.Store.File(e.Hash, 0)
	if err != nil {
		return nil, err
	}
	var out []object
	for _, doc := range strings.Split(string(b), "\n---\n") {
		var o object
		if strings.Contains(doc, "kind: VirtualNode") || strings.Contains(doc, "kind: ResourceSlice") || strings.Contains(doc, "kind: NamespaceOffloading") {
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	s.objects[e.Hash] = out
	return out, nil
}

// steps is what is to be done on a cluster now, in the order that Liqo needs:
// up, virtual node before slice; down, slice "false", virtual node, and the
// slice once both nodes are gone.
func (t *twin) steps(c *consumer, want *wants) []func() {
	var out []func()
	do := func(f func()) { out = append(out, f) }
	for _, ns := range slices.Sorted(maps.Keys(want.offloaded)) {
		if _, there := c.offloaded[ns]; !there {
			do(func() { t.offload(c, ns) })
		}
	}
	names := map[string]bool{}
	for name := range want.slices {
		names[name] = true
	}
	for name := range c.slices {
		names[name] = true
	}
	for name := range c.nodes {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.unit(c, name, want, do)
	}
	for _, ns := range slices.Sorted(maps.Keys(c.offloaded)) {
		if !want.offloaded[ns] {
			do(func() { delete(c.offloaded, ns) })
		}
	}
	return out
}

func (t *twin) unit(c *consumer, name string, want *wants, do func(func())) {
	ws, wn := want.slices[name], want.nodes[name]
	sl, node := c.slices[name], c.nodes[name]
	switch {
	case (sl != nil && sl.deleting && ws != nil) || (node != nil && node.deleting && wn != ""):
		return // what is applied to an object on its way out is lost with it
	case ws == nil:
		if sl != nil && sl.create && !sl.deleting {
			do(func() { t.hold(c, name) })
		}
		if node != nil && !node.deleting {
			do(func() { t.deleteNode(c, name) })
		}
		if sl != nil && node == nil && !sl.deleting {
			do(func() { t.deleteSlice(c, name) })
		}
		return
	}
	if wn != "" && (node == nil || node.contract != wn) {
		do(func() { t.applyNode(c, name, wn) })
	}
	if sl == nil || !sl.resources.Equal(ws.resources) || sl.create != ws.create || sl.contract != ws.contract {
		do(func() { t.applySlice(c, name, ws) })
	}
	if wn == "" && node != nil && !node.deleting {
		do(func() { t.deleteNode(c, name) })
	}
}

func (t *twin) offload(c *consumer, ns string) {
	c.offloaded[ns] = false
	t.d.s.after(span(t.d.s.rng, 100*time.Millisecond, 3*time.Second), func() {
		if _, there := c.offloaded[ns]; there {
			c.offloaded[ns] = true
			c.changed("")
		}
	})
}

func (t *twin) applySlice(c *consumer, name string, ws *liveSlice) {
	t.d.s.applied(t.d, c, ws.contract)
	sl := c.slices[name]
	if sl == nil {
		sl = &liveSlice{}
		c.slices[name] = sl
	}
	sl.contract, sl.provider, sl.resources, sl.create = ws.contract, ws.provider, ws.resources.Clone(), ws.create
	t.d.s.log("%s applies slice %s on %s, create %v", t.d.name, name, c.name, ws.create)
	c.changed(name)
}

func (t *twin) applyNode(c *consumer, name, contract string) {
	t.d.s.applied(t.d, c, contract)
	if n := c.nodes[name]; n != nil {
		n.contract = contract // claimed: the Node stays
	} else {
		c.nodes[name] = &liveNode{contract: contract}
	}
	t.d.s.log("%s applies virtual node %s on %s", t.d.name, name, c.name)
	c.changed(name)
}

func (t *twin) hold(c *consumer, name string) {
	c.slices[name].create = false
	t.d.s.log("%s holds slice %s on %s", t.d.name, name, c.name)
}

func (t *twin) deleteNode(c *consumer, name string) {
	if n := c.nodes[name]; n != nil {
		n.deleting = true
		t.d.s.log("%s deletes virtual node %s on %s", t.d.name, name, c.name)
		c.changed(name)
	}
}

func (t *twin) deleteSlice(c *consumer, name string) {
	if sl := c.slices[name]; sl != nil {
		sl.deleting = true
		t.d.s.log("%s deletes slice %s on %s", t.d.name, name, c.name)
		c.changed(name)
	}
}
