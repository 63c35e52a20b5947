package delivery

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is only watched is news when it tells of trouble, and is kept small.
func TestExtraNews(t *testing.T) {
	pod := func(reason string) *unstructured.Unstructured {
		u := thing(kindPod, status(map[string]any{"phase": "Pending", "reason": reason, "hostIP": "10.0.0.1"}))
		u.Object["spec"] = map[string]any{"nodeName": "slice-0", "containers": []any{map[string]any{"name": "main"}}}
		return trimPod(u)
	}
	foreign := func(status_ string) *unstructured.Unstructured {
		return thing(kindForeign, status(map[string]any{"conditions": []any{
			map[string]any{"type": "APIServerStatus", "status": status_, "reason": "APIServerNotReady", "message": "it is not ready"},
		}}))
	}
	for name, c := range map[string]struct {
		kind   kind
		object *unstructured.Unstructured
		news   bool
	}{
		"a pod that is refused":       {kindPod, pod("OffloadingBackOff"), true},
		"a pod that waits":            {kindPod, pod(""), false},
		"a provider that answers":     {kindForeign, foreign("Established"), false},
		"a provider that does not":    {kindForeign, foreign("Error"), true},
		"a provider not tried so far": {kindForeign, thing(kindForeign), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := extraNews(c.kind, c.object); (got != "") != c.news {
				t.Errorf("it says %q", got)
			}
		})
	}
	if _, more, _ := unstructured.NestedSlice(pod("").Object, "spec", "containers"); more || nodeOf(pod("")) != "slice-0" {
		t.Errorf("kept is %v", pod("").Object)
	}
}
