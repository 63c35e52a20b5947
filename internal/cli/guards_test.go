package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/newfleet"
)

// The install base makes the policies that are rendered, under their names, and gives
// nobody a right to write them.
func TestTheBaseMakesThePoliciesThatAreRendered(t *testing.T) {
	const base = "../../fleet-repo-template/install/consumer/"
	text, err := os.ReadFile(base + "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rendered := manifests.Policies("rome", nil, "")
	files := make([]string, 0, len(rendered))
	for file := range rendered {
		files = append(files, file)
	}
	slices.Sort(files)
	var want []string
	for _, file := range files {
		want = append(want, uncommented(string(rendered[file])))
	}
	if got := uncommented(string(text)); got != strings.Join(want, "") {
		t.Errorf("policies.yaml is not what is rendered:\n%s", got)
	}
}

// uncommented is YAML without comments at the beginning of lines, and without the
// lines between documents.
func uncommented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && line != "---\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What init lays down has the fleet's id in the names of its policies, wherever the
// install bases have them.
func TestInitNamesPoliciesByFleet(t *testing.T) {
	files, err := newfleet.Files("github")
	if err != nil {
		t.Fatal(err)
	}
	newfleet.Name(files, "f3k9q2abu7")
	named := 0
	for file, text := range files {
		if !strings.HasPrefix(file, "install/") {
			continue
		}
		named += strings.Count(string(text), "fleetbroker-f3k9q2abu7-")
		for _, name := range []string{"intent-guard", "intent-tolerations", "namespace-guard", "no-daemonsets", "virtualnode-guard", "policies"} {
			if strings.Contains(string(text), "fleetbroker-"+name) {
				t.Errorf("%s names fleetbroker-%s, which is no fleet's", file, name)
			}
		}
	}
	if named < 20 {
		t.Errorf("%d names", named)
	}
}

// Two fleets that install in one cluster give no object of the whole cluster one name,
// but for what closes Liqo's own class, and what refers to one refers to its own.
func TestInitNamesWhatIsOfTheWholeCluster(t *testing.T) {
	type object struct {
		Kind     string
		Metadata struct{ Name string }
		RoleRef  struct{ Kind, Name string }
		Spec     struct {
			PolicyName                 string
			PriorityLevelConfiguration struct{ Name string }
		}
	}
	whole := map[string]bool{
		"ClusterRole": true, "ClusterRoleBinding": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
		"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true, "MutatingWebhookConfiguration": true, "PriorityLevelConfiguration": true, "FlowSchema": true,
	}
	seen, refs := map[string]string{}, map[string][]string{}
	for _, id := range []string{"f3k9q2abu7", "a0a0a0a0a0"} {
		files, err := newfleet.Files("github")
		if err != nil {
			t.Fatal(err)
		}
		newfleet.Name(files, id)
		for file, text := range files {
			if !strings.HasPrefix(file, "install/") || !strings.HasSuffix(file, ".yaml") {
				continue
			}
			for _, doc := range strings.Split(string(text), "\n---\n") {
				var o object
				if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if whole[o.Kind] && o.Metadata.Name != "fleetbroker-class-default" {
					name := o.Kind + " " + o.Metadata.Name
					if was := seen[name]; was != "" && was != id {
						t.Errorf("%s: %s is of fleets %s and %s", file, name, was, id)
					}
					seen[name] = id
				}
				if o.RoleRef.Kind == "ClusterRole" && o.RoleRef.Name != "liqo-remote-controlplane" && !strings.HasPrefix(o.RoleRef.Name, "system:") {
					refs[id] = append(refs[id], "ClusterRole "+o.RoleRef.Name)
				}
				if o.Spec.PolicyName != "" && o.Spec.PolicyName != "fleetbroker-class-default" {
					refs[id] = append(refs[id], strings.TrimSuffix(o.Kind, "Binding")+" "+o.Spec.PolicyName)
				}
				if name := o.Spec.PriorityLevelConfiguration.Name; name != "" {
					refs[id] = append(refs[id], "PriorityLevelConfiguration "+name)
				}
			}
		}
		for _, ref := range refs[id] {
			if seen[ref] != id {
				t.Errorf("fleet %s refers to %s, which its bases do not make", id, ref)
			}
		}
		if len(refs[id]) < 12 {
			t.Errorf("only %d references were looked at: %v", len(refs[id]), refs[id])
		}
	}
}
