package delivery

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fields"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// verb is one thing that is done to one object.
type verb string

const (
	verbApply verb = "apply"
	// verbHold sets create-virtual-node "false" on a slice that is no longer wanted.
	verbHold verb = "hold"
	// verbPoke changes an annotation of a slice, so that Liqo looks at it again.
	verbPoke verb = "poke"
	// verbRemind has Liqo replicate a slice, and what is offloaded, anew.
	verbRemind verb = "remind"
	verbDelete verb = "delete"
	// verbLetGo takes back what was written on a Namespace.
	verbLetGo verb = "let go"
)

// step is a verb on an object.
type step struct {
	verb verb
	key  key
	// want is what to apply.
	want *object
	// uid is the object to delete, or the virtual node to poke for.
	uid types.UID
}

// decision is what to do for a unit, in order; each step needs the one before.
type decision struct {
	steps []step
	// wait says that more is to be done once something else is gone.
	wait bool
	// trouble says why what is wanted cannot be done.
	trouble string
}

// contractWant and contractLive are both sides of a contract's unit.
type contractWant struct {
	slice *object
	// nodes are the virtual nodes, in order.
	nodes []*object
}

type contractLive struct {
	slice *unstructured.Unstructured
	// sliceOurs says that the slice is a member of our ApplySet.
	sliceOurs    bool
	virtualNodes []liveNode
	// node: a Node exists.
	node bool
}

// liveNode is a virtual node; ours says that it is a member of our ApplySet.
type liveNode struct {
	u    *unstructured.Unstructured
	ours bool
}

// at is the virtual node that is there for a wanted one, or nil.
func (l *contractLive) at(k key) *unstructured.Unstructured {
	for _, n := range l.virtualNodes {
		if liveKey(kindVirtualNode, n.u) == k {
			return n.u
		}
	}
	return nil
}

func (l *contractLive) anyTerminating() bool {
	return terminating(l.slice) || slices.ContainsFunc(l.virtualNodes, func(n liveNode) bool { return terminating(n.u) })
}

// decideContract follows the order that real Liqo v1.2.0 needs. Up: virtual
// node, slice; a virtual node made anew beside an old slice is not noticed until
// the slice is poked. (Virtual nodes that Liqo does not make come after it: until
// it is granted they have no credentials.) Down: slice "false", virtual node, and
// the slice once virtual node and Node are gone, which is when all pods were
// evicted.
func decideContract(want contractWant, live contractLive) decision {
	switch {
	case want.slice == nil:
		return decideGone(live)
	case len(want.nodes) == 0:
		return decideReleasing(want, live)
	}
	if live.anyTerminating() {
		// What is applied to an object on its way out is lost with it.
		return decision{wait: true}
	}
	if want.slice.u.GetAnnotations()[manifests.AnnotationCreateVirtualNode] == "false" {
		return decideByHand(want, live)
	}
	var d decision
	node := want.nodes[0]
	is := live.at(node.key)
	if !asWanted(node, is) {
		d.steps = append(d.steps, step{verb: verbApply, key: node.key, want: node})
	}
	if !asWanted(want.slice, live.slice) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.slice.key, want: want.slice})
	}
	if live.slice != nil && (is == nil || orphaned(live.slice, is)) {
		// The uid of a virtual node that this pass makes is filled in then.
		poke := step{verb: verbPoke, key: want.slice.key}
		if is != nil {
			poke.uid = is.GetUID()
		}
		d.steps = append(d.steps, poke)
	}
	return d
}

// decideByHand is for virtual nodes that Liqo does not make of the slice: it
// does not adopt them either. A new one waits until the slice is granted.
func decideByHand(want contractWant, live contractLive) decision {
	var d decision
	if !asWanted(want.slice, live.slice) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.slice.key, want: want.slice})
	}
	for _, n := range live.virtualNodes {
		wanted := slices.ContainsFunc(want.nodes, func(o *object) bool { return o.key == liveKey(kindVirtualNode, n.u) })
		if !wanted && (n.ours || live.sliceOurs) {
			d.steps = append(d.steps, deletion(kindVirtualNode, n.u))
		}
	}
	for _, node := range want.nodes {
		switch is := live.at(node.key); {
		case asWanted(node, is):
		case is == nil && !hasGrant(live.slice):
			d.wait = true
		default:
			d.steps = append(d.steps, step{verb: verbApply, key: node.key, want: node})
		}
	}
	return d
}

// hasGrant reports whether a slice was ever granted something.
func hasGrant(slice *unstructured.Unstructured) bool {
	return slice != nil && len(seen.Resources(slice, "status", "resources")) > 0
}

// orphaned reports whether a virtual node is younger than its slice, not
// adopted by it, and the slice was not yet poked for it: a broker ended between
// making the one and poking the other.
func orphaned(slice, node *unstructured.Unstructured) bool {
	created := node.GetCreationTimestamp()
	return created.After(slice.GetCreationTimestamp().Time) && len(node.GetOwnerReferences()) == 0 &&
		slice.GetAnnotations()[annotationPoke] != string(node.GetUID())
}

// decideReleasing drains: no new virtual node, then the virtual nodes go.
func decideReleasing(want contractWant, live contractLive) decision {
	var d decision
	if terminating(live.slice) {
		return decision{wait: true}
	}
	// A slice that is not there is not made only to be released.
	if live.slice != nil && !asWanted(want.slice, live.slice) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.slice.key, want: want.slice})
	}
	for _, n := range live.virtualNodes {
		if !terminating(n.u) {
			d.steps = append(d.steps, deletion(kindVirtualNode, n.u))
		}
	}
	return d
}

// decideGone ends what no manifest names any more: after a release only the
// slice is left; without one, the release is made up for.
func decideGone(live contractLive) decision {
	var d decision
	for _, n := range live.virtualNodes {
		if !n.ours && !live.sliceOurs {
			continue
		}
		if !d.wait && live.slice != nil && live.slice.GetAnnotations()[manifests.AnnotationCreateVirtualNode] != "false" && !terminating(live.slice) {
			d.steps = append(d.steps, step{verb: verbHold, key: liveKey(kindSlice, live.slice)})
		}
		if !terminating(n.u) {
			d.steps = append(d.steps, deletion(kindVirtualNode, n.u))
		}
		d.wait = true
	}
	if d.wait || live.slice == nil || !live.sliceOurs || terminating(live.slice) {
		return d
	}
	if live.node || len(live.virtualNodes) > 0 {
		d.wait = true
		return d
	}
	d.steps = append(d.steps, deletion(kindSlice, live.slice))
	return d
}

// decideObject is for everything that stands alone. blocked says that a removal
// must wait for something else to go first.
func decideObject(k key, want *object, live *unstructured.Unstructured, ours, blocked bool) decision {
	if want != nil {
		if terminating(live) {
			return decision{wait: true}
		}
		if asWanted(want, live) {
			return decision{}
		}
		return decision{steps: []step{{verb: verbApply, key: k, want: want}}}
	}
	if live == nil || !ours || terminating(live) {
		return decision{}
	}
	if blocked {
		return decision{wait: true}
	}
	return decision{steps: []step{deletion(k.Kind, live)}}
}

// decideNamespace never deletes. A namespace that is not to be made is only
// marked where it exists; one that no contract offloads any more gets rid of
// our marks, but Liqo's tenant namespaces stay as they are: Liqo may go by
// labels that only we wrote.
func decideNamespace(k key, want *object, live *unstructured.Unstructured, ours, blocked bool) decision {
	if want != nil {
		if live == nil && want.u.GetAnnotations()[manifests.AnnotationCreate] == "false" {
			return decision{wait: true, trouble: "namespace " + k.Name + " does not exist: create it, or set create: true in the intent's offload.namespaces"}
		}
		return decideObject(k, want, live, true, false)
	}
	if live == nil || terminating(live) || !ours {
		return decision{}
	}
	if _, offloaded := live.GetLabels()[v1alpha1.LabelTenant]; !offloaded {
		return decision{}
	}
	if blocked {
		return decision{wait: true}
	}
	return decision{steps: []step{{verb: verbLetGo, key: k}}}
}

// asWanted reports whether a live object is what was applied last: it carries
// the hash of the wanted one, and every wanted field still has its value.
func asWanted(want *object, live *unstructured.Unstructured) bool {
	return live != nil && live.GetAnnotations()[want.applied] == want.hash && fields.Covered(live.Object, want.u.Object)
}

func terminating(u *unstructured.Unstructured) bool {
	return u != nil && u.GetDeletionTimestamp() != nil
}

func liveKey(k kind, u *unstructured.Unstructured) key { return key{k, u.GetNamespace(), u.GetName()} }

func deletion(k kind, u *unstructured.Unstructured) step {
	return step{verb: verbDelete, key: liveKey(k, u), uid: u.GetUID()}
}
