package packs

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// resolver names the deltas of a pack: from each base up, so that an object is
// inflated and patched once, with what lies between a base and its leaf in
// memory and no more.
type resolver struct {
	pack pack
	// Deltas by where their base begins, sorted.
	onOffset []*entry
	// Deltas by their base's name; mu guards it. Who comes to a base first takes its own out:
	// a pack may have one object millions of times.
	mu     sync.Mutex
	onName map[tree.Hash][]*entry
	done   atomic.Int64
	// total is what the pack has so far, large what is made in large pieces, beyond what objects stand
	// on out of proportion. big is held by the one chain at a time that has much of it in memory.
	total  atomic.Int64
	large  atomic.Int64
	beyond atomic.Int64
	big    sync.Mutex
}

// alone is from how many bytes in memory on a chain waits until it is the only
// such.
const alone = 16 << 20

// turn is a chain's turn at having more than alone bytes in memory.
type turn struct {
	of    *sync.Mutex
	taken bool
}

// take waits for the turn where so many bytes are to be in memory.
func (t *turn) take(bytes int64) {
	if bytes > alone && !t.taken {
		t.of.Lock()
		t.taken = true
	}
}

func (t *turn) done() {
	if t.taken {
		t.of.Unlock()
	}
}

// held is what one goroutine has in memory.
type held struct {
	r     *resolver
	bytes int64
	turn  turn
}

// take takes room for an object, before it is made.
func (h *held) take(n int64) error {
	if h.r.total.Add(n) > maxTotal {
		return fmt.Errorf("%w: it makes more than %d bytes", gitobj.ErrPackTooLarge, int64(maxTotal))
	}
	if n > large && h.r.large.Add(n) > maxLarge {
		return fmt.Errorf("%w: its deltas make more than %d bytes in large pieces", gitobj.ErrPackTooLarge, int64(maxLarge))
	}
	if h.bytes += n; h.bytes > maxMade {
		return fmt.Errorf("%w: what its deltas stand on has more than %d bytes", gitobj.ErrPackTooLarge, int64(maxMade))
	}
	h.turn.take(h.bytes)
	return nil
}

// resolve names all deltas. A base outside the pack is an error: thin packs are
// not asked for.
func (t *intake) resolve() error {
	r := resolver{pack: pack{file: t.file, index: &index{}}, onName: map[tree.Hash][]*entry{}}
	deltas := 0
	var bases []*entry
	for _, e := range t.entries {
		r.pack.index.ordered = append(r.pack.index.ordered, e.offset)
		switch e.kind {
		case plumbing.OFSDeltaObject:
			r.onOffset = append(r.onOffset, e)
			deltas++
		case plumbing.REFDeltaObject:
			r.onName[e.baseHash] = append(r.onName[e.baseHash], e)
			deltas++
		default:
			r.total.Add(e.size)
			bases = append(bases, e)
		}
	}
	r.pack.index.ordered = append(r.pack.index.ordered, t.end)
	slices.SortFunc(r.onOffset, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.offset, b.offset))
	})
	named := map[tree.Hash]bool{}
	bases = slices.DeleteFunc(bases, func(e *entry) bool {
		carries := len(r.standingOn(e)) > 0 || len(r.onName[e.hash]) > 0 && !named[e.hash]
		if carries && len(r.onName) > 0 {
			named[e.hash] = true
		}
		return !carries
	})
	var next atomic.Int64
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(bases) {
					return nil
				}
				if err := r.from(bases[i]); err != nil {
					next.Store(int64(len(bases)))
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if n := deltas - int(r.done.Load()); n > 0 {
		return fmt.Errorf("the bases of %d deltas are not in the pack", n)
	}
	return nil
}

// onNameOf are the deltas that name a base, for the first who asks.
func (r *resolver) onNameOf(h tree.Hash) []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.onName[h]
	delete(r.onName, h)
	return list
}

func (r *resolver) standingOn(e *entry) []*entry {
	from, found := slices.BinarySearchFunc(r.onOffset, e.offset, func(d *entry, at int64) int { return cmp.Compare(d.base, at) })
	if !found {
		return nil
	}
	to := from
	for to < len(r.onOffset) && r.onOffset[to].base == e.offset {
		to++
	}
	return r.onOffset[from:to]
}

// from names everything that stands on a base.
func (r *resolver) from(base *entry) error {
	f := inflaters.Get().(*inflater) //nolint:forcetypeassert // the pool's own
	defer inflaters.Put(f)
	h := held{r: r, turn: turn{of: &r.big}}
	defer h.turn.done()
	if err := h.take(base.size); err != nil {
		return err
	}
	data, err := r.body(base, f)
	if err != nil {
		return err
	}
	return r.above(base, gitobj.Object{Type: base.kind, Data: data}, f, &h, stand{0, base.size})
}

func (r *resolver) body(e *entry, f *inflater) ([]byte, error) {
	scratch := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's own
	defer buffers.Put(scratch)
	h, body, err := r.pack.raw(e.offset, scratch)
	if err != nil {
		return nil, err
	}
	if h.size > MaxInMemory {
		return nil, fmt.Errorf("%w: a delta or its base", gitobj.ErrPackTooLarge)
	}
	return f.bytes(body, h.size)
}

// stand is how many deltas an object stands on, and how many bytes they and what they make
// have: what reading it takes.
type stand struct {
	deltas int
	bytes  int64
}

// above names what stands on an object, and what stands on that. It gives the
// object's room back: before the last that stands on it is followed, so that a
// chain without branches has two objects in memory, however long it is.
func (r *resolver) above(of *entry, o gitobj.Object, f *inflater, room *held, on stand) error {
	if on.deltas > maxChain {
		return errors.New("a chain of deltas is too long")
	}
	if on.bytes > maxStand {
		return fmt.Errorf("%w: an object stands on deltas that make more than %d bytes", gitobj.ErrPackTooLarge, int64(maxStand))
	}
	size, kind := int64(len(o.Data)), o.Type
	list := slices.Concat(r.standingOn(of), r.onNameOf(of.hash))
	for i, d := range list {
		if !d.claimed.CompareAndSwap(false, true) {
			continue // its base is in the pack twice
		}
		data, err := r.made(d, o.Data, f, room)
		if err != nil {
			return err
		}
		d.name(kind, data)
		r.done.Add(1)
		if i == len(list)-1 {
			o.Data = nil
			room.bytes, size = room.bytes-size, 0
		}
		higher := stand{on.deltas + 1, on.bytes + d.size + int64(len(data))}
		if n := higher.bytes - inProportion*max(int64(len(data)), smallObject); n > 0 && r.beyond.Add(n) > maxBeyond {
			return fmt.Errorf("%w: small objects of it stand on deltas that make more than %d bytes each time they are read", gitobj.ErrPackTooLarge, int64(maxBeyond))
		}
		if err := r.above(d, gitobj.Object{Type: kind, Data: data}, f, room, higher); err != nil {
			return err
		}
	}
	room.bytes -= size
	return nil
}

// made is what a delta makes of its base; room is taken for it before.
func (r *resolver) made(d *entry, base []byte, f *inflater, room *held) ([]byte, error) {
	if err := room.take(d.size); err != nil {
		return nil, err
	}
	delta, err := r.body(d, f)
	if err != nil {
		return nil, err
	}
	makes, err := gitobj.DeltaSize(delta)
	if err == nil {
		err = room.take(makes)
	}
	if err != nil {
		return nil, fmt.Errorf("the delta at %d: %w", d.offset, err)
	}
	data, err := patch(base, delta)
	if err != nil {
		return nil, fmt.Errorf("the delta at %d: %w", d.offset, err)
	}
	room.bytes -= d.size
	return data, nil
}
