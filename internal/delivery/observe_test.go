package delivery

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

func status(fields map[string]any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["status"] = fields }
}

func conditions(list ...map[string]any) map[string]any {
	out := []any{}
	for _, c := range list {
		out = append(out, c)
	}
	return map[string]any{"conditions": out, "resources": map[string]any{"cpu": "16", "nvidia.com/gpu": "4"}}
}

func TestGranted(t *testing.T) {
	entry := func(kind, status, message, at string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "Why", "message": message, "lastTransitionTime": at}
	}
	cases := map[string]struct {
		reason  string
		status  map[string]any
		granted bool
		denied  string
	}{
		"new":         {"not replicated yet", map[string]any{}, false, ""},
		"custom":      {"a class that nobody has answered", conditions(entry("Authentication", "Accepted", "", "1")), false, ""},
		"accepted":    {"what was granted", conditions(entry("Authentication", "Accepted", "", "1"), entry("Resources", "Accepted", "", "1")), true, ""},
		"denied":      {"the provider's words", conditions(entry("Resources", "Denied", "only 2 free", "1")), false, "only 2 free"},
		"denied mute": {"its reason where it has no words", conditions(entry("Resources", "Denied", "", "1")), false, "Why"},
		"twice":       {"Liqo writes conditions twice: the newest holds", conditions(entry("Resources", "Accepted", "", "2026-11-20T12:00:01Z"), entry("Resources", "Denied", "no", "2026-11-20T12:00:00Z")), true, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resources, denied := seen.Granted(thing(kindSlice, status(tc.status)))
			if (resources != nil) != tc.granted || denied != tc.denied {
				t.Errorf("%s: got %v, %q", tc.reason, resources, denied)
			}
			if tc.granted && resources["nvidia.com/gpu"] != v1alpha1.AmountOf(4) {
				t.Errorf("%s: got %v", tc.reason, resources)
			}
		})
	}
}

// Heartbeats are no news; what an observation takes is.
func TestSummary(t *testing.T) {
	node := func(ready, heartbeat, gpus string) *unstructured.Unstructured {
		return thing(kindNode, status(map[string]any{
			"conditions":  []any{map[string]any{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}},
			"allocatable": map[string]any{"nvidia.com/gpu": gpus},
		}))
	}
	base := summary(kindNode, node("True", "1", "4"))
	if got := summary(kindNode, node("True", "2", "4")); got != base {
		t.Errorf("a heartbeat is news: %s, %s", base, got)
	}
	for name, other := range map[string]*unstructured.Unstructured{"ready": node("False", "1", "4"), "allocatable": node("True", "1", "3")} {
		if summary(kindNode, other) == base {
			t.Errorf("%s is no news", name)
		}
	}
	slice := thing(kindSlice, status(conditions(map[string]any{"type": "Resources", "status": "Accepted"})))
	if summary(kindSlice, slice) == summary(kindSlice, thing(kindSlice)) {
		t.Error("a grant is no news")
	}
}
