package seen_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

// A condition may be as long as a cluster likes: what is carried on of it is not.
func TestWordsOfConditionsAreShort(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("\xff\u202e", 1<<19)} {
		slice := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Resources", "status": "Denied", "reason": long, "message": long}}}}}
		c := seen.Condition(slice, "Resources")
		_, denied := seen.Granted(slice)
		for name, text := range map[string]string{"Said": seen.Said(c), "Message": seen.Message(c), "Granted": denied} {
			if len(text) == 0 || len(text) > 1000 || !utf8.ValidString(text) {
				t.Errorf("%s: %d bytes, valid %t", name, len(text), utf8.ValidString(text))
			}
		}
	}
	c := map[string]any{"reason": "Denied", "message": "no room", "other": 7}
	if got := seen.Said(c); got != "Denied: no room" {
		t.Errorf("a usual one: %q", got)
	}
	if got := seen.Message(map[string]any{"message": map[string]any{}}); got != "" {
		t.Errorf("no text: %q", got)
	}
}

// A provider writes what it grants into its consumer's slice: names without end would make
// what the consumer's agent reports too large for the broker, for all contracts there.
func TestResourcesAreBounded(t *testing.T) {
	list := map[string]any{"cpu": "4", "nvidia.com/gpu": "2", strings.Repeat("x", 1<<20): "1"}
	for i := range 10_000 {
		list[fmt.Sprintf("z%s.example.org/%04d", strings.Repeat("y", 60), i)] = "1"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"resources": list}}}
	got := seen.Resources(u, "status", "resources")
	bytes := 0
	for name := range got {
		bytes += len(name)
	}
	if len(got) > 64 || bytes > 64*317 || got["cpu"].Int64() != 4000 || got["nvidia.com/gpu"].Int64() != 2 {
		t.Errorf("%d resources of %d bytes, cpu %v, GPUs %v", len(got), bytes, got["cpu"], got["nvidia.com/gpu"])
	}
}

// Of resources that a contract did not ask for few are reported, and all of its own.
func TestOf(t *testing.T) {
	asked, has := v1alpha1.Resources{"cpu": v1alpha1.AmountOf(1), "z": v1alpha1.AmountOf(1)}, v1alpha1.Resources{"cpu": v1alpha1.AmountOf(1), "z": v1alpha1.AmountOf(1)}
	for i := range 60 {
		has[fmt.Sprint("x", i)] = v1alpha1.AmountOf(1)
	}
	if got := seen.Of(has, asked); len(got) != 10 || got["z"].IsZero() || got["cpu"].IsZero() || seen.Of(nil, asked) != nil {
		t.Errorf("got %v", got)
	}
}
