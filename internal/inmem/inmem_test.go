package inmem

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// scripted is a daemon that says what a test wants.
type scripted struct {
	confirm tree.Hash
	refuse  error
	owed    []wire.Instruction
	seq     uint64
	last    map[string]report
	woken   int
}

func (d *scripted) Report(provider string, g wire.Generation, flavors []v1alpha1.Flavor, honoured uint64) error {
	d.last[provider] = report{provider, g, flavors, honoured}
	return nil
}

func (d *scripted) Instructions(string) wire.Instructions {
	return wire.Instructions{Version: fmt.Sprint(d.seq), Seq: d.seq, Provide: d.owed}
}

func (d *scripted) Confirm(context.Context, string) (tree.Hash, error) { return d.confirm, d.refuse }

func (d *scripted) Wake() { d.woken++ }

const sliceText = `apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata:
  annotations: {fleetbroker.io/flavor: h100, liqo.io/create-virtual-node: "true"}
  labels: {fleetbroker.io/contract: c1}
  name: c1
  namespace: liqo-tenant-paris
spec: {providerClusterID: paris, resources: {cpu: "4", nvidia.com/gpu: "2"}}
`

const nodeText = `apiVersion: offloading.liqo.io/v1beta1
kind: VirtualNode
metadata: {labels: {fleetbroker.io/contract: c1}, name: c1, namespace: liqo-tenant-paris}
`

// world is a consumer, a provider of two cards, and a daemon that wants contract c1 there.
type world struct {
	*Clusters
	d *scripted
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Clusters: New(Options{Consumers: []string{"rome"}, Providers: map[string][]Node{"paris": {{Name: "paris-1", Pool: "h100", GPUs: 2}}}}),
		d:        &scripted{last: map[string]report{}, seq: 1, owed: []wire.Instruction{{Slice: "c1", Phase: v1alpha1.PhaseReserved}}},
	}
	w.deliver(t, map[string]string{"vision/c1-virtualnode.yaml": nodeText, "vision/c1-slice.yaml": sliceText})
	return w
}

// deliver makes the daemon want these manifests, and the remote have them.
func (w *world) deliver(t *testing.T, files map[string]string) {
	t.Helper()
	remote, change := memremote.New(), gitobj.Change{Puts: map[string][]byte{"kustomization.yaml": nil}}
	for name, content := range files {
		change.Puts[name] = []byte(content)
	}
	h, err := remote.Commit("ledger", gitobj.Person{}, "x", change)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := remote.Tree(h)
	if err != nil {
		t.Fatal(err)
	}
	contract := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "c1"}, Spec: v1alpha1.ContractSpec{Provider: "paris"}}
	w.d.confirm = manifests.Root
	w.Deliver(map[string]delivery.Desired{"rome": {Tree: manifests, Contracts: []*v1alpha1.Contract{contract}}})
}

func (w *world) turns(t *testing.T, n int) v1alpha1.ConsumerObservation {
	t.Helper()
	for range n {
		if err := w.turn(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
	}
	seen, _ := w.Observe()
	return seen["rome"]["c1"]
}

func (w *world) held() v1alpha1.Resources { return w.d.last["paris"].flavors[0].Spec.Held["c1"] }

// What is delivered becomes a granted slice and a ready node; what is taken away goes in
// Liqo's order, and the provider reports the instructions as carried out only once nothing
// is granted.
func TestUpAndDown(t *testing.T) {
	w := newWorld(t)
	if seen, _ := w.Observe(); seen["rome"]["c1"].Slice != v1alpha1.Unknown {
		t.Errorf("before a pass the slice is %v, want unknown", seen["rome"]["c1"].Slice)
	}
	o := w.turns(t, 3)
	if o.Slice != v1alpha1.Present || !o.NodeReady || o.Granted["nvidia.com/gpu"].Int64() != 2 || w.d.woken == 0 {
		t.Fatalf("after three turns %+v, woken %d times", o, w.d.woken)
	}
	if got := w.held()[v1alpha1.GPU].Int64(); got != 2 {
		t.Errorf("the provider reports %d cards held, want 2", got)
	}
	if err := w.Deploy("rome", Workload{Namespace: "vision", Name: "job", Replicas: 3, GPUs: 1}); err != nil {
		t.Fatal(err)
	}
	w.turns(t, 1)
	if pods := w.Pods("rome", "vision"); len(pods) != 3 || pods[0].Phase != "Pending" {
		t.Errorf("without an offloading pods are %v, want 3 that wait", pods)
	}
	w.consumers["rome"].offloaded["vision"] = true
	w.schedule()
	running := w.Pods("paris", "vision-rome")
	if len(running) != 2 || running[0].Node != "paris-1" {
		t.Errorf("on two cards of paris run %v", running)
	}

	w.deliver(t, nil)
	w.d.seq, w.d.owed = 2, []wire.Instruction{{Slice: "c1", Phase: v1alpha1.PhaseReleasing}}
	before := []bool{true, true, true} // node, slice, grant
	for range 8 {
		o = w.turns(t, 1)
		now := []bool{o.Node != v1alpha1.Absent, o.Slice != v1alpha1.Absent, w.held() != nil}
		for i := 1; i < 3; i++ {
			if !now[i] && before[i-1] && now[i-1] {
				t.Fatalf("node, slice and grant are %v after %v", now, before)
			}
		}
		if honoured := w.d.last["paris"].honoured; now[2] && honoured != 0 {
			t.Fatalf("paris reports %d as carried out while it grants", honoured)
		}
		before = now
	}
	if !o.Gone() || w.held() != nil || w.d.last["paris"].honoured != 2 {
		t.Errorf("in the end %+v, held %v, honoured %d", o, w.held(), w.d.last["paris"].honoured)
	}
	if pods := w.Pods("paris", "vision-rome"); len(pods) != 0 {
		t.Errorf("pods still run: %v", pods)
	}
}

// Nothing is written that the remote does not confirm.
func TestConfirm(t *testing.T) {
	for name, set := range map[string]func(*scripted){
		"another tree": func(d *scripted) { d.confirm = tree.Hash{} },
		"no answer":    func(d *scripted) { d.refuse = errors.New("no answer") },
	} {
		w := newWorld(t)
		set(w.d)
		if o := w.turns(t, 3); o.Slice != v1alpha1.Unknown || len(w.Objects("rome")) != 0 {
			t.Errorf("%s: the slice is %v, objects %v", name, o.Slice, w.Objects("rome"))
		}
	}
}

// A slice that the ledger does not list is granted nothing.
func TestGrantsWhatIsOwed(t *testing.T) {
	w := newWorld(t)
	w.d.owed = nil
	if o := w.turns(t, 4); o.Slice != v1alpha1.Present || o.Granted != nil || w.held() != nil {
		t.Errorf("granted %v, held %v", o.Granted, w.held())
	}
	w.d.seq, w.d.owed = 2, []wire.Instruction{{Slice: "c1", Phase: v1alpha1.PhasePeering}}
	if o := w.turns(t, 2); o.Granted == nil {
		t.Error("once the ledger lists it, it is not granted")
	}
}
