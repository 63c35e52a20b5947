package delivery

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func decode(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(raw, &u.Object) // whole numbers as int64, as a client reads them
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// What Flux said last stands until it has something else to say: while it tries
// again, and while it waits for what is being tried again.
func TestTroubleStaysWhileFluxTriesAgain(t *testing.T) {
	g := newGitops(Flux, &conn{}, func() {})
	tell := func(condition string) string {
		k := decode(t, "kind: Kustomization\nmetadata: {name: all, namespace: flux-system, uid: one}\nstatus: {conditions: [{type: Ready, "+condition+"}]}\n")[0]
		g.settle(k)
		message, _ := g.ready(k)["message"].(string)
		return message
	}
	for _, step := range []struct{ condition, want string }{
		{`status: "False", reason: DependencyNotReady, message: dependency 'flux-system/basis' is not ready`, ""},
		{`status: "False", reason: ReconciliationFailed, message: forbidden`, "forbidden"},
		{`status: Unknown, reason: Progressing, message: Reconciliation in progress`, "forbidden"},
		{`status: "False", reason: DependencyNotReady, message: dependency 'flux-system/basis' is not ready`, "forbidden"},
		{`status: "False", reason: DependencyNotReady, message: dependency 'flux-system/basis' not found`, "dependency 'flux-system/basis' not found"},
		{`status: "True", reason: ReconciliationSucceeded, message: ""`, ""},
	} {
		if got := tell(step.condition); got != step.want {
			t.Errorf("after %s: %q, want %q", step.condition, got, step.want)
		}
	}
	g.forget(cache.DeletedFinalStateUnknown{Obj: decode(t, "kind: Kustomization\nmetadata: {name: all, namespace: flux-system}\n")[0]})
	if len(g.settled) != 0 {
		t.Errorf("an object that is gone is remembered: %v", g.settled)
	}
}

// What is remembered is of an object's name: a cluster may tell another uid, and another kind,
// with each event of it.
func TestSettled_IsByName(t *testing.T) {
	g := newGitops(Flux, &conn{}, func() {})
	var was *unstructured.Unstructured
	for i := range 100 {
		u := decode(t, fmt.Sprintf("kind: K%d\nmetadata: {name: all, namespace: flux-system, uid: u%d}\nstatus: {conditions: [{type: Ready, status: 'True'}]}\n", i/50, i))[0]
		g.renamed(was, u)
		g.settle(u)
		was = u
	}
	if len(g.settled) != 1 {
		t.Errorf("%d conditions of one object are remembered", len(g.settled))
	}
}
