package drains

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Only what the contract's own slice owns goes, and only once that says that no virtual
// node is made of it any more.
func TestUnpruned(t *testing.T) {
	object := func(name string, id types.UID) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetNamespace("liqo-tenant-paris")
		u.SetName(name)
		u.SetUID(id)
		return u
	}
	slice := func(contract, create string) *unstructured.Unstructured {
		u := object("vision-train-0-aaaa", "of-the-slice")
		u.SetLabels(map[string]string{v1alpha1.LabelContract: contract})
		u.SetAnnotations(map[string]string{manifests.AnnotationCreateVirtualNode: create})
		return u
	}
	node := func(name string, owner types.UID, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u, yes := object(name, types.UID("uid-of-"+name)), true
		if owner != "" {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ResourceSlice", Name: "vision-train-0-aaaa", UID: owner, Controller: &yes}})
		}
		for _, edit := range edits {
			edit(u)
		}
		return u
	}
	terminating := func(u *unstructured.Unstructured) {
		now := metav1.Now()
		u.SetDeletionTimestamp(&now)
	}
	elsewhere := func(u *unstructured.Unstructured) { u.SetNamespace("liqo-tenant-oslo") }
	const contract = "vision-train-0-aaaa"
	goes := node("goes", "of-the-slice")
	ended := slice(contract, "false")
	terminating(ended)
	for name, c := range map[string]struct {
		slice *unstructured.Unstructured
		nodes []*unstructured.Unstructured
		want  []string
	}{
		"Liqo's":                   {slice(contract, "false"), []*unstructured.Unstructured{goes}, []string{"goes"}},
		"not applied yet":          {slice(contract, "true"), []*unstructured.Unstructured{goes}, nil},
		"a slice that says naught": {slice(contract, ""), []*unstructured.Unstructured{goes}, nil},
		"another contract's":       {slice("vision-serve-0-bbbb", "false"), []*unstructured.Unstructured{goes}, nil},
		"no slice":                 {nil, []*unstructured.Unstructured{goes}, nil},
		"the slice goes":           {ended, []*unstructured.Unstructured{goes}, nil},
		"drained already":          {slice(contract, "false"), []*unstructured.Unstructured{node("goes", "of-the-slice", terminating)}, nil},
		"Argo CD's to prune":       {slice(contract, "false"), []*unstructured.Unstructured{node("free", "")}, nil},
		"of a slice before it":     {slice(contract, "false"), []*unstructured.Unstructured{node("old", "of-another")}, nil},
		"in another namespace":     {slice(contract, "false"), []*unstructured.Unstructured{node("far", "of-the-slice", elsewhere)}, nil},
		"one of several":           {slice(contract, "false"), []*unstructured.Unstructured{node("free", ""), goes}, []string{"goes"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, u := range Unpruned(contract, c.slice, c.nodes) {
				got = append(got, u.GetName())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q go, want %q", got, c.want)
			}
		})
	}
}
