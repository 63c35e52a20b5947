package sequence_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
)

func TestLine_Next(t *testing.T) {
	type step struct {
		seq    uint64
		by     string
		raised bool
		fault  string
	}
	for name, c := range map[string]struct {
		cut   bool
		steps []step
	}{
		"one after the other":                    {false, []step{{1, "a", false, ""}, {2, "a", false, ""}, {3, "b", false, ""}}},
		"a gap":                                  {false, []step{{1, "a", false, ""}, {3, "a", false, "Ledger is 3, the one before 1"}, {4, "a", false, ""}}},
		"above what was let go of":               {false, []step{{1, "a", false, ""}, {4201, "a", true, ""}, {4202, "a", false, ""}, {4204, "a", false, "Ledger is 4204, the one before 4202"}}},
		"below, though something was let go of":  {false, []step{{1, "a", false, ""}, {2, "a", false, ""}, {2, "a", true, "Ledger is 2, the one before 2"}}},
		"another key begins":                     {false, []step{{1, "a", false, ""}, {2, "a", false, ""}, {1, "b", false, ""}}},
		"the same key begins again":              {false, []step{{1, "a", false, ""}, {2, "a", false, ""}, {1, "a", false, "Ledger is 1, the one before 2"}}},
		"the first is not the first":             {false, []step{{7, "a", false, "Ledger is 7, and no commit before has any"}}},
		"the first after one that was let go of": {false, []step{{7, "a", true, ""}}},
		"the first that is looked at":            {true, []step{{7, "a", false, ""}, {8, "a", false, ""}}},
	} {
		var l sequence.Line
		for i, s := range c.steps {
			if got := l.Next(s.seq, s.by, s.raised, c.cut); got != s.fault {
				t.Errorf("%s, step %d: %q, want %q", name, i, got, s.fault)
			}
		}
	}
}

func TestLine_Lacks(t *testing.T) {
	var l sequence.Line
	l.Next(1, "a", false, false)
	l.Next(2, "a", false, false)
	l.Next(6, "a", true, false)
	for seq, want := range map[uint64]string{
		1: "it is number 1, and the ledger has another commit by that number",
		4: "numbers 3 to 5 missing", 6: "it is number 6, and the ledger has another commit by that number", 8: "numbers 7 to 8 missing",
	} {
		if got := l.Lacks(seq); got != want {
			t.Errorf("%d: %q, want %q", seq, got, want)
		}
	}
}
