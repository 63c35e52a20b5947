package tree

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// bomb is a tree of levels of directories, each listing the ten (of some kinds)
// of the next.
func bomb(m *Memory, top string, levels, width, kinds int) Tree {
	file := m.AddFile([]byte("kind: ResourceIntent\n"))
	below := make([]Hash, kinds)
	for k := range below {
		below[k] = m.AddDir([]Entry{{fmt.Sprintf("x%d.yaml", k), File, file}})
	}
	for range levels {
		next := make([]Hash, kinds)
		for k := range next {
			var entries []Entry
			for i := range width {
				entries = append(entries, Entry{fmt.Sprintf("d%d-%d", k, i), Dir, below[i%kinds]})
			}
			next[k] = m.AddDir(entries)
		}
		below = next
	}
	return Tree{m, m.AddDir([]Entry{{top, Dir, m.AddDir([]Entry{{"vision", Dir, below[0]}})}})}
}

// TestVetterStopsBombs: what a tree bomb costs is its different directories.
func TestVetterStopsBombs(t *testing.T) {
	for _, c := range []struct{ levels, width, kinds int }{{6, 10, 1}, {7, 10, 1}, {30, 10, 1}, {40, 10, 1}, {5000, 2, 1}, {6, 10, 10}, {29, 64, 64}, {2, 2000, 1}, {3, 300, 300}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			m := NewMemory()
			root := bomb(m, "bases", c.levels, c.width, c.kinds)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			watch := bounded.StartStopwatch()
			_, err := NewVetter(DefaultBounds).Whole(root, []string{"bases"})
			late := watch.Late(5*time.Second, time.Minute)
			runtime.ReadMemStats(&after)
			var broken *BrokenError
			if !errors.As(err, &broken) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 || late != nil {
				t.Errorf("%v: %d MiB, %v", err, n>>20, late)
			}
			t.Log(err)
		})
	}
}

// fleetTree is a tree of dirs directories with files each, all different.
func fleetTree(m *Memory, dirs, files int) Tree {
	content := m.AddFile([]byte("kind: ResourceIntent\n"))
	var top []Entry
	for d := range dirs {
		entries := make([]Entry, files)
		for f := range files {
			entries[f] = Entry{fmt.Sprintf("i%04d-%04d.yaml", d, f), File, content}
		}
		top = append(top, Entry{fmt.Sprintf("t%04d", d), Dir, m.AddDir(entries)})
	}
	return Tree{m, m.AddDir([]Entry{{"intents", Dir, m.AddDir(top)}})}
}

// TestVetterLetsAMillionIntentsPass, and looks only at what is new in the next
// commit.
func TestVetterLetsAMillionIntentsPass(t *testing.T) {
	m := NewMemory()
	root := fleetTree(m, 1000, 1000)
	c := &counting{Store: m}
	v := NewVetter(DefaultBounds)
	w, err := v.Whole(Tree{c, root.Root}, nil)
	if err != nil || w.Entries != 1_001_001 || w.Depth != 2 {
		t.Fatalf("got %+v, %v", w, err)
	}
	counts := v.round
	if again, err := v.Whole(Tree{c, root.Root}, nil); err != nil || again != w || v.round != counts {
		t.Errorf("the same again: got %+v, %v, counted %d times; want %+v and no count", again, err, v.round-counts, w)
	}
	if _, err := v.Whole(Tree{c, root.Root}, []string{"intents"}); err != nil || v.round != counts+1 {
		t.Errorf("under a name: %v, counted %d times, want once", err, v.round-counts)
	}
	c.dirs = 0
	next, err := Overlay(root, map[string][]byte{"intents/t0007/new.yaml": []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	c.Store = next.Store
	if w, err := v.Whole(Tree{c, next.Root}, nil); err != nil || w.Entries != 1_001_002 || c.dirs != 3 {
		t.Errorf("the next commit: got %+v, %v, %d directories read", w, err, c.dirs)
	}
}

func TestVetterHoldsToBounds(t *testing.T) {
	m := NewMemory()
	files := m.Build(map[string][]byte{"bases/a/b/c": []byte("12345"), "bases/a/d": []byte("123"), "other/x": []byte("1234567890")})
	for _, c := range []struct {
		bounds Bounds
		names  []string
		want   string
	}{
		{Bounds{Entries: 5, Depth: 3, Bytes: 8}, []string{"bases"}, ""},
		{Bounds{Entries: 4, Depth: 3, Bytes: 8}, []string{"bases"}, "more than 4 entries"},
		{Bounds{Entries: 5, Depth: 2, Bytes: 8}, []string{"bases"}, "deeper than 2 directories"},
		{Bounds{Entries: 5, Depth: 3, Bytes: 7}, []string{"bases"}, "more than 7 bytes"},
		{Bounds{Entries: 7, Depth: 3, Bytes: 17}, nil, "more than 17 bytes"},
		{Bounds{Entries: 7, Depth: 3, Bytes: 18}, nil, ""},
	} {
		_, err := NewVetter(c.bounds).Whole(files, c.names)
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) && c.want != "" {
			t.Errorf("%+v %v: got %v, want %q", c.bounds, c.names, err, c.want)
		}
	}
}

// refusing is a store in which some directories are broken.
type refusing struct {
	*Memory
	bad map[Hash]bool
}

func (r refusing) Dir(h Hash) ([]Entry, error) {
	if r.bad[h] {
		return nil, fmt.Errorf("directory %s: %w", h.Short(), &BrokenError{Why: "no"})
	}
	return r.Memory.Dir(h)
}

func TestVetterNamesWhatIsBroken(t *testing.T) {
	m := NewMemory()
	root := m.Build(map[string][]byte{"intents/a/b/c": nil, "docs/x/y": nil})
	find := func(p string) Hash {
		e, err := root.Find(p)
		if err != nil {
			t.Fatal(err)
		}
		return e.Hash
	}
	for _, c := range []struct {
		bad   string
		names []string
		want  string
	}{
		{"intents/a/b", []string{"intents"}, "intents/a/b: no"},
		{"docs/x", []string{"intents"}, ""},
		{"docs/x", nil, "docs/x: no"},
		{".", []string{"intents"}, "no"},
	} {
		v := NewVetter(DefaultBounds)
		for range 2 { // the second time it is remembered
			_, err := v.Whole(Tree{refusing{m, map[Hash]bool{find(c.bad): true}}, root.Root}, c.names)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.bad, err, c.want)
			}
		}
	}
	if _, err := NewVetter(DefaultBounds).Whole(Tree{NewMemory(), root.Root}, nil); err == nil || errors.As(err, new(*BrokenError)) {
		t.Errorf("a store that lacks the tree: %v", err)
	}
}

// asking is a store that counts how often sizes are asked for, and knows some to be broken
// or cannot read them.
type asking struct {
	*Memory
	broken, unread map[Hash]bool
	asked          *atomic.Int64
}

var errUnread = errors.New("the disk does not answer")

func (s asking) Size(h Hash) (int64, error) {
	s.asked.Add(1)
	switch {
	case s.broken[h]:
		return 0, &BrokenError{Why: "what stands as a file is a commit"}
	case s.unread[h]:
		return 0, errUnread
	}
	return s.Memory.Size(h)
}

// However many sizes are asked for at once, what comes out is what asking for one after
// the other says: the bytes of all, or the first that fails, in the order of the entries.
func TestVetterMeasuresManyAtOnce(t *testing.T) {
	m := NewMemory()
	for name, c := range map[string]struct {
		files, different int
		broken, unread   int // -1: none
		asked            int64
	}{
		"all different":          {3000, 3000, -1, -1, 3000},
		"one a thousand times":   {1000, 1, -1, -1, 1},
		"few":                    {20, 20, -1, -1, 20},
		"a broken one":           {3000, 3000, 1234, -1, 3001},
		"broken before unread":   {3000, 3000, 700, 2000, 3001},
		"unread before broken":   {3000, 3000, 2000, 700, 3001},
		"the last one is broken": {512, 512, 511, -1, 513},
	} {
		t.Run(name, func(t *testing.T) {
			store := asking{m, map[Hash]bool{}, map[Hash]bool{}, &atomic.Int64{}}
			var entries []Entry
			var bytes int64
			for i := range c.files {
				text := []byte(fmt.Sprintf("kind: ResourceIntent # %s %d", name, i%c.different))
				h := m.AddFile(text)
				entries, bytes = append(entries, Entry{fmt.Sprintf("f%05d.yaml", i), File, h}), bytes+int64(len(text))
				store.broken[h], store.unread[h] = i == c.broken, i == c.unread
			}
			root := Tree{store, m.AddDir([]Entry{{"bases", Dir, m.AddDir(entries)}})}
			w, err := NewVetter(DefaultBounds).Whole(root, []string{"bases"})
			var broken *BrokenError
			switch first := errors.As(err, &broken); {
			case c.unread >= 0 && (c.broken < 0 || c.unread < c.broken):
				if !errors.Is(err, errUnread) || first {
					t.Errorf("got %v, want %v", err, errUnread)
				}
			case c.broken >= 0:
				if want := fmt.Sprintf("bases/f%05d.yaml", c.broken); !first || broken.Path != want {
					t.Errorf("got %v, want %s named", err, want)
				}
			case err != nil || w.Bytes != bytes || w.Entries != int64(c.files)+1:
				t.Errorf("weighed %+v, %v, want %d entries with %d bytes", w, err, c.files+1, bytes)
			}
			if n := store.asked.Load(); n != c.asked {
				t.Errorf("%d sizes were asked for, want %d", n, c.asked)
			}
		})
	}
}
