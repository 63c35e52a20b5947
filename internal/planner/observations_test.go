package planner

import (
	"fmt"
	"maps"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"pgregory.net/rapid"
)

// Observations are a map that shares what does not change: they hold what a map
// would, leave the one before as it was, and name exactly what differs.
func TestObservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o draft.Observations
		model := map[string]v1alpha1.Observation{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			was, before := o, maps.Clone(model)
			said := map[string]v1alpha1.Observation{}
			for range rapid.IntRange(0, 4).Draw(t, "said") {
				said[fmt.Sprint("c", rapid.IntRange(0, 5).Draw(t, "name"))] = v1alpha1.Observation{ProviderSeen: rapid.Bool().Draw(t, "seen")}
			}
			var gone []string
			if name := fmt.Sprint("c", rapid.IntRange(0, 5).Draw(t, "gone")); rapid.Bool().Draw(t, "goes") {
				gone = append(gone, name)
			}
			o = o.With(said, gone...)
			maps.Copy(model, said)
			for _, name := range gone {
				delete(model, name)
			}
			differ := map[string]bool{}
			for _, name := range o.Differs(was) {
				differ[name] = true
			}
			for i := range 6 {
				name := fmt.Sprint("c", i)
				if !draft.SameObservation(o.Of(name), model[name]) || !draft.SameObservation(was.Of(name), before[name]) {
					t.Fatalf("%s: %+v, want %+v; before %+v, want %+v", name, o.Of(name), model[name], was.Of(name), before[name])
				}
				now, is := model[name]
				old, had := before[name]
				if changed := is != had || !draft.SameObservation(now, old); changed != differ[name] {
					t.Fatalf("%s differs: %v, said %v", name, changed, differ[name])
				}
			}
		}
	})
}
