//go:build e2e

package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

const fleetA, fleetB, fleetC = "f3k9q2abu7", "a0a0a0a0a0", "c1c1c1c1c1"

// TestFleets: two fleets in one consumer, and one that gets an id.
func TestFleets(t *testing.T) {
	rome := envtest.Cluster(t, env.ClusterOptions{Name: "rome"})
	access := testAccess{"rome": rome}
	if err := env.InstallLiqoCRDs(t.Context(), rome.Config); err != nil {
		t.Fatal(err)
	}
	t.Run("two fleets", func(t *testing.T) { testTwoFleets(t, access) })
	t.Run("a fleet gets an id", func(t *testing.T) { testAdoption(t, access) })
}

// desiredOf is desired for a fleet with an id.
func desiredOf(t *testing.T, fleet string, contracts ...*v1alpha1.Contract) Desired {
	t.Helper()
	facts := &manifests.Facts{Fleet: fleet}
	out, err := facts.All(manifests.NewIndex(contracts))
	if err != nil || len(out.Problems) > 0 {
		t.Fatal(err, out.Problems)
	}
	files := tree.NewMemory().Build(out.Files)
	sub, err := files.Sub(manifests.Dir("rome"))
	if err != nil {
		t.Fatal(err)
	}
	return Desired{Cluster: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}}, Tree: sub, Commit: files.Root, Contracts: contracts, Facts: facts}
}

// in offloads another namespace.
func in(namespace string) func(*v1alpha1.Contract) {
	return func(c *v1alpha1.Contract) { c.Spec.Offload.Namespaces[0].Name = namespace }
}

func ofFleet(id string) func(*Options) {
	return func(o *Options) { o.Fleet, o.Identity = id, "daemon-of-"+id }
}

// Each fleet has its own, and one that releases, or ends, touches nothing of the
// other's; what has the name of the other's is refused by name.
func testTwoFleets(t *testing.T, access testAccess) {
	rome := watch(t, access["rome"])
	a, b := newRig(t, access, ofFleet(fleetA)), newRig(t, access, ofFleet(fleetB))
	wantA, wantB := desiredOf(t, fleetA, contract("rome", "train", in("a"))), desiredOf(t, fleetB, contract("rome", "serve", in("b")))
	a.deliver(wantA)
	b.deliver(wantB)
	a.settled(t, wantA)
	b.settled(t, wantB)

	both := func(when string) {
		t.Helper()
		for _, k := range []key{sliceKey("serve"), nodeKey("serve"), {kindOffloading, "b", "offloading"}, {kindQuota, "b", "fleetbroker"}, {Kind: kindValidating, Name: "fleetbroker-" + fleetB + "-intent-guard"}} {
			u := rome.get(k)
			if u == nil || u.GetDeletionTimestamp() != nil || !(fleets.Set{Fleet: fleetB, Namespace: "fleetbroker"}).Has(u) {
				t.Errorf("%s: %s of the other fleet is %v", when, k, u)
			}
		}
	}
	both("both deliver")
	if m := rome.get(sliceKey("train")).GetManagedFields(); !slices.ContainsFunc(m, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "fleetbroker-"+fleetA }) {
		t.Errorf("managed fields: %v", m)
	}
	if got := rome.get(key{Kind: kindNamespace, Name: tenantNamespace}).GetAnnotations(); got[fleets.AnnotationApplied+"-"+fleetA] == "" || got[fleets.AnnotationApplied+"-"+fleetB] == "" {
		t.Errorf("the peering's namespace is not both fleets': %v", got)
	}

	// A contract with the name of the other's: refused, and nothing of it is made.
	b.takeWrites()
	clash := desiredOf(t, fleetB, contract("rome", "serve", in("b")), contract("rome", "train", in("b")))
	b.deliver(clash)
	envtest.Eventually(t, "the clash to be named", func(context.Context) bool {
		all := flat(b.Observe())
		o := all["vision-train-0-aaaa"]
		return strings.Contains(o.Message, "of fleet "+fleetA+" and is not touched") && o.Slice != v1alpha1.Present && o.VirtualNode != v1alpha1.Present
	})
	if u := rome.get(sliceKey("train")); u.GetLabels()[v1alpha1.LabelFleet] != fleetA {
		t.Errorf("the slice of %s was taken over: %v", fleetA, u.GetLabels())
	}
	if writes := b.takeWrites(); slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "vision-train") }) {
		t.Errorf("the clash was written: %q", writes)
	}
	// It is given up again, and no slice of the other fleet is waited for or ended.
	gone := desiredOf(t, fleetB, contract("rome", "serve", in("b")), contract("rome", "train", in("b"), releasing))
	b.deliver(gone)
	envtest.Eventually(t, "what was refused to be seen gone", func(context.Context) bool {
		all := flat(b.Observe())
		o := all["vision-train-0-aaaa"]
		return o.Gone()
	})
	// The namespace of another fleet is not offloaded, labelled or let go.
	space := desiredOf(t, fleetB, contract("rome", "serve", in("b")), contract("rome", "other", in("a")))
	b.deliver(space)
	envtest.Eventually(t, "the namespace to be named", func(context.Context) bool {
		return slices.ContainsFunc(b.Status()["rome"].Troubles, func(s string) bool { return strings.Contains(s, "Namespace a is of fleet "+fleetA) })
	})
	if got := rome.get(key{Kind: kindNamespace, Name: "a"}).GetAnnotations(); got[v1alpha1.LabelFleet] != fleetA || got[v1alpha1.AnnotationIntents] != "vision.train" {
		t.Errorf("namespace a: %v", got)
	}
	b.deliver(wantB)
	b.settled(t, wantB)

	// One releases and ends all: the other's stands.
	down := desiredOf(t, fleetA, contract("rome", "train", in("a"), releasing))
	a.deliver(down)
	a.settled(t, down)
	none := desiredOf(t, fleetA)
	a.deliver(none)
	a.settled(t, none)
	if rome.get(sliceKey("train")) != nil || rome.get(key{kindOffloading, "a", "offloading"}) != nil {
		t.Error("what was released stands")
	}
	both("one has released")
	if writes := slices.DeleteFunc(a.takeWrites(), func(w string) bool {
		return !strings.HasPrefix(w, "DELETE") || strings.Contains(w, "train") || strings.Contains(w, "/namespaces/a/")
	}); len(writes) > 0 {
		t.Errorf("deleted of the other fleet: %q", writes)
	}
	nothing := desiredOf(t, fleetB)
	b.deliver(nothing)
	b.settled(t, nothing)
}

// What a fleet applied before it had an id is its own afterwards: labels, set and
// managed fields, in one pass in which nothing is deleted, not while a daemon of before
// still works, and nothing of what no contract of the fleet names.
func testAdoption(t *testing.T, access testAccess) {
	rome := watch(t, access["rome"])
	old := newRig(t, access, func(o *Options) { o.Identity = "old" })
	train, serve := contract("rome", "train", in("a")), contract("rome", "serve", in("b"))
	stray := contract("rome", "stray", in("c"))
	before := desired(t, "rome", train, serve, stray)
	old.deliver(before)
	old.settled(t, before)
	uids := map[key]string{}
	for _, k := range []key{sliceKey("train"), nodeKey("train"), {kindOffloading, "a", "offloading"}, sliceKey("stray")} {
		uids[k] = string(rome.get(k).GetUID())
	}

	deleted := make(chan string, 100)
	now := newRig(t, access, func(o *Options) {
		ofFleet(fleetC)(o)
		called := o.Hooks.Called
		o.Hooks.Called = func(cluster, method, path string, code int) {
			if method == "DELETE" {
				deleted <- path
			}
			called(cluster, method, path, code)
		}
	})
	want := desiredOf(t, fleetC, train, contract("rome", "serve", in("b"), releasing))
	now.deliver(want)
	envtest.Eventually(t, "the daemon of before to be named", func(context.Context) bool {
		return slices.ContainsFunc(now.Status()["rome"].Troubles, func(s string) bool {
			return strings.Contains(s, "daemon old still holds Lease fleetbroker/fleetbroker")
		})
	})
	for name, o := range flat(now.Observe()) {
		if o.Gone() {
			t.Errorf("%s is said to be gone before it was adopted", name)
		}
	}
	if writes := slices.DeleteFunc(now.takeWrites(), func(w string) bool { return strings.Contains(w, "/events") }); len(writes) > 0 {
		t.Errorf("written beside the daemon of before: %q", writes)
	}
	old.Close()
	now.settled(t, want)

	set := fleets.Set{Fleet: fleetC, Namespace: "fleetbroker"}
	for _, k := range []key{sliceKey("train"), nodeKey("train"), {kindOffloading, "a", "offloading"}} {
		u := rome.get(k)
		if !set.Has(u) || set.Other(u) != "" || string(u.GetUID()) != uids[k] {
			t.Errorf("%s was not adopted as it was: %v", k, u)
			continue
		}
		for _, e := range u.GetManagedFields() {
			if e.Manager == "fleetbroker" {
				t.Errorf("%s: fields of the manager of before: %s", k, e.FieldsV1.GetRawString())
			}
		}
	}
	// What is no longer applied goes: its fields have no second owner.
	if got := rome.get(key{Kind: kindNamespace, Name: "a"}).GetAnnotations(); got[fleets.AnnotationApplied] != "" || got[set.Applied("Namespace")] == "" || got[v1alpha1.LabelFleet] != fleetC {
		t.Errorf("namespace a: %v", got)
	}
	if u := rome.get(sliceKey("stray")); u == nil || string(u.GetUID()) != uids[sliceKey("stray")] || set.Has(u) {
		t.Errorf("what no contract names: %v", u)
	}
	for range len(deleted) {
		if path := <-deleted; !strings.Contains(path, "vision-serve") { // it is being released
			t.Errorf("deleted while it adopted: %s", path)
		}
	}
	client, err := kubernetes.NewForConfig(access["rome"].Config)
	if err != nil {
		t.Fatal(err)
	}
	parent, err := client.CoreV1().ConfigMaps("fleetbroker").Get(t.Context(), "fleetbroker-"+fleetC, metav1.GetOptions{})
	if err != nil || parent.Annotations["fleetbroker.io/adopted"] != "fleetbroker" {
		t.Errorf("parent of the set: %v, %v", parent, err)
	}
	lease, err := client.CoordinationV1().Leases("fleetbroker").Get(t.Context(), "fleetbroker-"+fleetC, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "daemon-of-"+fleetC {
		t.Errorf("Lease: %v, %v", lease, err)
	}

	// Once adopted, what bears no id is another fleet's.
	late := desiredOf(t, fleetC, train, stray)
	now.root.Store("rome", late.Tree.Root)
	now.Deliver(map[string]Desired{"rome": late})
	envtest.Eventually(t, "what was left to be refused", func(context.Context) bool {
		all := flat(now.Observe())
		o := all["vision-stray-0-aaaa"]
		return strings.Contains(o.Message, "is of a fleet without an id and is not touched")
	})
	if u := rome.get(sliceKey("stray")); set.Has(u) {
		t.Error("what was left was taken later")
	}
	now.lines.Wants(t, "FB1071", "FB1076") // adopted; and before, the daemon of before
}
