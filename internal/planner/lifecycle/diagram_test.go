package lifecycle_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// declared are the phases that a contract may be in, by the constants of their type.
func declared(t *testing.T) (phases []v1alpha1.Phase) {
	t.Helper()
	source, err := os.ReadFile("../../api/v1alpha1/contract.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\tPhase\w+ +Phase = "(\w+)"$`).FindAllStringSubmatch(string(source), -1) {
		phases = append(phases, v1alpha1.Phase(m[1]))
	}
	if len(phases) < 10 {
		t.Fatalf("found %d phases: %v", len(phases), phases)
	}
	return phases
}

// The diagram of phases in the planner's package comment has each step of the ledger's table and
// no other, so that a phase that is added is drawn too.
func TestDiagram_HasEachStepOfTheTable(t *testing.T) {
	comment, err := os.ReadFile("../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawn, phases := map[[2]v1alpha1.Phase]bool{}, map[v1alpha1.Phase]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t +(\S+) --> ([A-Z]\w+)(?:$|:)`).FindAllStringSubmatch(string(comment), -1) {
		from, to := v1alpha1.Phase(m[1]), v1alpha1.Phase(m[2])
		if from == "[*]" {
			from = ""
		}
		drawn[[2]v1alpha1.Phase{from, to}] = true
		phases[from], phases[to] = true, true
	}
	for _, p := range declared(t) {
		if !phases[p] {
			t.Errorf("the diagram lacks the phase %s", p)
		}
		phases[p] = true
	}
	for _, from := range slices.Sorted(maps.Keys(phases)) {
		for _, to := range slices.Sorted(maps.Keys(phases)) {
			c := contract("", active)
			if c.Status.Phase = from; from == releasing {
				c.Status.Target = to
			}
			_, err := books.Transition(c, to, ledger.Reason{}, noon)
			if is := drawn[[2]v1alpha1.Phase{from, to}]; is != (err == nil) {
				t.Errorf("from %q to %q: the diagram has it: %v; the ledger's table: %v", from, to, is, err)
			}
		}
	}
}
