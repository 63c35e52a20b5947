package tree

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// TestBounded_LeavesOutBombs: what a bomb of one tenant costs is its different
// directories, and nobody who reads the rest opens it.
func TestBounded_LeavesOutBombs(t *testing.T) {
	for _, c := range []struct{ levels, width, kinds int }{{6, 10, 1}, {7, 10, 1}, {30, 10, 1}, {40, 10, 1}, {5000, 2, 1}, {6, 10, 10}, {29, 64, 64}, {2, 2000, 1}, {3, 300, 300}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			m := NewMemory()
			root := bomb(m, tenantsDir, c.levels, c.width, c.kinds)
			root, err := Overlay(root, map[string][]byte{"intents/nlp/a.yaml": nil})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			watch := bounded.StartStopwatch()
			v := NewVetter(DefaultBounds)
			got, err := v.Bounded(root)
			if err != nil {
				t.Fatal(err)
			}
			w, err := v.Whole(root, nil)
			late := watch.Late(5*time.Second, time.Minute)
			runtime.ReadMemStats(&after)
			if err != nil || w.Entries != 5 {
				t.Errorf("got %+v, %v, want 5 entries", w, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 || late != nil {
				t.Errorf("%d MiB, %v", n>>20, late)
			}
			if got := paths(t, got); fmt.Sprint(got) != "[intents/nlp/a.yaml intents/vision/"+OversizedName+"]" {
				t.Errorf("it has %v", got)
			}
			if CheckName(OversizedName) == "" {
				t.Errorf("git lets a file be called %s", OversizedName)
			}
		})
	}
}

func paths(t *testing.T, tr Tree) (out []string) {
	t.Helper()
	if err := tr.Walk(func(p string, _ Entry) error {
		out = append(out, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBounded_HoldsOneTenantToItsPart: half of the entries and bytes, and the depth
// of a whole tree. What is known of other trees changes nothing, and what lies
// elsewhere is let be.
func TestBounded_HoldsOneTenantToItsPart(t *testing.T) {
	m := NewMemory()
	files := m.Build(map[string][]byte{"intents/a/b/c": []byte("12345"), "intents/a/d": []byte("123"), "intents/e/f": []byte("12"), "bases/a/b/c": []byte("1234567890")})
	for _, c := range []struct {
		bounds Bounds
		over   bool
	}{
		{Bounds{Entries: 20, Depth: 3, Bytes: 36}, false},
		{Bounds{Entries: 6, Depth: 3, Bytes: 36}, false},
		{Bounds{Entries: 5, Depth: 3, Bytes: 36}, true},
		{Bounds{Entries: 20, Depth: 2, Bytes: 36}, true},
		{Bounds{Entries: 20, Depth: 3, Bytes: 16}, false},
		{Bounds{Entries: 20, Depth: 3, Bytes: 15}, true},
	} {
		want := "[bases/a/b/c intents/a/b/c intents/a/d intents/e/f]"
		if c.over {
			want = "[bases/a/b/c intents/a/" + OversizedName + " intents/e/f]"
		}
		v := NewVetter(c.bounds)
		for _, known := range []string{"", "intents/a", "bases", "intents"} {
			if sub, err := files.Sub(known); err != nil {
				t.Fatal(err)
			} else if known != "" {
				v = NewVetter(c.bounds)
				_, _ = v.Whole(sub, nil) // whatever it says of that
			}
			for range 2 {
				got, err := v.Bounded(files)
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(paths(t, got)); got != want {
					t.Errorf("%+v after %q: got %s, want %s", c.bounds, known, got, want)
				}
				if got.Root == files.Root == c.over {
					t.Errorf("%+v: its name is %s", c.bounds, got.Root)
				}
			}
		}
	}
}

// TestBounded_LeavesWhatGitRefuses to Whole, which refuses the commit: also next to
// a directory that is too large.
func TestBounded_LeavesWhatGitRefuses(t *testing.T) {
	m := NewMemory()
	root := bomb(m, tenantsDir, 40, 10, 1)
	root, err := Overlay(root, map[string][]byte{"intents/nlp/sub/a.yaml": nil})
	if err != nil {
		t.Fatal(err)
	}
	e, err := root.Find("intents/nlp/sub")
	if err != nil {
		t.Fatal(err)
	}
	base := root.Store
	root.Store = refusingDirs{base, e.Hash}
	v := NewVetter(DefaultBounds)
	for range 2 {
		if _, err := v.Bounded(root); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Whole(root, nil); fmt.Sprint(err) != "broken tree: intents/nlp/sub: no" {
			t.Errorf("got %v", err)
		}
	}
}

// refusingDirs is a store in which one directory is broken.
type refusingDirs struct {
	Store
	bad Hash
}

func (r refusingDirs) Dir(h Hash) ([]Entry, error) {
	if h == r.bad {
		return nil, &BrokenError{Why: "no"}
	}
	return r.Store.Dir(h)
}

// TestBounded_MergesWithTheRest: a merge of trees in which a directory is left out
// has it left out, wherever the others changed.
func TestBounded_MergesWithTheRest(t *testing.T) {
	m := NewMemory()
	v := NewVetter(DefaultBounds)
	base := m.Build(map[string][]byte{"intents/nlp/a.yaml": []byte("a"), "fleet.yaml": []byte("x")})
	e, err := bomb(m, tenantsDir, 40, 10, 1).Find("intents/vision")
	if err != nil {
		t.Fatal(err)
	}
	bombed, err := With(base, map[string]Entry{"intents/vision": e})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := v.Bounded(bombed)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"intents/nlp/b.yaml", "bases/b.yaml"} {
		theirs, err := Overlay(base, map[string][]byte{path: []byte("b")})
		if err != nil {
			t.Fatal(err)
		}
		merged, conflicts, err := Merge(base, ours, theirs)
		if err != nil || len(conflicts) > 0 {
			t.Fatal(err, conflicts)
		}
		marked, err := merged.Find("intents/vision/" + OversizedName)
		if err != nil || marked.Kind != Oversized || marked.Hash != e.Hash {
			t.Errorf("got %+v, %v", marked, err)
		}
		if _, err := merged.Find(path); err != nil {
			t.Error(err)
		}
	}
}
