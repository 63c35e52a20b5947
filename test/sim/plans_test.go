package sim

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// goldenPlans has a line for each of the first seeds: how many plans were made, and their
// digest. A commit that changes decisions on purpose records them again (-update) and
// states why, as for the golden plans of package planner; what changes no decision leaves
// them as they are.
const goldenPlans = "testdata/plans.txt"

// recorded are the lines of goldenPlans by seed.
type recorded struct {
	want map[uint64]string
	// got are those of the seeds that were played without a failure, compared how many of
	// them are in the record.
	got      map[uint64]string
	compared int
	differ   []uint64
}

func readPlans(t *testing.T) *recorded {
	t.Helper()
	r := &recorded{want: map[uint64]string{}, got: map[uint64]string{}}
	text, err := os.ReadFile(goldenPlans)
	if err != nil && !*update {
		t.Fatalf("%v: record it by -update", err)
	}
	for line := range strings.Lines(string(text)) {
		var n uint64
		var plans int
		var digest string
		if _, err := fmt.Sscanf(line, "%d %d %s", &n, &plans, &digest); err != nil {
			t.Fatalf("%s: %q is no line of seed, number of plans and digest: %v", goldenPlans, line, err)
		}
		r.want[n] = strings.TrimSpace(line)
	}
	return r
}

// compare holds a run to the record.
func (r *recorded) compare(t *testing.T, res Result) {
	t.Helper()
	if res.Failure != nil {
		return // another story, and already told
	}
	line := fmt.Sprintf("%d %d %s", res.Seed, res.Plans, res.PlansHash)
	r.got[res.Seed] = line
	want, known := r.want[res.Seed]
	if !known || *update {
		return
	}
	r.compared++
	if line != want {
		r.differ = append(r.differ, res.Seed)
	}
}

// finish writes the record, or says which plans are others.
func (r *recorded) finish(t *testing.T) {
	t.Helper()
	if *update {
		maps.Copy(r.want, r.got)
		var out strings.Builder
		for _, n := range slices.Sorted(maps.Keys(r.want)) {
			out.WriteString(r.want[n] + "\n")
		}
		if err := os.WriteFile(goldenPlans, []byte(out.String()), 0o644); err != nil {
			t.Error(err)
		}
		return
	}
	slices.Sort(r.differ)
	for _, n := range r.differ[:min(len(r.differ), 5)] {
		t.Errorf("seed %d: plans are others: seed, plans and digest are %q, were %q; compare the journals of both commits: go test ./test/sim -run TestSim -seed=%d -v", n, r.got[n], r.want[n], n)
	}
	if n := len(r.differ); n > 0 {
		t.Errorf("the plans of %d of %d seeds are others than recorded; where that is meant, record them again: go test ./test/sim -run 'TestSim$' -update", n, r.compared)
	}
	if *from == 1 && r.compared == 0 && len(r.got) > 0 {
		t.Errorf("no seed was compared with %s", goldenPlans)
	}
}

// The record tells a plan that is another: of other words, in another order, of another
// daemon, or one more.
func TestPlanned(t *testing.T) {
	type step struct {
		daemon string
		plan   *planner.Plan
	}
	plan := func(heldBack string) *planner.Plan { return &planner.Plan{HeldBack: heldBack} }
	digest := func(steps ...step) string {
		p := newPlanned()
		for _, s := range steps {
			p.add(s.daemon, s.plan)
		}
		return p.digest()
	}
	one, two := step{"a", plan("")}, step{"a", plan("too many ends")}
	seen := map[string]bool{}
	for _, steps := range [][]step{{}, {one}, {two}, {one, two}, {two, one}, {{"b", plan("")}}, {one, one}} {
		seen[digest(steps...)] = true
	}
	if len(seen) != 7 {
		t.Errorf("7 runs have %d digests", len(seen))
	}
	if again := digest(one, two); again != digest(one, two) {
		t.Error("equal plans have two digests")
	}
}
