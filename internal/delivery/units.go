package delivery

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// decideUnit lays what is wanted beside what is there.
func (w *worker) decideUnit(c *conn, unit key) (d decision, wanted bool) {
	if slices.Contains(c.missing, unit.Kind) {
		want := w.desired.objects[unit]
		if want == nil {
			return decision{}, false
		}
		return decision{trouble: fmt.Sprintf("%s is not served by this cluster: Kubernetes 1.36 or newer is needed for pods to be given their tolerations", unit)}, true
	}
	want := w.desired.objects[unit]
	live := c.get(unit)
	switch unit.Kind {
	case kindContract:
		want := w.desired.contracts[unit.Name]
		return decideContract(want, w.liveContract(c, unit.Name, want)), want.slice != nil
	case kindNamespace:
		offloading := c.get(key{kindOffloading, unit.Name, offloadingName})
		return decideNamespace(unit, want, live, offloading != nil && w.ours(offloading)), want != nil
	case kindOffloading:
		if want != nil && c.get(key{Kind: kindNamespace, Name: unit.Namespace}) == nil && w.onlyMarked(unit.Namespace) {
			return decision{wait: true}, true
		}
		return decideObject(unit, want, live, w.ours(live), live != nil && w.draining(c, live.GetLabels()[v1alpha1.LabelTenant])), want != nil
	case kindQuota:
		if want != nil && c.get(key{Kind: kindNamespace, Name: unit.Namespace}) == nil && w.onlyMarked(unit.Namespace) {
			return decision{wait: true}, true
		}
		return decideObject(unit, want, live, w.ours(live), false), want != nil
	default:
		return decideObject(unit, want, live, w.ours(live), w.anythingLeft(c)), want != nil
	}
}

// onlyMarked reports whether a namespace is not to be made where it is missing.
func (w *worker) onlyMarked(namespace string) bool {
	want := w.desired.objects[key{Kind: kindNamespace, Name: namespace}]
	return want == nil || want.u.GetAnnotations()[annotationCreate] == "false"
}

func (w *worker) liveContract(c *conn, name string, want contractWant) contractLive {
	slice := c.find(kindSlice, name, w.ours)
	if want.slice != nil {
		slice = c.get(want.slice.key)
	}
	virtualNode := c.find(kindVirtualNode, name, w.ours)
	if want.node != nil {
		virtualNode = c.get(want.node.key)
	}
	return contractLive{
		slice: slice, virtualNode: virtualNode,
		sliceOurs: w.ours(slice), virtualNodeOurs: w.ours(virtualNode),
		node: c.get(key{Kind: kindNode, Name: name}) != nil,
	}
}

func (w *worker) ours(u *unstructured.Unstructured) bool {
	return u != nil && u.GetLabels()[labelPartOf] == w.desired.applySet
}

// draining reports whether a tenant has a virtual node that is on its way out.
func (w *worker) draining(c *conn, tenant string) bool {
	for _, obj := range c.informers[kindVirtualNode].GetStore().List() {
		u := obj.(*unstructured.Unstructured)
		if w.ours(u) && u.GetLabels()[v1alpha1.LabelTenant] == tenant && w.desired.objects[liveKey(kindVirtualNode, u)] == nil {
			return true
		}
	}
	return false
}

// anythingLeft reports whether the cluster still has what policies protect.
func (w *worker) anythingLeft(c *conn) bool {
	for _, k := range []kind{kindSlice, kindVirtualNode, kindOffloading} {
		for _, obj := range c.informers[k].GetStore().List() {
			if w.ours(obj.(*unstructured.Unstructured)) {
				return true
			}
		}
	}
	return false
}
