package ledger

import (
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Whatever changes, Changed names the intents that did and, where a ledger was
// made from the other, few besides.
func TestChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		contract := func(intent string, n int) *v1alpha1.Contract {
			c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: intent + "-x", Namespace: "vision"}}
			c.Spec.Intent.Name, c.Spec.Provider, c.Spec.Flavor = intent, "p", "f"
			c.Spec.Priority, c.Status.Phase = int32(n), v1alpha1.PhaseActive
			return c
		}
		change := func(l *Ledger) (*Ledger, map[string]bool) {
			var ch Changes
			touched := map[string]bool{}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				name := rapid.SampledFrom(names).Draw(t, "intent")
				if touched[name] {
					continue
				}
				touched[name] = true
				old := l.Contract(name + "-x")
				if old != nil && rapid.Bool().Draw(t, "gone") {
					ch.Contracts = append(ch.Contracts, Change{Before: old})
					continue
				}
				ch.Contracts = append(ch.Contracts, Change{Before: old, After: contract(name, rapid.Int().Draw(t, "n"))})
			}
			return l.With(ch), touched
		}
		first, _ := change(Empty())
		second, touched := change(first)
		got := map[string]bool{}
		Changed(first, second, func(tenant, intent string) {
			if tenant != "vision" || got[intent] {
				t.Fatalf("%s/%s", tenant, intent)
			}
			got[intent] = true
		})
		if !maps.Equal(got, touched) {
			t.Fatalf("says %v, changed %v", got, touched)
		}
		for _, name := range names {
			if !got[name] && !reflect.DeepEqual(first.ByIntent("vision", name), second.ByIntent("vision", name)) {
				t.Fatalf("%s changed", name)
			}
		}
	})
}
