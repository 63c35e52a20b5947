package ordered

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// What edits make is what they would make of a plain map, and every map that
// was made before stays as it was.
func TestMapsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.StringMatching(`[a-c]{0,3}`)
		made, want := []Map[int]{{}}, []map[string]int{{}}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			from := rapid.IntRange(0, len(made)-1).Draw(t, "from")
			e, m := made[from].Edit(), maps.Clone(want[from])
			for range rapid.IntRange(0, 300).Draw(t, "steps") {
				k, v := names.Draw(t, "key"), rapid.IntRange(-3, 9).Draw(t, "value")
				if v < 0 {
					e.Delete(k)
					delete(m, k)
				} else {
					e.Set(k, v)
					m[k] = v
				}
				if v, there := e.Get(k); there != (v >= 0 && has(m, k)) || there && v != m[k] {
					t.Fatalf("while it is edited %q is %d, %v", k, v, there)
				}
			}
			made, want = append(made, e.Done()), append(want, m)
		}
		prefix := names.Draw(t, "prefix")
		for i, m := range made {
			compare(t, m, want[i], prefix)
		}
	})
}

func has(m map[string]int, k string) bool { _, ok := m[k]; return ok }

func compare(t *rapid.T, m Map[int], want map[string]int, prefix string) {
	if m.Len() != len(want) {
		t.Fatalf("%d keys, want %d", m.Len(), len(want))
	}
	var all, under []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, there := m.Get(k); !there || v != want[k] {
			t.Fatalf("%q is %d, %v, want %d", k, v, there, want[k])
		}
		if k >= prefix {
			all = append(all, k)
		}
		if strings.HasPrefix(k, prefix) {
			under = append(under, k)
		}
	}
	if _, there := m.Get("nobody"); there {
		t.Fatal("a key that nobody set is there")
	}
	if got := slices.Collect(keys(m, prefix)); !slices.Equal(got, all) {
		t.Fatalf("from %q: %v, want %v", prefix, got, all)
	}
	if k, there := m.Seek(prefix); there != (len(all) > 0) || there && k != all[0] {
		t.Fatalf("the first from %q is %q, %v, want %v", prefix, k, there, all)
	}
	var got []string
	for k, v := range m.Under(prefix) {
		if v != want[k] {
			t.Fatalf("under %q: %q is %d, want %d", prefix, k, v, want[k])
		}
		got = append(got, k)
	}
	if !slices.Equal(got, under) {
		t.Fatalf("under %q: %v, want %v", prefix, got, under)
	}
}

func keys(m Map[int], from string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m.From(from) {
			if !yield(k) {
				return
			}
		}
	}
}

// Readers and those who edit the same map do not disturb each other (run with
// -race).
func TestConcurrentEdits(t *testing.T) {
	e := Map[int]{}.Edit()
	for i := range 1000 {
		e.Set(fmt.Sprintf("%04d", i), i)
	}
	m := e.Done()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			e := m.Edit()
			for i := range 1000 {
				if i%8 == n {
					e.Delete(fmt.Sprintf("%04d", i))
				}
			}
			if got := e.Done().Len(); got != 875 {
				t.Errorf("%d keys are left, want 875", got)
			}
			sum := 0
			for range m.Under("0") {
				sum++
			}
			if sum != 1000 {
				t.Errorf("%d keys are read of 1000", sum)
			}
		})
	}
	all.Wait()
}
