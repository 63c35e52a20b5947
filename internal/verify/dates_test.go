package verify

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Dates decide nothing: a branch that was cut before many commits of any date is
// merged as what it is, and brings nothing back that stood at its root.
func TestForgedDatesBringNothingBack(t *testing.T) {
	for name, dated := range map[string]time.Time{"in order": {}, "1970": time.Unix(0, 0), "2100": noon.AddDate(74, 0, 0)} {
		t.Run(name, func(t *testing.T) {
			h, base := newHistory(t)
			// What stands was accepted, though no authorised account has signed it.
			old := h.commit("", []tree.Hash{base}, map[string]string{rome: "rome 2"})
			line := old
			for i := range 30 {
				d := h.draft("ada", []tree.Hash{line}, map[string]string{visionA: fmt.Sprint("a ", i)})
				if !dated.IsZero() {
					d.Author.When, d.Committer.When = dated, dated
				}
				line = h.add(d, "ada")
			}
			branch := h.commit("carl", []tree.Hash{old}, map[string]string{audio: "deaf 2"})
			merge := h.commit("", []tree.Hash{line, branch}, map[string]string{audio: "deaf 2"})
			v := h.verify(line, merge)
			v.finds("")
			v.has(rome, "rome 2")
			v.has(audio, "deaf 2")
			if v.Clean != merge {
				t.Errorf("clean up to %s, want the merge", v.Clean.Short())
			}
		})
	}
}
