package manifests

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Flux and Argo CD prune nothing once the directory that they follow is gone:
// an empty one stays, and kustomize builds nothing of it.
func TestEmptyDirectoriesStayWhereTheyAreFollowed(t *testing.T) {
	for delivery, stay := range map[string]bool{"": false, "direct": false, "agent": false, "flux": true, "argocd": true} {
		clusters := fleet()
		clusters["rome"].Spec.Delivery = delivery
		last := contract("vision", "train", "aaaa", offload(v1alpha1.OffloadNamespace{Name: "vision"}))
		out, err := Update(NewIndex(nil), clusters, []model.Change{{Before: last}})
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"", "/vision", "/namespaces"} {
			file := "manifests/rome" + dir + "/kustomization.yaml"
			text, touched := out.Files[file]
			if !touched || (text != nil) != stay {
				t.Errorf("delivery %q: %s is\n%s", delivery, file, text)
			}
			if text == nil {
				continue
			}
			// As Flux does: read, and written again without what is empty.
			var k types.Kustomization
			if err := yaml.UnmarshalStrict(text, &k); err != nil {
				t.Fatal(err)
			}
			again, err := yaml.Marshal(k)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range [][]byte{text, again} {
				built, err := kustomize.Build(map[string][]byte{"kustomization.yaml": form}, "", kustomize.OfOverlay)
				if err != nil || strings.TrimSpace(string(built)) != "" {
					t.Errorf("delivery %q: %s builds %q, %v", delivery, file, built, err)
				}
			}
		}
	}
}

// Who applies with kustomize must write what the daemon writes: else the two
// fight over the difference when delivery changes hands. (kustomize adds empty
// lines to folded text whose lines are indented differently.)
func TestKustomizeChangesNothing(t *testing.T) {
	out, err := All(NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(v1alpha1.OffloadNamespace{Name: "vision", Quota: true}))}), fleet())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, text := range out.Files {
		if strings.HasSuffix(name, kustomizationFile) {
			continue
		}
		built, err := kustomize.Build(map[string][]byte{"kustomization.yaml": []byte("resources: [it.yaml]\n"), "it.yaml": text}, "", kustomize.OfOverlay)
		if err != nil {
			t.Fatal(err)
		}
		want, got := objects(t, text), objects(t, built)
		for key, o := range want {
			compared++
			if !reflect.DeepEqual(o, got[key]) {
				t.Errorf("%s: %s\nis   %q\nwith kustomize %q", name, key, o, got[key])
			}
		}
	}
	if compared < 15 {
		t.Errorf("%d objects compared", compared)
	}
}

// objects decodes a stream, by kind and name.
func objects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[u.GetKind()+" "+u.GetName()] = u.Object
	}
}
