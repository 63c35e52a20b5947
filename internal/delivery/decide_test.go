package delivery

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// thing makes an object of one of Liqo's kinds.
func thing(k kind, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kinds[k].gvr.GroupVersion().String(), "kind": string(k)}}
	u.SetName("s")
	if kinds[k].namespaced {
		u.SetNamespace("liqo-tenant-paris")
	}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func creating(value string) func(*unstructured.Unstructured) {
	return annotated(manifests.AnnotationCreateVirtualNode, value)
}

func annotated(name, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[name] = value
		u.SetAnnotations(a)
	}
}

func goingAway(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: noon}) }

func uid(id types.UID) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetUID(id) }
}

func createdAt(at time.Time) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetCreationTimestamp(metav1.Time{Time: at}) }
}

func adopted(u *unstructured.Unstructured) {
	u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ResourceSlice", Name: "s"}})
}

// wanted is an object as load prepares it.
func wanted(t interface{ Fatal(...any) }, u *unstructured.Unstructured) *object {
	o, err := newObject(u, fleets.Set{Namespace: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// applied is a live object that is as wanted.
func applied(o *object, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := o.u.DeepCopy()
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func verbs(d decision) []string {
	out := []string{}
	for _, s := range d.steps {
		out = append(out, string(s.verb)+" "+string(s.key.Kind))
	}
	if d.wait {
		out = append(out, "wait")
	}
	return out
}

func TestDecideContract(t *testing.T) {
	slice, node := wanted(t, thing(kindSlice, creating("true"))), wanted(t, thing(kindVirtualNode))
	held := wanted(t, thing(kindSlice, creating("false")))
	up, releasing, gone := contractWant{slice, []*object{node}}, contractWant{slice: held}, contractWant{}
	drifted := func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{fleets.AnnotationApplied: "other"})
	}
	both := func(s, n *unstructured.Unstructured) contractLive {
		live := contractLive{slice: s, sliceOurs: true}
		if n != nil {
			live.virtualNodes = []liveNode{{n, true}}
		}
		return live
	}
	named := func(name string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetName(name) }
	}
	one, two := wanted(t, thing(kindVirtualNode, named("s.1"))), wanted(t, thing(kindVirtualNode, named("s.2")))
	grantedOne := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringMap(u.Object, map[string]string{"cpu": "8"}, "status", "resources")
	}
	shared := contractWant{held, []*object{one, two}}
	three := func(s *unstructured.Unstructured, nodes ...*unstructured.Unstructured) contractLive {
		live := contractLive{slice: s, sliceOurs: true}
		for _, n := range nodes {
			live.virtualNodes = append(live.virtualNodes, liveNode{n, true})
		}
		return live
	}
	cases := map[string]struct {
		reason string
		want   contractWant
		live   contractLive
		verbs  []string
	}{
		"new":                {"virtual node first", up, contractLive{}, []string{"apply VirtualNode", "apply ResourceSlice"}},
		"as wanted":          {"no call", up, both(applied(slice), applied(node, adopted)), []string{}},
		"resized":            {"only the slice", up, both(applied(slice, drifted), applied(node, adopted)), []string{"apply ResourceSlice"}},
		"node deleted":       {"Liqo does not notice a new one by itself", up, both(applied(slice), nil), []string{"apply VirtualNode", "poke ResourceSlice"}},
		"node on its way":    {"what is applied to it is lost with it", up, both(applied(slice), applied(node, goingAway)), []string{"wait"}},
		"slice on its way":   {"the same", up, both(applied(slice, goingAway), applied(node)), []string{"wait"}},
		"slice deleted":      {"the virtual node is there already", up, both(nil, applied(node)), []string{"apply ResourceSlice"}},
		"crash before poke":  {"a virtual node younger than its slice and not adopted", up, both(applied(slice, createdAt(noon)), applied(node, createdAt(noon.Add(time.Minute)), uid("u"))), []string{"poke ResourceSlice"}},
		"poked":              {"once for each virtual node", up, both(applied(slice, createdAt(noon), annotated(annotationPoke, "u")), applied(node, createdAt(noon.Add(time.Minute)), uid("u"))), []string{}},
		"adopted":            {"Liqo has noticed", up, both(applied(slice, createdAt(noon)), applied(node, createdAt(noon.Add(time.Minute)), uid("u"), adopted)), []string{}},
		"bare recreation":    {"Liqo made it without our taint", up, both(applied(slice), thing(kindVirtualNode, adopted)), []string{"apply VirtualNode"}},
		"release":            {"slice false, then the virtual node", releasing, both(applied(slice), applied(node)), []string{"apply ResourceSlice", "delete VirtualNode"}},
		"release, draining":  {"nothing more to do", releasing, both(applied(held), applied(node, goingAway)), []string{}},
		"release, drained":   {"the slice waits for the second commit", releasing, both(applied(held), nil), []string{}},
		"release, no slice":  {"not made only to be released", releasing, both(nil, applied(node)), []string{"delete VirtualNode"}},
		"drained":            {"second commit", gone, both(applied(held), nil), []string{"delete ResourceSlice"}},
		"drained, node left": {"virtual kubelet is not done", gone, contractLive{slice: applied(held), sliceOurs: true, node: true}, []string{"wait"}},
		"vanished":           {"no manifest, no release: made up for", gone, both(applied(slice), applied(node)), []string{"hold ResourceSlice", "delete VirtualNode", "wait"}},
		"vanished, held":     {"further on", gone, both(applied(held), applied(node)), []string{"delete VirtualNode", "wait"}},
		"vanished, draining": {"further on", gone, both(applied(held), applied(node, goingAway)), []string{"wait"}},
		"others'":            {"not in our ApplySet", gone, contractLive{slice: applied(slice), virtualNodes: []liveNode{{applied(node), false}}}, []string{}},
		"orphan node":        {"its slice is gone", gone, contractLive{virtualNodes: []liveNode{{applied(node), true}}}, []string{"delete VirtualNode", "wait"}},
		"Liqo's bare node":   {"belongs to our slice", gone, contractLive{slice: applied(slice), sliceOurs: true, virtualNodes: []liveNode{{thing(kindVirtualNode), false}}}, []string{"hold ResourceSlice", "delete VirtualNode", "wait"}},
		"shares, new":        {"without a slice they have no credentials", shared, contractLive{}, []string{"apply ResourceSlice", "wait"}},
		"shares, asked":      {"not granted yet", shared, three(applied(held)), []string{"wait"}},
		"shares, granted":    {"and never poked: Liqo adopts none", shared, three(applied(held, grantedOne)), []string{"apply VirtualNode", "apply VirtualNode"}},
		"shares, one lost":   {"the other runs on", shared, three(applied(held, grantedOne), applied(one)), []string{"apply VirtualNode"}},
		"shares, as wanted":  {"no call", shared, three(applied(held, grantedOne), applied(one), applied(two)), []string{}},
		"shares, resized":    {"also before the slice says so", shared, three(applied(held), applied(one, drifted), applied(two)), []string{"apply VirtualNode"}},
		"shares, Liqo's own": {"one of the whole slice beside them", shared, three(applied(held, grantedOne), thing(kindVirtualNode), applied(one), applied(two)), []string{"delete VirtualNode"}},
		"shares, release":    {"all of them", releasing, three(applied(held), applied(one), applied(two, goingAway)), []string{"delete VirtualNode"}},
		"shares, vanished":   {"all of them, and held once", gone, three(applied(slice), applied(one), applied(two)), []string{"hold ResourceSlice", "delete VirtualNode", "delete VirtualNode", "wait"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := verbs(decideContract(tc.want, tc.live)); !slices.Equal(got, tc.verbs) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.verbs)
			}
		})
	}
}

// Whatever is there, a virtual node is never deleted while its slice would have
// Liqo make it anew, and a slice never while the virtual node or Node is there.
func TestDecideContractNeverBreaksTheOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slice, node := wanted(rt, thing(kindSlice, creating("true"))), wanted(rt, thing(kindVirtualNode))
		held := wanted(rt, thing(kindSlice, creating("false")))
		want := rapid.SampledFrom([]contractWant{{slice, []*object{node}}, {held, []*object{node}}, {slice: held}, {}}).Draw(rt, "want")
		live := contractLive{sliceOurs: rapid.Bool().Draw(rt, "sliceOurs"), node: rapid.Bool().Draw(rt, "node")}
		if rapid.Bool().Draw(rt, "slice") {
			live.slice = applied(slice, creating(rapid.SampledFrom([]string{"true", "false", ""}).Draw(rt, "create")))
		}
		all := []*unstructured.Unstructured{live.slice}
		for _, name := range []string{"s", "s.1", "s.2"} {
			if rapid.Bool().Draw(rt, "virtualNode "+name) {
				u := applied(node)
				u.SetName(name)
				live.virtualNodes = append(live.virtualNodes, liveNode{u, rapid.Bool().Draw(rt, "nodeOurs")})
				all = append(all, u)
			}
		}
		for _, u := range all {
			if u != nil && rapid.Bool().Draw(rt, "terminating") {
				goingAway(u)
			}
		}
		create := ""
		if live.slice != nil {
			create = live.slice.GetAnnotations()[manifests.AnnotationCreateVirtualNode]
		}
		for _, s := range decideContract(want, live).steps {
			switch {
			case s.verb == verbApply && s.key.Kind == kindSlice:
				create = s.want.u.GetAnnotations()[manifests.AnnotationCreateVirtualNode]
			case s.verb == verbHold:
				create = "false"
			case s.verb == verbDelete && s.key.Kind == kindVirtualNode:
				if live.slice != nil && !terminating(live.slice) && create != "false" {
					rt.Fatalf("deletes the virtual node while the slice says %q", create)
				}
			case s.verb == verbDelete && s.key.Kind == kindSlice:
				if len(live.virtualNodes) > 0 || live.node {
					rt.Fatal("deletes the slice while there is something to drain")
				}
				if !live.sliceOurs {
					rt.Fatal("deletes a slice of others")
				}
			}
		}
	})
}

func TestDecideNamespace(t *testing.T) {
	k := key{Kind: kindNamespace, Name: "s"}
	tenant := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{v1alpha1.LabelTenant: "vision"}) }
	managed := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{v1alpha1.LabelManaged: "true"}) }
	make1, mark := wanted(t, thing(kindNamespace, tenant)), wanted(t, thing(kindNamespace, tenant, annotated(manifests.AnnotationCreate, "false")))
	cases := map[string]struct {
		reason  string
		want    *object
		live    *unstructured.Unstructured
		blocked bool
		verbs   []string
		trouble bool
	}{
		"make":              {"create: true", make1, nil, false, []string{"apply Namespace"}, false},
		"mark what is":      {"create: false", mark, thing(kindNamespace), false, []string{"apply Namespace"}, false},
		"do not make":       {"create: false", mark, nil, false, []string{"wait"}, true},
		"on its way out":    {"wait until it can be made anew", make1, applied(make1, goingAway), false, []string{"wait"}, false},
		"let go":            {"no contract offloads it any more", nil, applied(make1), false, []string{"let go Namespace"}, false},
		"let go, offloaded": {"its NamespaceOffloading goes first", nil, applied(make1), true, []string{"wait"}, false},
		"let go once":       {"our marks are gone", nil, thing(kindNamespace), false, []string{}, false},
		"Liqo's":            {"stays as it is", nil, thing(kindNamespace, managed, annotated(fleets.AnnotationApplied, "x")), false, []string{}, false},
		"never there":       {"", nil, nil, false, []string{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decideNamespace(k, tc.want, tc.live, fleets.Set{}.Has(tc.live), tc.blocked)
			if got := verbs(d); !slices.Equal(got, tc.verbs) || (d.trouble != "") != tc.trouble {
				t.Errorf("%s: got %q, trouble %q; want %q", tc.reason, got, d.trouble, tc.verbs)
			}
		})
	}
}
