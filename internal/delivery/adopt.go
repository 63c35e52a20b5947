package delivery

import (
	"context"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
)

// kindSet is the kind under which trouble with the fleet's own set is told.
const kindSet kind = "ApplySet"

// adopt takes into the fleet's set what it applied before it had one of its own, once
// in a term. Until then nothing else is done in the cluster.
func (w *worker) adopt(ctx context.Context, c *conn) error {
	w.mu.Lock()
	done, contracts := w.adopted, w.target.Contracts
	w.mu.Unlock()
	if done {
		return nil
	}
	tenants := map[string]string{} // by contract
	for _, contract := range contracts {
		tenants[contract.Metadata.Name] = contract.Metadata.Namespace
	}
	taken, left, err := fleets.Adoption{
		Set: w.own, Client: c.clientset, Identity: w.options.Identity, Objects: c.members(),
		Wanted: func(u *unstructured.Unstructured) bool {
			tenant, known := tenants[u.GetLabels()[v1alpha1.LabelContract]]
			return known && tenant == u.GetLabels()[v1alpha1.LabelTenant] || w.desired.objects[liveKey(kind(u.GetKind()), u)] != nil
		},
		Resource: func(u *unstructured.Unstructured) dynamic.ResourceInterface {
			return c.resource(liveKey(kind(u.GetKind()), u))
		},
		Changed: func(u *unstructured.Unstructured) {
			_, _ = trim(u)
			c.note(liveKey(kind(u.GetKind()), u), u)
		},
	}.Run(ctx, &w.elder, w.options.Clock.Now())
	if err == nil && w.own.Fleet != "" && (taken > 0 || len(w.desired.objects) > 0) {
		err = w.ensureParent(ctx, c)
	}
	w.mu.Lock()
	delete(w.trouble, key{Kind: kindSet, Name: w.name})
	if err != nil {
		err = explain(err)
		w.trouble[key{Kind: kindSet, Name: w.name}] = err.Error()
	}
	w.adopted = err == nil
	w.mu.Unlock()
	if taken > 0 || len(left) > 0 && err == nil {
		w.log.Info("what was applied before is in the fleet's own set", "taken", taken, "left", len(left), "names", strings.Join(left[:min(len(left), maxToldRefusals)], ", "))
	}
	return err
}

// members are all objects that caches have of kinds that are applied, without policies,
// which install/consumer makes.
func (c *conn) members() iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for k, inf := range c.informers {
			if k == kindNode || isPolicy(k) || kinds[k].extra {
				continue
			}
			for _, obj := range inf.GetStore().List() {
				if !yield(c.get(liveKey(k, obj.(*unstructured.Unstructured)))) {
					return
				}
			}
		}
	}
}

// others refuses a unit of which another fleet has an object in the cluster, by name.
func (w *worker) others(c *conn, unit key) (trouble string) {
	if unit.Kind == kindContract && len(w.desired.contracts[unit.Name].nodes) == 0 {
		return "" // being released: there is nothing of ours
	}
	for _, o := range w.wantedOf(unit) {
		if whose := w.own.Other(c.get(o.key)); whose != "" {
			return o.key.String() + " is of " + whose + " and is not touched: give the intent, or its namespace, another name"
		}
		if o.key.Kind != kindVirtualNode || c.get(o.key) != nil {
			continue
		}
		// Nodes have no namespace, and pods find theirs by the intent's name.
		for _, obj := range c.informers[kindVirtualNode].GetStore().List() {
			u := obj.(*unstructured.Unstructured)
			whose := w.own.Other(u)
			if whose != "" && (u.GetName() == o.key.Name || u.GetLabels()[v1alpha1.LabelIntent] == o.u.GetLabels()[v1alpha1.LabelIntent]) {
				return o.key.String() + " is not made: " + whose + " has " + liveKey(kindVirtualNode, u).String() + " for an intent of the same name (" + u.GetLabels()[v1alpha1.LabelIntent] + "); give the intent another name"
			}
		}
	}
	return ""
}

// wantedOf are the wanted objects of a unit.
func (w *worker) wantedOf(unit key) []*object {
	if unit.Kind == kindContract {
		want := w.desired.contracts[unit.Name]
		if want.slice == nil {
			return want.nodes
		}
		return append(slices.Clip(want.nodes), want.slice)
	}
	if want := w.desired.objects[unit]; want != nil {
		return []*object{want}
	}
	return nil
}

// foreign reports whether an object is another fleet's. Until this one has adopted
// what it applied before, what bears no fleet's id is its own.
func (w *worker) foreign(u *unstructured.Unstructured) bool {
	if w.own.Other(u) == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.adopted || !w.own.Before(u)
}

// memberKinds are the kinds that members of the set have.
func memberKinds() []string {
	out := make([]string, 0, len(kinds))
	for k, info := range kinds {
		if k == kindNode || k == kindNamespace {
			continue
		}
		gk := string(k)
		if info.gvr.Group != "" {
			gk += "." + info.gvr.Group
		}
		out = append(out, gk)
	}
	slices.Sort(out)
	return out
}
