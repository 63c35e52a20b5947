package delivery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// held is a contract of rome's with paris, of 4 CPU for namespace vision.
func held(name string, edits ...func(*v1alpha1.Contract)) *v1alpha1.Contract {
	c := &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: "train"}, Consumer: "rome", Provider: "paris", Slice: name, Stage: v1alpha1.StagePeer,
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(4000), v1alpha1.Memory: v1alpha1.AmountOf(8 << 30)},
			Offload:   &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision", Create: true, Quota: true}}},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// onLedger is what rome shall have with the ledger's tree as the daemon writes
// it, and then edited: nil content takes a file out.
func onLedger(t interface{ Fatal(...any) }, edits map[string]string, contracts ...*v1alpha1.Contract) Desired {
	out, err := (*manifests.Facts)(nil).Consumer(manifests.NewIndex(contracts), "rome")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for file, text := range out.Files {
		files[strings.TrimPrefix(file, "manifests/rome/")] = text
	}
	for file, text := range edits {
		if files[file] = []byte(text); text == "" {
			delete(files, file)
		}
	}
	return Desired{
		Cluster: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}},
		Tree:    tree.NewMemory().Build(files), Contracts: contracts,
	}
}

// What an attacker writes into the ledger's tree reaches no cluster: not a policy
// that injects into every pod, not a label that opens kube-system, not a slice of
// another size, and nothing goes because its file does.
func TestOnlyWhatIsDerivedIsDelivered(t *testing.T) {
	honest := onLedger(t, nil, held("vision-train-0-aaaa"))
	good := desiredObjects{own: fleets.Set{Namespace: "a"}}
	if _, err := good.load("rome", honest); err != nil || len(good.differs) > 0 || len(good.objects) < 12 {
		t.Fatalf("an honest ledger: %v, %v, %d objects", err, good.differs, len(good.objects))
	}
	text, err := honest.Tree.ReadFile(shardOf(t, honest, "-slice.yaml"), 0)
	if err != nil {
		t.Fatal(err)
	}
	sliceFile := shardOf(t, honest, "-slice.yaml")
	larger := strings.Replace(string(text), `cpu: "4"`, `cpu: "4000"`, 1)
	if larger == string(text) {
		t.Fatalf("the slice is not as expected: %s", text)
	}
	for what, tc := range map[string]struct{ file, text, want string }{
		"a policy that injects": {"namespaces/policies/inject.yaml", `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: fleetbroker-inject, labels: {app.kubernetes.io/managed-by: fleetbroker}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{hostNetwork: true}}"}}]
`, "nothing renders to it"},
		"an open kube-system": {"namespaces/kube-system.yaml", `apiVersion: v1
kind: Namespace
metadata: {name: kube-system, labels: {pod-security.kubernetes.io/enforce: privileged}}
`, "nothing renders to it"},
		"a larger slice":         {sliceFile, larger, "differs from what its contracts"},
		"a slice that is gone":   {sliceFile, "", "is missing"},
		"a guard that is gone":   {"namespaces/policies/intent-guard.yaml", "", "is missing"},
		"a guard without effect": {"namespaces/policies/intent-guard.yaml", "# nothing\n", "differs from what its contracts"},
		"a foreign listing":      {"extra/kustomization.yaml", "resources: [https://example.org/evil]\n", "nothing renders to it"},
	} {
		t.Run(what, func(t *testing.T) {
			want := onLedger(t, map[string]string{tc.file: tc.text}, held("vision-train-0-aaaa"))
			for from, d := range map[string]*desiredObjects{"a start": {own: fleets.Set{Namespace: "a"}}, "the honest ledger": {own: fleets.Set{Namespace: "a"}}} {
				if from != "a start" {
					if _, err := d.load("rome", honest); err != nil {
						t.Fatal(err)
					}
				}
				changed, err := d.load("rome", want)
				if err != nil {
					t.Fatal(err)
				}
				if from != "a start" && len(changed) > 0 {
					t.Errorf("from %s: %v is looked at", from, changed)
				}
				if !maps.Equal(hashes(*d), hashes(good)) {
					t.Errorf("from %s: %v is delivered, want %v", from, hashes(*d), hashes(good))
				}
				if len(d.differs) != 1 || !strings.Contains(d.differs[0], "manifests/rome/"+tc.file) || !strings.Contains(d.differs[0], tc.want) {
					t.Errorf("from %s it is said: %q", from, d.differs)
				}
				if of := d.byContract["vision-train-0-aaaa"]; (of != "") != (tc.file == sliceFile) {
					t.Errorf("the contract says %q", of)
				}
				if _, err := d.load("rome", honest); err != nil || len(d.differs) > 0 {
					t.Errorf("put right, it is said: %q, %v", d.differs, err)
				}
			}
		})
	}
}

// shardOf is the one file of a tree that ends so.
func shardOf(t *testing.T, want Desired, end string) string {
	t.Helper()
	found := ""
	err := want.Tree.Walk(func(name string, e tree.Entry) error {
		if strings.HasSuffix(name, end) {
			found = name
		}
		return nil
	})
	if err != nil || found == "" {
		t.Fatal(err, end)
	}
	return found
}

// Manifests of an older rendering stay as they are in the cluster until the
// ledger has those of this one; where the bytes are the same nothing waits.
func TestAnOlderRenderingIsLeftAlone(t *testing.T) {
	older := map[string]string{"namespaces/policies/intent-guard.yaml": "# as it was once\n"}
	for what, tc := range map[string]struct {
		edits map[string]string
		wait  string
		waits bool
	}{
		"same bytes":        {nil, "older", false},
		"others":            {older, "older", true},
		"others: tampering": {older, "", false},
	} {
		want := onLedger(t, tc.edits, held("vision-train-0-aaaa"))
		want.Wait, want.Mode = tc.wait, Agent
		options := Options{}
		options.defaults()
		w := newWorker("rome", &options, func() {})
		w.set(want)
		if _, err := w.load(&conn{}); err != nil {
			t.Fatal(err)
		}
		if w.older != tc.waits || strings.HasPrefix(w.problems.manifests, "older: nothing is touched") != tc.waits {
			t.Errorf("%s: waits %t, says %q", what, w.older, w.problems.manifests)
		}
		if (len(w.refused) > 0) != (tc.edits != nil && !tc.waits) {
			t.Errorf("%s: refuses %q", what, w.refused)
		}
		d := New(Options{})
		d.Deliver(map[string]Desired{"rome": want})
		m, _, err := d.Manifests("rome")
		if (err != nil) != tc.waits {
			t.Errorf("%s: the agent is given %d files, %v", what, len(m.Files), err)
		}
		if _, err := d.Root(t.Context(), "rome"); (err != nil) != tc.waits {
			t.Errorf("%s: the agent may act: %v", what, err)
		}
		if text := m.Files["namespaces/policies/intent-guard.yaml"]; err == nil && (strings.Contains(text, "as it was once") || text == "") {
			t.Errorf("%s: the agent is given %q", what, text)
		}
		d.Close()
	}
}

// Following contracts and ledgers from change to change gives what reading both
// at once gives, and names exactly the units that changed.
func TestDerivedFollows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		followed := desiredObjects{own: fleets.Set{Namespace: "a"}}
		before := map[key]string{}
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			var contracts []*v1alpha1.Contract
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 5, rapid.ID).Draw(rt, "contracts") {
				contracts = append(contracts, held(fmt.Sprintf("vision-train-%d-aaaa", n), func(c *v1alpha1.Contract) {
					c.Spec.Resources[v1alpha1.CPU] = v1alpha1.AmountOf(rapid.SampledFrom([]int64{1000, 2000}).Draw(rt, "cpu"))
					c.Status.Phase = rapid.SampledFrom([]v1alpha1.Phase{v1alpha1.PhaseReserved, v1alpha1.PhaseActive, v1alpha1.PhaseReleasing}).Draw(rt, "phase")
					c.Spec.Provider = rapid.SampledFrom([]string{"paris", "milan"}).Draw(rt, "provider")
				}))
			}
			edits := map[string]string{}
			if rapid.Bool().Draw(rt, "tampered") {
				edits["namespaces/vision.yaml"] = "# gone\n"
			}
			want := onLedger(rt, edits, contracts...)
			want.Facts = rapid.SampledFrom([]*manifests.Facts{nil, {Clusters: map[string]*v1alpha1.Cluster{"milan": {Spec: v1alpha1.ClusterSpec{Liqo: v1alpha1.LiqoSpec{ClusterID: "mi"}}}}}}).Draw(rt, "facts")
			changed, err := followed.load("rome", want)
			if err != nil {
				rt.Fatal(err)
			}
			fresh := desiredObjects{own: fleets.Set{Namespace: "a"}}
			if _, err := fresh.load("rome", want); err != nil {
				rt.Fatal(err)
			}
			after := hashes(followed)
			if !maps.Equal(after, hashes(fresh)) {
				rt.Fatalf("got %v, want %v", after, hashes(fresh))
			}
			if !slices.Equal(followed.differs, fresh.differs) {
				rt.Fatalf("says %q, want %q", followed.differs, fresh.differs)
			}
			for k := range union(before, after) {
				if before[k] != after[k] && !changed[k.unit()] {
					rt.Fatalf("%s changed and was not named; named: %v", k, changed)
				}
			}
			before = after
		}
	})
}
