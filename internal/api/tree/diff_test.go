package tree

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// counting is a Store that counts the directories opened.
type counting struct {
	Store
	dirs int
}

func (c *counting) Dir(h Hash) ([]Entry, error) {
	c.dirs++
	return c.Store.Dir(h)
}

func diffNames(t testing.TB, a, b Tree) map[string]string {
	got := map[string]string{}
	err := Diff(a, b, func(name string, from, to Entry) error {
		if _, dup := got[name+from.Name]; dup {
			return fmt.Errorf("%s reported twice", name)
		}
		switch {
		case from.Name == "":
			got[name] += "+"
		case to.Name == "":
			got[name] += "-"
		default:
			got[name] += "!"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDiffVisitsOnlyWhatDiffers(t *testing.T) {
	files := map[string][]byte{}
	for d := range 50 {
		for f := range 20 {
			files[fmt.Sprintf("d%02d/s/f%02d", d, f)] = []byte("x")
		}
	}
	m := NewMemory()
	a := m.Build(files)
	files["d07/s/f03"] = []byte("y")
	b := m.Build(files)
	c := &counting{Store: m}
	got := diffNames(t, Tree{c, a.Root}, Tree{c, b.Root})
	if want := map[string]string{"d07/s/f03": "!"}; !maps.Equal(got, want) {
		t.Errorf("Diff: got %v, want %v", got, want)
	}
	if c.dirs != 6 {
		t.Errorf("opened %d directories, want the 3 on the way on each side", c.dirs)
	}
}

func TestDiffFileBecomesDirectory(t *testing.T) {
	m := NewMemory()
	a := m.Build(map[string][]byte{"a": []byte("1"), "a.b": []byte("2")})
	b := m.Build(map[string][]byte{"a/x": []byte("1"), "a.b": []byte("2")})
	want := map[string]string{"a": "-", "a/x": "+"}
	if got := diffNames(t, a, b); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := diffNames(t, a, Tree{}); !maps.Equal(got, map[string]string{"a": "-", "a.b": "-"}) {
		t.Errorf("against the empty tree: got %v", got)
	}
}

func TestDiffStopsAtTheCallersError(t *testing.T) {
	m := NewMemory()
	stop := errors.New("stop")
	err := Diff(m.Build(map[string][]byte{"a": nil, "b": nil}), Tree{}, func(string, Entry, Entry) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want the caller's error", err)
	}
}

// Diff must agree with comparing the two file maps.
func TestDiffAgreesWithMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) map[string][]byte {
			files := map[string][]byte{}
			for _, n := range rapid.SliceOfN(rapid.StringMatching(`[ab](/[ab]x?(/[ab])?)?f`), 0, 8).Draw(t, label) {
				files[n] = []byte{byte(rapid.IntRange(0, 1).Draw(t, label+n))}
			}
			return files
		}
		fa, fb := draw("a"), draw("b")
		m := NewMemory()
		got := map[string]string{}
		var order []string
		err := Diff(m.Build(fa), m.Build(fb), func(name string, from, to Entry) error {
			order = append(order, name)
			got[name] = fmt.Sprint(from.Hash.Short(), to.Hash.Short())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		hash := func(files map[string][]byte, n string) Hash {
			if c, ok := files[n]; ok {
				return BlobHash(c)
			}
			return Hash{}
		}
		for _, n := range slices.Concat(slices.Collect(maps.Keys(fa)), slices.Collect(maps.Keys(fb))) {
			if x, y := hash(fa, n), hash(fb, n); x != y {
				want[n] = fmt.Sprint(x.Short(), y.Short())
			}
		}
		if !maps.Equal(got, want) || len(order) != len(want) {
			t.Fatalf("Diff: got %v (%v), want %v", got, order, want)
		}
	})
}
