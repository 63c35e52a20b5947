package seen_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
