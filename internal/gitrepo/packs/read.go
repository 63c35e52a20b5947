package packs

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's names
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/fleetbroker/fleetbroker/internal/api/generations"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

const (
	// MaxInMemory is the largest object that is read into memory, in bytes. git
	// makes no deltas of larger ones (core.bigFileThreshold is 512 MiB), so that
	// they can be taken in without being held.
	MaxInMemory = 512 << 20
	// maxMade bounds what a delta makes, and what lies in memory between a base
	// and what stands on it while it is taken in: a few bytes may ask for any
	// size. maxTotal bounds what a pack holds when all is made, maxLarge what is made
	// in pieces over large, which nobody reads as a file, in bytes.
	maxMade  = 256 << 20
	maxTotal = 64 << 30
	large    = 16 << 20
	maxLarge = 2 << 30
	// maxStand bounds what is made and unmade to read one object that stands on a chain of
	// deltas, and heldDeltas what of the chain's deltas lies in memory, in bytes.
	maxStand   = 1 << 30
	heldDeltas = 16 << 20
	// What an object stands on beyond inProportion times its own size (and that of small ones)
	// is out of proportion: git makes no delta of what is less than a 32nd of its base, in
	// chains of 50. maxBeyond bounds that of all objects of a pack, in bytes: each is made
	// again whenever its object is read, because no cache has room for it.
	inProportion = 256
	smallObject  = 4 << 10
	maxBeyond    = 8 << 30
	// maxChain is git's own limit on pack.depth.
	maxChain = 4095
	// cachedBases is what lies in memory of delta bases, in bytes.
	cachedBases = 32 << 20
)

// pack is one open pack.
type pack struct {
	name  string // without its suffix
	file  File
	index *index
	local *local // nil: what deltas make was bounded when it was taken in
	// of the Dir:
	bases  *baseCache
	window *window
	big    *sync.Mutex // held by the one reader at a time that has much in memory
}

// raw is the header of the entry at an offset and its compressed body, which
// lies in scratch if that may grow so large.
func (p *pack) raw(offset int64, scratch *[]byte) (header, []byte, error) {
	end, ok := p.index.end(offset)
	if !ok {
		return header{}, nil, errors.New("a delta's base begins where no object does")
	}
	n := int(end - offset)
	buf := slices.Grow((*scratch)[:0], n)[:n]
	if n <= maxScratch {
		*scratch = buf
	}
	if p.window != nil && n <= pageSize {
		if err := p.window.read(p, buf, offset); err != nil {
			return header{}, nil, err
		}
	} else if _, err := p.file.ReadAt(buf, offset); err != nil {
		return header{}, nil, fmt.Errorf("read %s: %w", p.file.Name(), err)
	}
	r := bytes.NewReader(buf)
	h, err := readHeader(r, offset)
	return h, buf[len(buf)-r.Len():], err
}

// read reads the object at an offset, of at most limit bytes, however large what it stands
// on: another copy of the object stands on something else, and is the same object.
func (p *pack) read(offset, limit int64) (gitobj.Object, error) {
	f := inflaters.Get().(*inflater) //nolint:forcetypeassert // the pool's own
	defer inflaters.Put(f)
	scratch := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's own
	defer buffers.Put(scratch)
	room := turn{of: p.big}
	defer room.done()
	var deltas []link
	var base gitobj.Object
	kept := int64(0)
	for {
		if len(deltas) > 0 {
			if o, ok := p.bases.get(baseKey{p, offset}); ok {
				base = o
				break
			}
		}
		h, body, err := p.raw(offset, scratch)
		if err != nil {
			return gitobj.Object{}, err
		}
		if h.size > MaxInMemory || (limit > 0 && h.size > limit && !h.isDelta() && len(deltas) == 0) {
			return gitobj.Object{}, tree.ErrTooLarge
		}
		room.take(h.size)
		at := link{offset: offset}
		if !h.isDelta() || len(deltas) == 0 || kept+h.size <= heldDeltas {
			if at.delta, err = f.bytes(body, h.size); err != nil {
				return gitobj.Object{}, err
			}
		}
		if !h.isDelta() {
			base = gitobj.Object{Type: h.kind, Data: at.delta}
			if len(deltas) > 0 {
				p.bases.put(baseKey{p, offset}, base)
			}
			break
		}
		if len(deltas) == 0 {
			if err := fits(at.delta, limit); err != nil {
				return gitobj.Object{}, err
			}
		}
		kept += int64(len(at.delta))
		if deltas = append(deltas, at); len(deltas) > maxChain {
			return gitobj.Object{}, errors.New("a chain of deltas is too long")
		}
		if offset = h.base; h.kind == plumbing.REFDeltaObject {
			var ok bool
			if offset, ok = p.index.find(h.baseHash); !ok {
				return gitobj.Object{}, fmt.Errorf("the pack lacks %s, the base of a delta", h.baseHash)
			}
		}
	}
	return p.patched(base, deltas, f, scratch, &room)
}

// link is a delta of a chain; its text is nil where it is to be read when it is needed.
type link struct {
	offset int64
	delta  []byte
}

// patched is what a chain of deltas, the last first, makes of a base.
func (p *pack) patched(base gitobj.Object, deltas []link, f *inflater, scratch *[]byte, room *turn) (gitobj.Object, error) {
	made := int64(0)
	for i := len(deltas) - 1; i >= 0; i-- {
		at := deltas[i]
		if at.delta == nil {
			h, body, err := p.raw(at.offset, scratch)
			if err == nil {
				at.delta, err = f.bytes(body, h.size)
			}
			if err != nil {
				return gitobj.Object{}, err
			}
		}
		makes, err := gitobj.DeltaSize(at.delta)
		if err != nil {
			return gitobj.Object{}, err
		}
		room.take(makes)
		if made += makes + int64(len(at.delta)); p.local != nil && made > maxStand {
			return gitobj.Object{}, fmt.Errorf("%w: an object stands on deltas that make more than %d bytes", gitobj.ErrPackTooLarge, int64(maxStand))
		}
		if base.Data, err = patch(base.Data, at.delta); err != nil {
			return gitobj.Object{}, err
		}
		deltas[i].delta = nil
		if i > 0 {
			p.bases.put(baseKey{p, at.offset}, base)
		}
	}
	if len(deltas) == 0 {
		return base, nil
	}
	return base, p.local.beyond(baseKey{p, deltas[0].offset}, made, int64(len(base.Data)))
}

// fits refuses a delta whose result is larger than a limit.
func fits(delta []byte, limit int64) error {
	size, err := gitobj.DeltaSize(delta)
	if err != nil {
		return err
	}
	if size > maxMade || (limit > 0 && size > limit) {
		return tree.ErrTooLarge
	}
	return nil
}

// patch applies a delta whose result is small enough.
func patch(base, delta []byte) ([]byte, error) {
	if err := fits(delta, 0); err != nil {
		return nil, err
	}
	return packfile.PatchDelta(base, delta)
}

// maxScratch is the largest buffer that is kept for the next read.
const maxScratch = 1 << 20

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// hashOf is an object's name. It is for what was taken in before: collisions
// were looked for then, and here damage is.
func hashOf(o gitobj.Object) tree.Hash {
	sum := sha1.New() //nolint:gosec // git's names
	var b [32]byte
	head := append(b[:0], o.Type.String()...)
	head = append(head, ' ')
	head = strconv.AppendInt(head, int64(len(o.Data)), 10)
	sum.Write(append(head, 0))
	sum.Write(o.Data)
	return tree.Hash(sum.Sum(nil))
}

// baseCache holds what deltas stand on.
type baseCache struct {
	mu   sync.Mutex
	kept generations.Cache[baseKey, gitobj.Object]
}

type baseKey struct {
	pack   *pack
	offset int64
}

func (c *baseCache) get(k baseKey) (gitobj.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Get(k)
}

func (c *baseCache) put(k baseKey, o gitobj.Object) {
	if len(o.Data) > cachedBases/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Most, c.kept.Weigh = cachedBases/2, func(o gitobj.Object) int { return len(o.Data) + 64 }
	c.kept.Put(k, o)
}
