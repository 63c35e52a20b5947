package delivery

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// decideUnit lays what is wanted beside what is there.
func (w *worker) decideUnit(c *conn, unit key) (d decision, wanted bool) {
	if slices.Contains(c.missing, unit.Kind) {
		want := w.desired.objects[unit]
		if want == nil {
			return decision{}, false
		}
		return decision{trouble: fmt.Sprintf("%s is not served by this cluster, in v1 or v1beta1, so that its pods get no tolerations: write `admission: webhook` into clusters/%s.yaml, and install what `fleetbroker install %[2]s` writes then", unit, w.name)}, true
	}
	want := w.desired.objects[unit].in(c.gvrs[unit.Kind])
	live := c.get(unit)
	if isPolicy(unit.Kind) { // names have the fleet's id: no other has one of it
		return w.decidePolicy(unit, want, live), want != nil
	}
	if trouble := w.others(c, unit); trouble != "" {
		return decision{wait: true, trouble: trouble}, true
	}
	switch unit.Kind {
	case kindContract:
		want := w.desired.contracts[unit.Name]
		live := w.liveContract(c, unit.Name, want)
		return w.keepLast(c, unit, w.remind(unit, decideContract(want, live), live)), want.slice != nil
	case kindNamespace:
		offloading := c.get(key{kindOffloading, unit.Name, offloadingName})
		return decideNamespace(unit, want, live, w.ours(live), w.ours(offloading)), want != nil
	case kindOffloading:
		w.mu.Lock()
		why := w.target.Refused[unit.Namespace]
		w.mu.Unlock()
		if why != "" {
			return decision{trouble: conflict(unit.Namespace, why)}, true
		}
		if want != nil && c.get(key{Kind: kindNamespace, Name: unit.Namespace}) == nil && w.onlyMarked(unit.Namespace) {
			return decision{wait: true}, true
		}
		return decideObject(unit, want, live, w.ours(live), live != nil && w.draining(c, live.GetLabels()[v1alpha1.LabelTenant])), want != nil
	case kindQuota:
		if want != nil && c.get(key{Kind: kindNamespace, Name: unit.Namespace}) == nil && w.onlyMarked(unit.Namespace) {
			return decision{wait: true}, true
		}
		return decideObject(unit, want, live, w.ours(live), false), want != nil
	}
	return decision{}, false
}

// onlyMarked reports whether a namespace is not to be made where it is missing.
func (w *worker) onlyMarked(namespace string) bool {
	want := w.desired.objects[key{Kind: kindNamespace, Name: namespace}]
	return want == nil || want.u.GetAnnotations()[annotationCreate] == "false"
}

func (w *worker) liveContract(c *conn, name string, want contractWant) contractLive {
	slice := c.find(kindSlice, name, w.ours)
	if want.slice != nil {
		slice = c.own(want.slice.key)
	}
	node := slices.ContainsFunc(c.every(kindNode, name), func(u *unstructured.Unstructured) bool { return !c.others(u) })
	live := contractLive{slice: slice, sliceOurs: w.ours(slice), node: node}
	named := c.find(kindVirtualNode, name, w.ours)
	for _, u := range c.every(kindVirtualNode, name) {
		at := liveKey(kindVirtualNode, u)
		wanted := slices.ContainsFunc(want.nodes, func(o *object) bool { return o.key == at })
		// Liqo's own, made bare of our slice, is the contract's too.
		bare := u == named && !slices.ContainsFunc(want.nodes, func(o *object) bool { return o.key.Name == name })
		if (wanted || bare || w.ours(u)) && !c.others(u) {
			live.virtualNodes = append(live.virtualNodes, liveNode{u, w.ours(u)})
		}
	}
	return live
}

// remind has Liqo replicate a slice anew that its provider has forgotten, once
// each time: a Tenant that was Drained and is Active again gets nothing back by
// itself, neither the slice nor the namespaces that are offloaded to it.
func (w *worker) remind(unit key, d decision, live contractLive) decision {
	w.mu.Lock()
	since := w.unheld[unit.Name]
	w.mu.Unlock()
	if since == "" || live.slice == nil || terminating(live.slice) || live.slice.GetAnnotations()[annotationReminded] == since {
		return d
	}
	d.steps = append(d.steps, step{verb: verbRemind, key: liveKey(kindSlice, live.slice), uid: types.UID(since)})
	return d
}

// noteUnheld marks the slices that their provider has forgotten; mu is held.
func (w *worker) noteUnheld(contracts []*v1alpha1.Contract) {
	now := map[string]string{}
	for _, c := range contracts {
		if since := unheld(c); since != "" {
			slice := manifests.SliceName(c)
			if now[slice] = since; w.unheld[slice] != since {
				w.markLocked(key{Kind: kindContract, Name: slice})
				w.nudge()
			}
		}
	}
	w.unheld = now
}

// unheld is since when a contract's provider holds nothing of it though it
// should, "" when it is not so.
func unheld(c *v1alpha1.Contract) string {
	if c.Status.Phase != v1alpha1.PhaseDegraded || c.Status.Reason != v1alpha1.ReasonNotHeld {
		return ""
	}
	return c.Status.Since.UTC().Format(time.RFC3339)
}

// keepLast puts off the end of the last virtual node towards a provider while
// another contract with it has none yet: with it Liqo would delete everything
// that is offloaded to that provider, namespaces and their content.
func (w *worker) keepLast(c *conn, unit key, d decision) decision {
	ends := func(s step) bool { return s.verb == verbDelete && s.key.Kind == kindVirtualNode }
	i := slices.IndexFunc(d.steps, ends)
	if i < 0 {
		return d
	}
	last := c.get(d.steps[i].key)
	if last == nil {
		return d // gone meanwhile
	}
	provider := last.GetLabels()[manifests.LabelRemoteClusterID]
	other := w.needs(unit, provider)
	if other == "" || w.standsIn(c, unit, provider) {
		return d
	}
	d.steps = slices.DeleteFunc(d.steps, ends)
	d.wait = true
	d.trouble = "the last virtual node towards " + provider + " stays until that of " + other + " is there: Liqo deletes all that is offloaded there with the last"
	return d
}

// needs is another contract that is to have a virtual node towards a provider,
// "" when there is none.
func (w *worker) needs(unit key, provider string) string {
	found := ""
	for name, want := range w.desired.contracts {
		if name != unit.Name && len(want.nodes) > 0 && (found == "" || name < found) &&
			want.nodes[0].u.GetLabels()[manifests.LabelRemoteClusterID] == provider {
			found = name
		}
	}
	return found
}

// standsIn reports whether another virtual node towards a provider is there to
// stay.
func (w *worker) standsIn(c *conn, unit key, provider string) bool {
	return slices.ContainsFunc(c.informers[kindVirtualNode].GetStore().List(), func(obj any) bool {
		u := obj.(*unstructured.Unstructured)
		k := liveKey(kindVirtualNode, u)
		return k.unit() != unit && !terminating(u) && u.GetLabels()[manifests.LabelRemoteClusterID] == provider && len(w.desired.contracts[k.unit().Name].nodes) > 0
	})
}

func (w *worker) ours(u *unstructured.Unstructured) bool { return w.own.Has(u) }

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
