package manifests

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A consumer's form of admission changes the version of the mutating policy, or takes it
// away with its line of the kustomization, and nothing else; v1 is what no form says.
func TestPoliciesInEachForm(t *testing.T) {
	files := func(form string) map[string][]byte {
		clusters := fleet()
		clusters["rome"].Spec.Admission = form
		ix := NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision"}))})
		out, err := (&Facts{Clusters: clusters, Fleet: "f3k9q2abu7"}).All(ix)
		if err != nil {
			t.Fatal(err)
		}
		return out.Files
	}
	const dir = "manifests/rome/namespaces/policies"
	none := files("")
	if !maps.EqualFunc(none, files(v1alpha1.AdmissionV1), slices.Equal[[]byte]) {
		t.Error("v1 is not what no form renders")
	}
	for form, version := range map[string]string{v1alpha1.AdmissionV1Beta1: "admissionregistration.k8s.io/v1beta1", v1alpha1.AdmissionWebhook: ""} {
		got := files(form)
		for file, text := range got {
			switch is := string(text); {
			case file == path.Join(dir, mutatingFile):
				objects := map[objectID]map[string]any{}
				if err := readObjects(text, objects); err != nil || len(objects) != map[bool]int{true: 2}[version != ""] {
					t.Errorf("%s: %d objects, %v", form, len(objects), err)
				}
				for id, o := range objects {
					if err := Admissible(o); err != nil || id.apiVersion != version {
						t.Errorf("%s: %s is of %s: %v", form, id, id.apiVersion, err)
					}
				}
				if back := strings.ReplaceAll(is, version+"\n", "admissionregistration.k8s.io/v1\n"); version != "" && back != string(none[file]) {
					t.Errorf("%s: more than the version is other:\n%s", form, is)
				}
			case file == path.Join(dir, "kustomization.yaml") && version == "":
				if strings.Contains(is, mutatingFile) || !strings.Contains(is, "intent-guard.yaml") {
					t.Errorf("%s: %s", form, is)
				}
			case is != string(none[file]):
				t.Errorf("%s: %s is other:\n%s", form, file, is)
			}
		}
		clusters := fleet()
		clusters["rome"].Spec.Admission = form
		c := contract("vision", "train", "aaaa", offload(ns{Name: "vision"}))
		out, err := (&Facts{Clusters: clusters}).Update(NewIndex([]*v1alpha1.Contract{c}), []model.Change{{After: c}})
		if text, known := out.Files[path.Join(dir, mutatingFile)]; err != nil || !known || (text == nil) != (version == "") {
			t.Errorf("%s: %d bytes, %t, %v: what another form rendered is not taken away", form, len(text), known, err)
		}
	}
	a, b := &Facts{Clusters: fleet()}, &Facts{Clusters: fleet()}
	b.Clusters["rome"].Spec.Admission = v1alpha1.AdmissionWebhook
	if a.Same(b) {
		t.Error("facts of two forms pass for the same")
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"} {
		for _, version := range []string{"v1alpha1", "v1beta1", "v1"} {
			err := Admissible(map[string]any{"apiVersion": "admissionregistration.k8s.io/" + version, "kind": kind, "metadata": map[string]any{"name": "fleetbroker-intent-guard"}})
			if want := version == "v1" || version == "v1beta1" && kind == "MutatingAdmissionPolicy"; (err == nil) != want {
				t.Errorf("%s %s: %v", kind, version, err)
			}
		}
	}
}
