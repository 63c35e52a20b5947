package tree

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Bounds are what a tree may have at most, counted as it unrolls: a directory
// that stands in two places counts twice.
type Bounds struct {
	// Entries of all directories, directories included.
	Entries int64
	// Depth is how many directories lie above the deepest entry.
	Depth int
	// Bytes of all files.
	Bytes int64
}

// DefaultBounds leave room for a million intents.
var DefaultBounds = Bounds{Entries: 4_000_000, Depth: 32, Bytes: 64 << 30}

// A tree of more than repeatsFrom entries may have at most repeats times as many
// as its different directories list. Fleets hardly repeat a directory; what does
// is made to be large.
const (
	repeatsFrom = 100_000
	repeats     = 8
)

// Sizer is a Store that knows how large a file is without reading it. What is no
// file is a *BrokenError. Several may ask at once.
type Sizer interface {
	Size(h Hash) (int64, error)
}

// Weight is what a tree has.
type Weight struct {
	Entries, Bytes int64
	Depth          int
}

// Vetter finds out whether trees are whole: readable in all their directories
// and within bounds. It remembers each directory, so that a tree costs what is
// new in it, and one whose directories repeat costs its different ones. Safe for
// concurrent use.
type Vetter struct {
	bounds Bounds

	mu    sync.Mutex
	known map[Hash]int32
	nodes []node
	sizes [2]map[Hash]int64 // of files: young and old
	round int32             // number of the newest count of different directories
	// judged are tenants' directories: true, they are too large. cuts are the
	// directories above them without those; nil: nothing is too large.
	judged map[Hash]bool
	cuts   map[Hash]*cut
	// whole are trees that were found within bounds.
	whole map[judgement]bool
}

// node is a directory that was looked at.
type node struct {
	Weight
	own  int32 // entries
	seen int32 // round that counted it last
	subs []int32
	// broken is why it says nothing, whatever lies around it.
	broken *BrokenError
}

// Directories and, of each generation, files that are remembered: some 100 bytes
// each. A ledger has a directory for each intent, and a fleet may have a million.
const (
	maxNodes = 2_000_000
	maxSizes = 250_000
)

// NewVetter returns a Vetter that knows no directory yet.
func NewVetter(b Bounds) *Vetter {
	return &Vetter{bounds: b, known: map[Hash]int32{}, judged: map[Hash]bool{}, cuts: map[Hash]*cut{}, whole: map[judgement]bool{}}
}

// Whole weighs what a tree has under some of its top-level names (nil: all). A
// tree that says nothing is a *BrokenError: its root, or a directory under those
// names, is refused, or they exceed the bounds together. A tenant's directory that
// is too large is weighed as one entry: who reads the tree reads what Bounded makes
// of it. Any other error is one of reading.
func (v *Vetter) Whole(t Tree, names []string) (Weight, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var (
		entries []Entry
		tenants *listing
		err     error
	)
	if names == nil || slices.Contains(names, tenantsDir) {
		t, entries, tenants, err = v.cutTree(t)
	} else {
		entries, err = t.Entries()
	}
	if err != nil {
		return Weight{}, err
	}
	v.forget()
	w := walk{v: v, store: t.Store, left: v.bounds.Entries, tenants: tenants}
	w.sizer, _ = t.Store.(Sizer)
	wanted := entries
	if names != nil {
		wanted = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !slices.Contains(names, e.Name) })
	}
	n, err := w.sum(wanted, v.bounds.Depth)
	if err == nil && n.broken != nil {
		err = n.broken
	}
	if err != nil {
		return n.Weight, err
	}
	// Every round weighs the same trees: what was judged whole is, whoever asks again.
	j := judgement{t.Root, strings.Join(names, "/"), names == nil}
	if v.whole[j] {
		return n.Weight, nil
	}
	if err = v.judge(n); err == nil {
		if len(v.whole) >= maxWhole {
			clear(v.whole)
		}
		v.whole[j] = true
	}
	return n.Weight, err
}

// judgement is of a tree, as far as it lies under some top-level names.
type judgement struct {
	root  Hash
	names string
	all   bool
}

// maxWhole bounds the judgements that are remembered.
const maxWhole = 64

// judge holds a tree to the bounds.
func (v *Vetter) judge(n node) error {
	switch b := v.bounds; {
	case n.Entries > b.Entries:
		return &BrokenError{Why: fmt.Sprintf("it has more than %d entries, counted where they stand", b.Entries)}
	case n.Bytes > b.Bytes:
		return &BrokenError{Why: fmt.Sprintf("its files have more than %d bytes, counted where they stand", b.Bytes)}
	case n.Depth > b.Depth:
		return tooDeep(b.Depth)
	}
	if n.Entries <= repeatsFrom {
		return nil
	}
	if d := v.distinct(n, (n.Entries+repeats-1)/repeats); n.Entries > repeats*d {
		return &BrokenError{Why: fmt.Sprintf("it has %d entries in directories that list %d: they repeat each other", n.Entries, d)}
	}
	return nil
}

func tooDeep(depth int) *BrokenError {
	return &BrokenError{Why: fmt.Sprintf("it is deeper than %d directories", depth)}
}

// distinct counts the entries of a tree's different directories, until there are enough.
func (v *Vetter) distinct(root node, enough int64) int64 {
	v.round++
	n := int64(root.own)
	stack := slices.Clone(root.subs)
	for len(stack) > 0 && n < enough {
		at := &v.nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		if at.seen == v.round {
			continue
		}
		at.seen = v.round
		n += int64(at.own)
		stack = append(stack, at.subs...)
	}
	return n
}

// walk is one call of Whole.
type walk struct {
	v     *Vetter
	store Store
	sizer Sizer
	left  int64 // directories that may still be new
	// tenants is a directory that was read; nil: none.
	tenants *listing
	// one: this is one tenant's directory, which may have share more entries, those
	// of known directories included.
	one   bool
	share int64
}

// counts counts entries of one tenant's directory.
func (w *walk) counts(n int64) error {
	if !w.one {
		return nil
	}
	if w.share -= n; w.share < 0 {
		return &BrokenError{Why: "it has more entries than one tenant may have"}
	}
	return nil
}

// dir is the node of a directory, with at most depth directories below it. It
// fails with a *BrokenError when the tree as a whole is too large, which says
// nothing of the directory.
func (w *walk) dir(h Hash, depth int) (int32, error) {
	if i, ok := w.v.known[h]; ok {
		return i, nil
	}
	if depth < 0 {
		return 0, tooDeep(w.v.bounds.Depth)
	}
	if w.left--; w.left < 0 {
		return 0, &BrokenError{Why: fmt.Sprintf("it has more than %d directories", w.v.bounds.Entries)}
	}
	entries, err := w.list(h)
	var n node
	if err == nil {
		n, err = w.sum(entries, depth)
		if err != nil {
			return 0, err
		}
	} else if broken := new(BrokenError); errors.As(err, &broken) {
		n.broken = broken
	} else {
		return 0, err
	}
	i := int32(len(w.v.nodes)) //nolint:gosec // far below 2^31: see maxNodes
	w.v.nodes = append(w.v.nodes, n)
	w.v.known[h] = i
	return i, nil
}

func (w *walk) list(h Hash) ([]Entry, error) {
	if w.tenants != nil && w.tenants.hash == h {
		return w.tenants.entries, nil
	}
	return w.store.Dir(h)
}

// sum weighs entries.
func (w *walk) sum(entries []Entry, depth int) (node, error) {
	n := node{own: int32(len(entries))} //nolint:gosec // far below 2^31: they were in memory
	n.Entries = int64(len(entries))
	if err := w.counts(n.Entries); err != nil {
		return n, err
	}
	w.measure(entries)
	for _, e := range entries {
		if n.broken != nil {
			break
		}
		if e.Kind != Dir {
			size, err := w.size(e)
			if broken := new(BrokenError); errors.As(err, &broken) {
				n.broken = &BrokenError{Path: e.Name, Why: broken.Why}
			} else if err != nil {
				return n, err
			}
			n.Bytes = saturate(n.Bytes, size)
			continue
		}
		_, known := w.v.known[e.Hash]
		i, err := w.dir(e.Hash, depth-1)
		if err != nil {
			return n, err
		}
		sub := &w.v.nodes[i]
		if known {
			err = w.counts(sub.Entries)
		}
		if sub.Depth >= depth { // a known one was looked at where there was more room
			err = tooDeep(w.v.bounds.Depth)
		}
		if err != nil {
			return n, err
		}
		if sub.broken != nil {
			n.broken = &BrokenError{Path: path.Join(e.Name, sub.broken.Path), Why: sub.broken.Why}
		}
		if !slices.Contains(n.subs[max(0, len(n.subs)-1):], i) {
			n.subs = append(n.subs, i)
		}
		n.Entries, n.Bytes = saturate(n.Entries, sub.Entries), saturate(n.Bytes, sub.Bytes)
		n.Depth = max(n.Depth, sub.Depth+1)
	}
	n.subs = slices.Clip(n.subs)
	return n, nil
}

// measuredAtOnce is from how many files of a directory on their sizes are asked for by
// several at once: a start asks for those of a million.
const measuredAtOnce = 256

// measure learns the sizes of a directory's files where they are many. What fails is asked
// for again by size, which says so in the order of the entries.
func (w *walk) measure(entries []Entry) {
	if w.sizer == nil || len(entries) < measuredAtOnce {
		return
	}
	var ask []Hash
	asked := map[Hash]bool{} // a bomb lists one file a million times
	for _, e := range entries {
		if _, known := w.v.sizeOf(e.Hash); !known && w.measurable(e) && !asked[e.Hash] {
			asked[e.Hash], ask = true, append(ask, e.Hash)
		}
	}
	if len(ask) < measuredAtOnce {
		return
	}
	sizes := make([]int64, len(ask))
	var group sync.WaitGroup
	share := (len(ask) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	for from := 0; from < len(ask); from += share {
		to := min(from+share, len(ask))
		group.Go(func() {
			for i := from; i < to; i++ {
				var err error
				if sizes[i], err = w.sizer.Size(ask[i]); err != nil {
					sizes[i] = -1
				}
			}
		})
	}
	group.Wait()
	for i, n := range sizes {
		if n >= 0 {
			w.v.setSize(ask[i], n)
		}
	}
}

// measurable reports whether the store knows how large an entry is.
func (w *walk) measurable(e Entry) bool {
	return w.sizer != nil && e.Kind != Dir && e.Kind != Submodule && e.Kind != Oversized
}

// size of a file, 0 where the store does not know sizes.
func (w *walk) size(e Entry) (int64, error) {
	if !w.measurable(e) {
		return 0, nil
	}
	n, known := w.v.sizeOf(e.Hash)
	if !known {
		var err error
		if n, err = w.sizer.Size(e.Hash); err != nil {
			return 0, err
		}
	}
	w.v.setSize(e.Hash, n)
	return n, nil
}

// sizeOf is the size of a file that is remembered.
func (v *Vetter) sizeOf(h Hash) (n int64, known bool) {
	if n, known = v.sizes[0][h]; !known {
		n, known = v.sizes[1][h]
	}
	return n, known
}

// setSize remembers the size of a file, as one of the young.
func (v *Vetter) setSize(h Hash, n int64) {
	if _, young := v.sizes[0][h]; young {
		return
	}
	if v.sizes[0] == nil || len(v.sizes[0]) >= maxSizes {
		v.sizes[0], v.sizes[1] = map[Hash]int64{}, v.sizes[0]
	}
	v.sizes[0][h] = n
}

// saturate adds without going round.
func saturate(a, b int64) int64 {
	const most = 1 << 60
	return min(a+b, most)
}
