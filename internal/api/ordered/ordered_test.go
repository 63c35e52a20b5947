package ordered

import (
	"fmt"
	"maps"
	"runtime"
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
			for k := range made {
				differs(t, m, made[k], want[i], want[k])
			}
		}
	})
}

// Two maps differ in exactly the keys in which plain maps would, in order.
func differs(t *rapid.T, a, b Map[int], x, y map[string]int) {
	all := maps.Clone(x)
	maps.Copy(all, y)
	var want []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		v, in := x[k]
		w, too := y[k]
		if in != too || v != w {
			want = append(want, k)
		}
	}
	if got := slices.Collect(a.Differs(b, func(a, b int) bool { return a == b })); !slices.Equal(got, want) {
		t.Fatalf("differs in %v, want %v", got, want)
	}
}

// Thousands of keys come in any order, some of them go, and the tree keeps its
// shape: nodes in order, none too full or empty, all leaves equally deep.
func TestTreesKeepTheirShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, want := Map[int]{}.Edit(), map[string]int{}
		for range rapid.IntRange(1, 8).Draw(t, "stretches") {
			at, step, n := rapid.IntRange(0, 9999).Draw(t, "at"), rapid.SampledFrom([]int{1, -1, 7, 3571}).Draw(t, "step"), rapid.IntRange(1, 1000).Draw(t, "n")
			goes := rapid.Bool().Draw(t, "goes")
			for i := range n {
				k := names[((at+i*step)%10000+10000)%10000]
				if goes {
					e.Delete(k)
					delete(want, k)
				} else {
					e.Set(k, i)
					want[k] = i
				}
			}
			if rapid.Bool().Draw(t, "done") {
				e = e.Done().Edit()
			}
		}
		m := e.Done()
		compare(t, m, want, "0050")
		if m.root != nil {
			shaped(t, m.root, "", "~", m.root.depth())
		}
	})
}

func shaped(t *rapid.T, n *node[int], from, to string, depth int) {
	if n.size() == 0 || n.size() > full || cap(n.entries) > full || cap(n.kids) > full {
		t.Fatalf("a node has %d of at most %d, and room for %d", n.size(), full, max(cap(n.entries), cap(n.kids)))
	}
	if (n.kids == nil) != (depth == 0) || n.depth() != depth {
		t.Fatalf("a leaf is at another depth than the first: %d", depth)
	}
	for i, k := range n.kids {
		next := to
		if i+1 < len(n.kids) {
			next = n.kids[i+1].from
		}
		shaped(t, k.node, k.from, next, depth-1)
	}
	for i, x := range n.entries {
		if x.key < from || x.key >= to || i > 0 && n.entries[i-1].key >= x.key {
			t.Fatalf("%q stands between %q and %q", x.key, from, to)
		}
	}
}

// What differs is found without a look at what is shared.
func TestDiffersCostsWhatDiffers(t *testing.T) {
	m := hundredThousand()
	e := m.Edit()
	e.Set("050000", -1)
	e.Delete("000000")
	next, looks := e.Done(), 0
	got := slices.Collect(next.Differs(m, func(a, b int) bool { looks++; return a == b }))
	if !slices.Equal(got, []string{"000000", "050000"}) || looks > 4*full {
		t.Errorf("differs in %v after %d comparisons, want 000000 and 050000 after those of two leaves", got, looks)
	}
}

func hundredThousand() Map[int] {
	e := Map[int]{}.Edit()
	for i := range 100_000 {
		e.Set(fmt.Sprintf("%06d", i*61%100_000), i)
	}
	return e.Done()
}

func BenchmarkGet(b *testing.B) {
	m := hundredThousand()
	i := 0
	for b.Loop() {
		i = (i + 7919) % 100_000
		if _, there := m.Get(names[i]); !there {
			b.Fatal(names[i])
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	m := hundredThousand()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % 100_000
		e := m.Edit()
		e.Set(names[i], i)
		m = e.Done()
	}
}

// BenchmarkHeap reports what an entry of 100,000 costs beside its key.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		before := heap()
		e := Map[int]{}.Edit()
		for i := range names {
			e.Set(names[i*61%len(names)], i)
		}
		m := e.Done()
		b.ReportMetric(float64(heap()-before)/float64(len(names)), "B/entry")
		runtime.KeepAlive(m)
	}
}

var names = func() (out [100_000]string) {
	for i := range out {
		out[i] = fmt.Sprintf("%06d", i)
	}
	return out
}()

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
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
