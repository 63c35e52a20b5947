package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/applier"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

// FuzzCluster: whatever an API server answers for objects of Liqo, Flux and Argo
// CD, it is no panic; what is granted is never below nothing, and what was denied
// is not granted.
func FuzzCluster(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"s","uid":"u","generation":2},"status":{"conditions":[{"type":"Resources","status":"Accepted","lastTransitionTime":"2026-11-20T12:00:01Z"},{"type":"Resources","status":"Denied","message":"\u001b[2J"}],"resources":{"cpu":"16","nvidia.com/gpu":"4"},"offloadingPhase":"Ready","observedGeneration":2,"allocatable":{"cpu":"1e2147483647","memory":"-1Gi"}}}`,
		`{"metadata":null,"status":{"conditions":{}}}`, `{"status":{"conditions":[null,1,"x",{"type":1,"status":true,"lastTransitionTime":7}]}}`, `{"status":[]}`, `{"status":{"resources":{"cpu":1,"memory":null,"a":{},"nvidia.com/gpu":"99999999999999999999"}}}`,
		`{"metadata":{"name":"all","namespace":"flux-system"},"spec":{"path":"./manifests/rome/vision","suspend":"yes","sourceRef":[],"dependsOn":[null,{"name":1}]},"status":{"lastAppliedRevision":7,"conditions":[{"type":"Ready","status":"False","reason":3,"message":["x"]}]}}`,
		`{"metadata":{"name":"app"},"spec":{"source":{"path":7},"sources":[{"path":"manifests/rome/vision"},null]},"status":{"sync":{"status":"Synced","revision":{}},"operationState":{"phase":"Failed","message":null},"conditions":[{"type":"SyncError","message":"x"}]}}`,
		`{"metadata":{"deletionTimestamp":"never","ownerReferences":[null,{"kind":1}],"annotations":{"a":1},"labels":[]},"spec":{"nodeName":[],"containers":{}}}`,
		`{}`, `[]`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if json.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		for k := range kinds {
			u := func() *unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{}}
				if err := json.Unmarshal(text, &u.Object); err != nil {
					t.Fatal(err)
				}
				u.SetKind(string(k))
				return u
			}
			if a, b := summary(k, u()), summary(k, u()); a != b {
				t.Fatalf("%s: one object is news of itself: %q, %q", k, a, b)
			}
			_, _ = foreignTrouble(u()), extraNews(k, u())
			trimPod(u())
			for _, blocked := range []bool{false, true} {
				decideNamespace(key{Kind: k, Name: "vision"}, nil, u(), !blocked, blocked)
				decideObject(key{Kind: k, Name: "s"}, nil, u(), !blocked, blocked)
			}
		}
		slice := &unstructured.Unstructured{Object: object}
		resources, denied := seen.Granted(slice)
		if resources != nil && denied != "" {
			t.Fatalf("granted %v and denied %q", resources, denied)
		}
		for _, path := range [][]string{{"status", "resources"}, {"status", "allocatable"}} {
			for name, amount := range seen.Resources(slice, path...) {
				if amount.Less(v1alpha1.Amount{}) {
					t.Fatalf("%s %s of %v", amount.Canonical(name), name, path)
				}
			}
		}
		known := func(commit string) bool { return commit == "aaaa" }
		list := []*unstructured.Unstructured{slice, slice}
		for _, v := range []applier.Verdict{applier.Flux{Kustomizations: list, Sources: list, Ready: func(u *unstructured.Unstructured) map[string]any { return seen.Condition(u, "Ready") }}.Verdict("rome", "vision", known), applier.ArgoCD("rome", "vision", list, known)} {
			if len(v.Trouble) > 2*len(text)+1000 {
				t.Fatalf("%d bytes of trouble of %d bytes", len(v.Trouble), len(text))
			}
		}
		g := &gitops{}
		g.forget(cache.DeletedFinalStateUnknown{Obj: slice})
		_, _ = trimApplier(slice)
	})
}

// FuzzManifests: whatever a file of the ledger's manifests holds, no object is
// made of it that is of no kind that is delivered.
func FuzzManifests(f *testing.F) {
	for _, text := range []string{
		"apiVersion: authentication.liqo.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: s, namespace: liqo-tenant-paris}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: vision}\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]\n", "kind: ClusterRole\n", "a: &a [*a]", "---\n---\n", "\x00", "{}", "[]",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: vision, labels: {pod-security.kubernetes.io/enforce: privileged}}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, _ := parseObjects("x.yaml", text, fleets.Set{Namespace: "x"})
		for _, o := range list {
			if _, ok := kinds[o.key.Kind]; !ok || o.key.Kind == kindNode || o.u.GetKind() != string(o.key.Kind) {
				t.Fatalf("a %s is delivered", o.u.GetKind())
			}
			for name := range o.u.GetLabels() {
				if strings.HasPrefix(name, "pod-security.") {
					t.Fatalf("%s has label %s", o.key, name)
				}
			}
		}
	})
}
