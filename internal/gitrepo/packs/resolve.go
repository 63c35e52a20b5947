package packs

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	// Deltas by where their base begins, sorted, and by their base's name.
	onOffset []*entry
	onName   map[tree.Hash][]*entry
	done     atomic.Int64
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
			bases = append(bases, e)
		}
	}
	r.pack.index.ordered = append(r.pack.index.ordered, t.end)
	slices.SortFunc(r.onOffset, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.offset, b.offset))
	})
	bases = slices.DeleteFunc(bases, func(e *entry) bool { return !r.carries(e) })
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

// carries reports whether deltas stand on an object.
func (r *resolver) carries(e *entry) bool {
	return len(r.standingOn(e)) > 0 || len(r.onName[e.hash]) > 0
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
	data, err := r.body(base, f)
	if err != nil {
		return err
	}
	return r.above(base, gitobj.Object{Type: base.kind, Data: data}, f, 0)
}

func (r *resolver) body(e *entry, f *inflater) ([]byte, error) {
	scratch := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's own
	defer buffers.Put(scratch)
	h, body, err := r.pack.raw(e.offset, scratch)
	if err != nil {
		return nil, err
	}
	if h.size > MaxInMemory {
		return nil, errors.New("a delta or its base is too large")
	}
	return f.bytes(body, h.size)
}

// above names what stands on an object, and what stands on that.
func (r *resolver) above(of *entry, o gitobj.Object, f *inflater, depth int) error {
	if depth > maxChain {
		return errors.New("a chain of deltas is too long")
	}
	for _, list := range [...][]*entry{r.standingOn(of), r.onName[of.hash]} {
		for _, d := range list {
			if !d.claimed.CompareAndSwap(false, true) {
				continue // its base is in the pack twice
			}
			delta, err := r.body(d, f)
			if err != nil {
				return err
			}
			data, err := patch(o.Data, delta)
			if err != nil {
				return fmt.Errorf("the delta at %d: %w", d.offset, err)
			}
			d.name(o.Type, data)
			r.done.Add(1)
			if err := r.above(d, gitobj.Object{Type: o.Type, Data: data}, f, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
