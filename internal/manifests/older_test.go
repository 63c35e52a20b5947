package manifests

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A history of an older rendering has the policies of then, with the deliverers of its
// Cluster file and, from 3 on, the fleet in their names; a commit of today has no older form.
func TestOlder(t *testing.T) {
	const fleetID = "f3k9q2abu7"
	clusters := map[string]*v1alpha1.Cluster{"rome": {Spec: v1alpha1.ClusterSpec{Deliverers: []string{"ci@example.org"}, Liqo: v1alpha1.LiqoSpec{Namespace: "peerings"}}}}
	older := func(number int, file string) []byte {
		return (&Facts{Clusters: clusters, Fleet: fleetID, Renderer: number}).Older(file)
	}
	for file, content := range Policies("rome", clusters["rome"], fleetID) {
		was, then := older(1, file), older(2, file)
		guard := strings.HasSuffix(file, "/intent-guard.yaml")
		if bytes.Equal(was, content) || !bytes.HasPrefix(was, []byte(Header)) || bytes.Contains(then, []byte(fleetID)) || guard == bytes.Equal(was, then) {
			t.Errorf("%s: older forms %d and %d bytes", file, len(was), len(then))
		}
		if !bytes.Equal(older(0, file), was) || strings.HasSuffix(file, "/namespace-guard.yaml") != bytes.Contains(then, []byte("'ci@example.org'")) {
			t.Errorf("%s: %s", file, then)
		}
		if older(Renderer, file) != nil || older(1, strings.TrimPrefix(file, Root+"/")) != nil {
			t.Errorf("%s has an older form where it has none", file)
		}
		if guard && !bytes.Contains(content, []byte("'system:serviceaccount:peerings:liqo-controller-manager'")) {
			t.Error("Liqo's account is not that of its namespace")
		}
		others := map[string]int{"virtualnode-guard.yaml": 4, "intent-guard.yaml": 5, "intent-tolerations.yaml": 5} // the last rendering with another form
		for number := 3; number < Renderer; number++ {
			text := older(number, file)
			if last := others[path.Base(file)]; (text != nil) != (number <= last) {
				t.Errorf("%s: %d bytes in rendering %d", file, len(text), number)
			} else if text != nil && (bytes.Equal(text, content) || !bytes.Contains(text, []byte("name: fleetbroker-"+fleetID+"-"))) {
				t.Errorf("%s in rendering %d:\n%s", file, number, text)
			}
		}
	}
}

// Renderings 1 and 2 cut the names of intents with four bytes of hash, and this
// program renders what histories have of then, and of 3 to 5: all golden files of before.
// (No contract named nodes before 5, or had matchExpressions before 6.)
func TestOlder_NamesOfIntents(t *testing.T) {
	for _, number := range []int{1, 2, 3, 4, 5} {
		sums, err := os.ReadFile(fmt.Sprintf("testdata/renderer-%d.sum", number))
		if err != nil {
			t.Fatal(err)
		}
		for name, tc := range goldens() {
			if number < 5 && tc.contracts[0].Spec.Nodes != nil || strings.HasPrefix(name, "pod-expressions") {
				continue
			}
			out, err := (&Facts{Clusters: tc.fleet(), Renderer: number}).All(NewIndex(tc.contracts))
			if err != nil {
				t.Fatal(err)
			}
			archive := archived(out, outsidePolicies)
			if line := fmt.Sprintf("%s %x\n", name, sha256.Sum256(txtar.Format(archive))); !strings.Contains(string(sums), line) {
				t.Errorf("%s is not what rendering %d gave", name, number)
			}
		}
	}
	if (&Facts{Renderer: 2}).Same(&Facts{}) {
		t.Error("renderings 2 and 3 are taken for the same")
	}
}

// Two tenants whose names begin alike, with intents that were searched for until
// the four bytes of hash of before were equal: neither's pods may use the other's
// virtual nodes.
func TestNamesMadeToCollide(t *testing.T) {
	start := strings.Repeat("team-", 11)
	nodes := func(number int) (values []string) {
		a, b := contract(start+"a", "serve-62350", "aaaa", offload(ns{Name: "a"})), contract(start+"b", "serve-5675", "bbbb", offload(ns{Name: "b"}))
		out, err := (&Facts{Clusters: fleet(), Renderer: number}).All(NewIndex([]*v1alpha1.Contract{a, b}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*v1alpha1.Contract{a, b} {
			for _, field := range []string{"value: ", v1alpha1.LabelIntent + ": "} {
				_, rest, _ := strings.Cut(string(out.Files[VirtualNodeFiles(c)[0]]), field)
				value, _, _ := strings.Cut(rest, "\n")
				values = append(values, value)
			}
			if text := string(out.Files[NamespaceFile("rome", c.Metadata.Namespace[len(start):])]); !strings.Contains(text, v1alpha1.AnnotationIntents+": "+values[len(values)-1]+"\n") {
				t.Errorf("rendering %d: the namespace does not list %s:\n%s", number, values[len(values)-1], text)
			}
		}
		return values
	}
	if was := nodes(2); was[0] != was[2] || was[0] == "" {
		t.Fatalf("the names do not collide where they did: %q", was)
	}
	is := nodes(0)
	if is[0] == is[2] || is[0] != is[1] || is[2] != is[3] {
		t.Errorf("values of two tenants' intents: %q", is)
	}
	for _, value := range is {
		if len(validation.IsValidLabelValue(value)) > 0 || len(value) != 63 {
			t.Errorf("%s is no label's value of 63 characters", value)
		}
	}
}

// Two fleets in one consumer have no name in common, whatever kind has it, and what
// names a policy names its own; names without a fleet are as they were.
func TestPoliciesAreNamedByFleet(t *testing.T) {
	owner := map[string]string{}
	for _, fleet := range []string{"", "f3k9q2abu7", "a000000000"} {
		for file, content := range Policies("rome", nil, fleet) {
			objects := map[objectID]map[string]any{}
			if err := readObjects(content, objects); err != nil || len(objects) != 2 {
				t.Fatalf("%s: %d objects, %v", file, len(objects), err)
			}
			for id, o := range objects {
				want := policyPrefix + fleet + "-" + strings.TrimSuffix(path.Base(file), ".yaml")
				if want = strings.Replace(want, "--", "-", 1); id.name != want {
					t.Errorf("%s is called %s, want %s", file, id.name, want)
				}
				if of, taken := owner[id.String()]; taken {
					t.Errorf("%s is of fleets %q and %q", id, of, fleet)
				}
				owner[id.String()] = fleet
				if spec, _ := o["spec"].(map[string]any); strings.HasSuffix(id.kind, "Binding") && spec["policyName"] != id.name {
					t.Errorf("%s binds %v", id, spec["policyName"])
				}
				if err := Admissible(o); err != nil || PolicyName(id.name) == "" {
					t.Errorf("%s: %v", id, err)
				}
			}
			if fleet != "" && bytes.Contains(content, []byte(policyPrefix+strings.TrimSuffix(path.Base(file), ".yaml"))) {
				t.Errorf("%s of %s names the policy of no fleet", file, fleet)
			}
		}
	}
	for _, name := range []string{"fleetbroker-daemon", "fleetbroker-f3k9q2abu7-daemon", "fleetbroker-x-intent-guard", "intent-guard"} {
		if PolicyName(name) != "" {
			t.Errorf("%s is taken for a policy of ours", name)
		}
	}
}

// Every object of a fleet with an id bears it, but for Liqo's namespaces, which fleets
// share, and policies, which have it in their names; rendering 3 named no fleet, and a
// fleet without an id renders what it did.
func TestObjectsBearTheFleet(t *testing.T) {
	const fleetID = "f3k9q2abu7"
	contracts := []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", Create: true, Quota: true}))}
	of := func(facts *Facts) map[objectID]map[string]any {
		facts.Clusters = fleet()
		out, err := facts.All(NewIndex(contracts))
		if err != nil {
			t.Fatal(err)
		}
		objects := map[objectID]map[string]any{}
		for name, text := range out.Files {
			if strings.HasSuffix(name, "/kustomization.yaml") {
				continue
			}
			if err := readObjects(text, objects); err != nil {
				t.Fatal(err)
			}
		}
		return objects
	}
	borne := 0
	for id, o := range of(&Facts{Fleet: fleetID}) {
		field, want := "labels", any(fleetID)
		switch {
		case id.kind == "Namespace" && strings.HasPrefix(id.name, "liqo-tenant-"), strings.Contains(id.kind, "AdmissionPolicy"):
			want = nil
		case id.kind == "Namespace":
			field = "annotations"
		}
		if got := metadata(o, field)[v1alpha1.LabelFleet]; got != want {
			t.Errorf("%s bears fleet %v; want %v", id, got, want)
		} else if got != nil {
			borne++
		}
		if err := Admissible(o); err != nil {
			t.Error(err)
		}
		if spec, _ := o["spec"].(map[string]any); id.kind == "VirtualNode" && spec["labels"].(map[string]any)[v1alpha1.LabelFleet] != fleetID {
			t.Errorf("the Node of %s does not bear the fleet: %v", id, spec["labels"])
		}
	}
	if borne != 5 {
		t.Errorf("%d objects bear the fleet; want slice, virtual node, namespace, offloading and quota", borne)
	}
	for _, facts := range []*Facts{{Fleet: fleetID, Renderer: 3}, {}} {
		for id, o := range of(facts) {
			if metadata(o, "labels")[v1alpha1.LabelFleet] != nil || metadata(o, "annotations")[v1alpha1.LabelFleet] != nil {
				t.Errorf("rendering %d of fleet %q: %s bears a fleet", facts.Renderer, facts.Fleet, id)
			}
		}
	}
}
