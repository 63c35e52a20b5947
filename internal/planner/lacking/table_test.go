package lacking

import (
	"maps"
	"slices"
	"testing"
)

// filled is a table of four offers: two candidates, and one for each of two facts.
func filled(s *Tables, key string) *Table {
	t := s.New(key, 4)
	t.At = []int32{0, t.Lack("gpu"), 1, t.Lack("regions")}
	t.Count(0)
	return t
}

func TestTable_CountsWhatItStates(t *testing.T) {
	var s Tables
	a := filled(&s, "a")
	if want := map[string]int{"gpu": 1, "regions": 1}; !maps.Equal(a.Counts, want) || !slices.Equal(a.Candidates, []int32{0, 2}) {
		t.Fatalf("counts %v of candidates %v, want %v of 0 and 2", a.Counts, a.Candidates, want)
	}
	before, version := a.Sum(), a.Version
	if !a.Change(1, "regions") || a.FactOf(1) != "regions" || a.Version == version {
		t.Errorf("offer 1 fails %q at version %d, want regions at another than %d", a.FactOf(1), a.Version, version)
	}
	if want := map[string]int{"regions": 2}; !maps.Equal(a.Counts, want) || !maps.Equal(a.Sum(), want) || before["gpu"] != 1 {
		t.Errorf("counts %v, sum %v, want %v; what was handed out before is %v", a.Counts, a.Sum(), want, before)
	}
	if version = a.Version; !a.Change(0, "") || a.Version != version {
		t.Error("a candidate that stays one changed the table")
	}
	if b := filled(&s, "b"); b.Version == a.Version {
		t.Error("two tables have one version")
	}
}

// Where other offers are candidates a table is dead, and stays so however often it is
// asked.
func TestTable_DiesWithItsCandidates(t *testing.T) {
	for name, change := range map[string]func(*Table) bool{
		"comes": func(a *Table) bool { return a.Change(3, "") },
		"goes":  func(a *Table) bool { return a.Change(2, "gpu") },
	} {
		var s Tables
		a := filled(&s, "a")
		for range 2 {
			if change(a) || !a.Dead {
				t.Errorf("a candidate %s: the table lives on", name)
			}
		}
	}
}

// What is shared counts once, and is forgotten when nobody uses it.
func TestTables_KeepWhatIsUsed(t *testing.T) {
	var s Tables
	a, b := filled(&s, "a"), filled(&s, "")
	if first, second := a.Use(), a.Use(); first != a.Bytes() || second != 0 {
		t.Errorf("two users count %d and %d bytes, want %d and 0", first, second, a.Bytes())
	}
	if first, last := a.Leave(), a.Leave(); first != 0 || last != a.Bytes() {
		t.Errorf("they give back %d and %d bytes", first, last)
	}
	if s.Recycle(b); s.New("", 4).At == nil || len(s.spare) != 0 {
		t.Error("the room of a table of one user was not used again")
	}
	a.Use()
	if s.Drop(); len(s.shared) != 1 {
		t.Errorf("%d tables are shared, want that which is used", len(s.shared))
	}
	s.Recount()
	if s.Drop(); len(s.shared) != 0 {
		t.Errorf("%d tables are shared, want none", len(s.shared))
	}
}
