package delivery

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// verb is one thing that is done to one object.
type verb string

const (
	verbApply verb = "apply"
	// verbHold sets create-virtual-node "false" on a slice that is no longer wanted.
	verbHold verb = "hold"
	// verbPoke changes an annotation of a slice, so that Liqo looks at it again.
	verbPoke   verb = "poke"
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
type contractWant struct{ slice, node *object }

type contractLive struct {
	slice, virtualNode *unstructured.Unstructured
	// ours says that slice and virtual node are members of our ApplySet.
	sliceOurs, virtualNodeOurs bool
	// node: the Node exists.
	node bool
}

// decideContract follows the order that real Liqo v1.2.0 needs. Up: virtual
// node, slice; a virtual node made anew beside an old slice is not noticed until
// the slice is poked. Down: slice "false", virtual node, and the slice once
// virtual node and Node are gone, which is when all pods were evicted.
func decideContract(want contractWant, live contractLive) decision {
	switch {
	case want.slice == nil:
		return decideGone(live)
	case want.node == nil:
		return decideReleasing(want, live)
	}
	var d decision
	if terminating(live.virtualNode) || terminating(live.slice) {
		// What is applied to an object on its way out is lost with it.
		return decision{wait: true}
	}
	if !asWanted(want.node, live.virtualNode) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.node.key, want: want.node})
	}
	if !asWanted(want.slice, live.slice) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.slice.key, want: want.slice})
	}
	if live.slice != nil && (live.virtualNode == nil || orphaned(live)) {
		// The uid of a virtual node that this pass makes is filled in then.
		poke := step{verb: verbPoke, key: want.slice.key}
		if live.virtualNode != nil {
			poke.uid = live.virtualNode.GetUID()
		}
		d.steps = append(d.steps, poke)
	}
	return d
}

// orphaned reports whether the virtual node is younger than the slice, not
// adopted by it, and the slice was not yet poked for it: a broker ended between
// making the one and poking the other.
func orphaned(live contractLive) bool {
	created := live.virtualNode.GetCreationTimestamp()
	sliceCreated := live.slice.GetCreationTimestamp()
	return created.After(sliceCreated.Time) && len(live.virtualNode.GetOwnerReferences()) == 0 &&
		live.slice.GetAnnotations()[annotationPoke] != string(live.virtualNode.GetUID())
}

// decideReleasing drains: no new virtual node, then the virtual node goes.
func decideReleasing(want contractWant, live contractLive) decision {
	var d decision
	if terminating(live.slice) {
		return decision{wait: true}
	}
	// A slice that is not there is not made only to be released.
	if live.slice != nil && !asWanted(want.slice, live.slice) {
		d.steps = append(d.steps, step{verb: verbApply, key: want.slice.key, want: want.slice})
	}
	if live.virtualNode != nil && !terminating(live.virtualNode) {
		d.steps = append(d.steps, deletion(kindVirtualNode, live.virtualNode))
	}
	return d
}

// decideGone ends what no manifest names any more: after a release only the
// slice is left; without one, the release is made up for.
func decideGone(live contractLive) decision {
	var d decision
	if live.virtualNode != nil && (live.virtualNodeOurs || live.sliceOurs) {
		if live.slice != nil && live.slice.GetAnnotations()[manifests.AnnotationCreateVirtualNode] != "false" && !terminating(live.slice) {
			d.steps = append(d.steps, step{verb: verbHold, key: liveKey(kindSlice, live.slice)})
		}
		if !terminating(live.virtualNode) {
			d.steps = append(d.steps, deletion(kindVirtualNode, live.virtualNode))
		}
		d.wait = true
		return d
	}
	if live.slice == nil || !live.sliceOurs || terminating(live.slice) {
		return d
	}
	if live.node || live.virtualNode != nil {
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
func decideNamespace(k key, want *object, live *unstructured.Unstructured, blocked bool) decision {
	if want != nil {
		if live == nil && want.u.GetAnnotations()[manifests.AnnotationCreate] == "false" {
			return decision{wait: true, trouble: "namespace " + k.Name + " does not exist: create it, or set create: true in the intent's offload.namespaces"}
		}
		return decideObject(k, want, live, true, false)
	}
	if live == nil || terminating(live) || live.GetAnnotations()[annotationApplied] == "" {
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

func terminating(u *unstructured.Unstructured) bool {
	return u != nil && u.GetDeletionTimestamp() != nil
}

func liveKey(k kind, u *unstructured.Unstructured) key { return key{k, u.GetNamespace(), u.GetName()} }

func deletion(k kind, u *unstructured.Unstructured) step {
	return step{verb: verbDelete, key: liveKey(k, u), uid: u.GetUID()}
}
