package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/delivery/watches"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

const (
	offloadingName   = manifests.OffloadingName
	annotationCreate = manifests.AnnotationCreate
)

// observe is what the cluster says about each contract of the target.
func (w *worker) observe() map[string]v1alpha1.ConsumerObservation {
	w.mu.Lock()
	contracts, c, reachable, problem := w.target.Contracts, w.conn, w.reachable(), w.problems.reach
	direct := w.target.Mode == "" || w.target.Mode == Direct
	speaks, lease := w.speaks(), w.problems.lease
	vouches := w.leads() && w.adopted && w.loaded == w.sequence && !w.older
	refused := w.refusedOf
	beside, tools := w.gitops != nil, w.verdicts()
	// What is not there yet may be on its way.
	unsure := map[string]bool{}
	if direct {
		for unit, from := range w.dirty {
			if from == fresh {
				unsure[unit.Name] = true
			}
		}
		for unit := range w.inflight {
			unsure[unit.Name] = true
		}
		for unit := range w.trouble { // a call that failed may have been carried out
			unsure[unit.Name] = true
		}
	}
	troubles := map[key]string{}
	if speaks {
		maps.Copy(troubles, w.trouble)
	}
	if c != nil && problem == "" && !reachable {
		_, problem = c.synced()
	}
	if problem == notReachedYet || problem == watches.Reading { // it passes: nothing to tell
		problem = ""
	}
	blockers := w.blockers
	w.mu.Unlock()

	out := make(map[string]v1alpha1.ConsumerObservation, len(contracts))
	for _, contract := range contracts {
		name := contract.Metadata.Name
		if !reachable {
			out[name] = v1alpha1.ConsumerObservation{Message: problem}
			continue
		}
		slice := manifests.SliceName(contract)
		tool := tools[contract.Metadata.Namespace]
		o := observeContract(c, contract, (vouches || tool.Current) && !unsure[slice])
		o.Message = troubles[key{Kind: kindContract, Name: slice}]
		if o.Message == "" && speaks {
			o.Message = refused[name]
		}
		if beside && o.Message != "" { // it was applied all the same
			o.NodeReady, o.NodeMessage = false, o.Message
		}
		if len(o.Granted) == 0 {
			o.PeeringMessage = troubles[key{Kind: kindPeering, Name: contract.Spec.Provider}]
		}
		if o.VirtualNode == v1alpha1.Present || o.Node == v1alpha1.Present {
			o.Blockers = blockers[slice]
		}
		if contract.Status.Phase == v1alpha1.PhaseReleasing && o.Message != "" {
			o.Blockers = append([]string{o.Message}, o.Blockers...)
		}
		if o.Message == "" {
			o.Message = tool.Trouble
		}
		if !speaks && !inOrder(o) {
			o.Message, o.Bystander = lease, lease == ""
		}
		out[name] = o
	}
	return out
}

// inOrder reports whether nothing is left to be told of a contract.
func inOrder(o v1alpha1.ConsumerObservation) bool {
	return len(o.Granted) > 0 && o.NodeReady && o.Offloading
}

// observeContract reads the caches. Without vouches nothing is said to be
// absent: it may be on its way.
func observeContract(c *conn, contract *v1alpha1.Contract, vouches bool) v1alpha1.ConsumerObservation {
	name := manifests.SliceName(contract)
	mine := func(u *unstructured.Unstructured) bool {
		return u.GetLabels()[v1alpha1.LabelContract] == contract.Metadata.Name
	}
	presence := func(u *unstructured.Unstructured) v1alpha1.Presence {
		switch {
		case u != nil:
			return v1alpha1.Present
		case vouches:
			return v1alpha1.Absent
		}
		return v1alpha1.Unknown
	}
	slice := c.find(kindSlice, name, mine)
	o := v1alpha1.ConsumerObservation{Reachable: true, Slice: presence(slice)}
	if slice != nil {
		o.Granted, o.SliceDenied = seen.Granted(slice)
		o.ProviderMessage = unreached(c, slice)
	}
	shares := contract.VirtualNodes()
	var virtualNode, node *unstructured.Unstructured // any of them: all must be gone
	for _, share := range shares {
		made, is := c.find(kindVirtualNode, share.Name, mine), c.own(key{Kind: kindNode, Name: share.Name})
		if virtualNode == nil {
			virtualNode = made
		}
		if node == nil {
			node = is
		}
		if is != nil {
			o.Allocatable = plus(o.Allocatable, seen.Resources(is, "status", "allocatable"))
		}
	}
	o.VirtualNode, o.Node = presence(virtualNode), presence(node)
	switch {
	case len(shares) > 1 && node != nil:
		o.NodeMessage = unfinished(c, shares)
		o.NodeReady = o.NodeMessage == ""
	case node != nil:
		if o.NodeReady = seen.Condition(node, "Ready")["status"] == "True"; !o.NodeReady {
			o.NodeMessage = seen.Said(seen.Condition(node, "Ready"))
		}
	}
	o.Offloading, o.OffloadingMessage = offloading(c, contract)
	if refused := refusedPods(c, contract, shares); refused != "" {
		if !o.Offloading {
			refused += "; " + o.OffloadingMessage
		}
		o.Offloading, o.OffloadingReason, o.OffloadingMessage = false, v1alpha1.ReasonBackOff, refused
	}
	o.Granted, o.Allocatable = seen.Of(o.Granted, contract.Spec.Resources), seen.Of(o.Allocatable, contract.Spec.Resources)
	return o
}

// plus is the sum of what two Nodes have.
func plus(a, b v1alpha1.Resources) v1alpha1.Resources {
	if a == nil {
		return b
	}
	for name, amount := range b {
		a[name] = a[name].Add(amount)
	}
	return a
}

// unfinished is the first of a contract's several Nodes that is not usable, with
// why; "" when all are.
func unfinished(c *conn, shares []v1alpha1.NodeShare) string {
	for _, share := range shares {
		node := c.own(key{Kind: kindNode, Name: share.Name})
		if node == nil {
			return "Node " + share.Name + " is not there"
		}
		if seen.Condition(node, "Ready")["status"] != "True" {
			return strings.TrimSuffix("Node "+share.Name+" is not ready: "+seen.Said(seen.Condition(node, "Ready")), ": ")
		}
		has := seen.Resources(node, "status", "allocatable")
		for _, name := range share.Resources.Names() {
			if want := share.Resources[name]; has[name].Less(want) {
				return fmt.Sprintf("Node %s has %s of %s %s", share.Name, has[name].Canonical(name), want.Canonical(name), name)
			}
		}
	}
	return ""
}

// offloading reports whether every namespace of a contract is offloaded, as its
// newest specification says.
func offloading(c *conn, contract *v1alpha1.Contract) (bool, string) {
	if contract.Spec.Offload == nil {
		return true, ""
	}
	for _, ns := range contract.Spec.Offload.Namespaces {
		u := c.get(key{kindOffloading, ns.Name, offloadingName})
		switch {
		case u == nil:
			return false, fmt.Sprintf("namespace %s is not offloaded yet", ns.Name)
		case c.others(u):
			return false, fmt.Sprintf("namespace %s is offloaded by another fleet", ns.Name)
		}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "offloadingPhase")
		seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		switch {
		case seen != u.GetGeneration():
			return false, fmt.Sprintf("Liqo has not looked at the offloading of namespace %s yet", ns.Name)
		case phase != "Ready":
			return false, fmt.Sprintf("the offloading of namespace %s is %s", ns.Name, phase)
		}
	}
	return true, ""
}

// tells reports whether a kind is part of an observation.
func tells(k kind) bool {
	switch k {
	case kindSlice, kindVirtualNode, kindNode, kindOffloading:
		return true
	}
	return false
}

// summary is what an observation takes from an object: two objects with equal
// summaries say the same. Heartbeats are not in it.
func summary(k kind, u *unstructured.Unstructured) string {
	var b strings.Builder
	put := func(v any) {
		text, _ := json.Marshal(v) // of decoded JSON: cannot fail
		b.Write(text)
	}
	switch k {
	case kindSlice:
		r, denied := seen.Granted(u)
		put(r)
		put(denied)
	case kindNode:
		put(seen.Condition(u, "Ready")["status"])
		put(seen.Said(seen.Condition(u, "Ready")))
		put(seen.Resources(u, "status", "allocatable"))
	case kindOffloading:
		phase, _, _ := unstructured.NestedString(u.Object, "status", "offloadingPhase")
		seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		put([]any{phase, seen, u.GetGeneration()})
	}
	put(u.GetUID())
	return b.String()
}
