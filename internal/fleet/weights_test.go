package fleet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Each weight that can be written is checked, and one alone is enough: a term that is
// added to scores has its weight in checker.weights too.
func TestWeights_AreAllChecked(t *testing.T) {
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  "
	fields := reflect.TypeFor[v1alpha1.Weights]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		for value, want := range map[string]string{"1": "", "7": "spec.weights." + name + ": 7 is not between 0 and 1"} {
			list := diagnostics(read(t, NewReader(), base().with("fleet.yaml", head+"weights: {"+name+": "+value+"}\n"), nil))
			said := func(text string) bool {
				return slices.ContainsFunc(list, func(d string) bool { return strings.Contains(d, text) })
			}
			if want == "" && said("spec.weights") || !said(want) && want != "" {
				t.Errorf("weights: {%s: %s}: got %q, want %q", name, value, list, want)
			}
		}
	}
}
