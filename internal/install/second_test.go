package install

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
)

// inCluster are kinds without a namespace.
var inCluster = map[string]bool{
	"ClusterRole": true, "ClusterRoleBinding": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "FlowSchema": true,
	"PriorityLevelConfiguration": true, "PriorityClass": true, "CustomResourceDefinition": true, "Namespace": true,
}

// base renders one of the bases, changed as docs/install.md says for a second fleet where a
// namespace is given.
func base(t *testing.T, name, namespace string) map[string]*resource.Resource {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	err := fs.WalkDir(fleetrepo.Files, "install/"+name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fleetrepo.Files, p)
		if err != nil {
			return err
		}
		if namespace != "" && p == "install/"+name+"/kustomization.yaml" {
			changed := strings.Replace(string(text), "namespace: fleetbroker\n", "namespace: "+namespace+"\ncomponents: [second]\n", 1)
			if changed == string(text) {
				return fmt.Errorf("%s names no namespace", p)
			}
			text = []byte(changed)
		}
		return disk.WriteFile("/"+p, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/install/"+name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*resource.Resource{}
	for _, r := range made.Resources() {
		if inCluster[r.GetKind()] { // kustomize gives those a namespace that it does not know; clusters drop it
			if err := r.SetNamespace(""); err != nil {
				t.Fatal(err)
			}
		}
		out[r.GetKind()+" "+r.GetName()] = r
	}
	return out
}

// The bases of daemon and agent can stand twice in a cluster: what is not in the namespace
// is the same for both, or has a name of its own; and each names its own accounts.
func TestSecondFleet(t *testing.T) {
	for _, name := range []string{"agent", "broker"} {
		first, second := base(t, name, ""), base(t, name, "fleetbroker-second")
		if len(first) != len(second) {
			t.Errorf("%s: %d objects, and %d of a second fleet", name, len(first), len(second))
		}
		for _, key := range slices.Sorted(maps.Keys(second)) {
			r := second[key]
			text := r.MustYaml()
			if !inCluster[r.GetKind()] {
				if r.GetNamespace() != "fleetbroker-second" {
					t.Errorf("%s: %s is in namespace %q", name, key, r.GetNamespace())
				}
			} else if same := first[key]; same != nil && same.MustYaml() != text {
				t.Errorf("%s: %s is another one for each fleet:\n%s\n%s", name, key, same.MustYaml(), text)
			}
			for _, is := range []string{"namespace: fleetbroker\n", "serviceaccount:fleetbroker:", "'fleetbroker']"} {
				if strings.Contains(text, is) {
					t.Errorf("%s: %s of a second fleet names the first one's namespace:\n%s", name, key, text)
				}
			}
		}
		for key, r := range first {
			if text := r.MustYaml(); strings.Contains(text, "fleetbroker-second") {
				t.Errorf("%s: %s of the first fleet is the second one's:\n%s", name, key, text)
			}
		}
	}
}
