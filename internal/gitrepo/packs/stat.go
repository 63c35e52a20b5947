package packs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Stat tells what an object is and how large, without reading it. The size of a
// delta's result is what the delta says of it; Take has held it to that.
func (d *Dir) Stat(h tree.Hash) (gitobj.Type, int64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return 0, 0, ErrClosed
	}
	p, offset, ok := d.find(h)
	if !ok {
		return 0, 0, ErrNotFound
	}
	return p.stat(offset)
}

// headBytes is enough of most entries for their header, and for the two sizes with which a
// delta begins (16 bytes at most, compressed). Where the tables of its compression are longer,
// or nothing is given out before more is there, moreBytes are: a window of 32 KiB is made of
// less.
const (
	headBytes = 128
	moreBytes = 128 << 10
)

func (p *pack) stat(offset int64) (gitobj.Type, int64, error) {
	var buf [headBytes]byte
	size := int64(-1)
	for range maxChain + 1 {
		end, ok := p.index.end(offset)
		if !ok {
			return 0, 0, errors.New("a delta's base begins where no object does")
		}
		head := buf[:min(int64(len(buf)), end-offset)]
		if err := p.window.read(p, head, offset); err != nil {
			return 0, 0, err
		}
		r := bytes.NewReader(head)
		h, err := readHeader(r, offset)
		if err != nil {
			return 0, 0, err
		}
		if !h.isDelta() {
			if size < 0 {
				size = h.size
			}
			return h.kind, size, nil
		}
		if size < 0 {
			size, err = deltaSize(head[len(head)-r.Len():], h.size)
			if more := min(moreBytes, end-offset); err != nil && more > int64(len(head)) {
				all := make([]byte, more)
				if err = p.window.read(p, all, offset); err == nil {
					size, err = deltaSize(all[len(head)-r.Len():], h.size)
				}
			}
			if err != nil {
				return 0, 0, err
			}
		}
		if offset = h.base; h.kind == plumbing.REFDeltaObject {
			if offset, ok = p.index.find(h.baseHash); !ok {
				return 0, 0, fmt.Errorf("the pack lacks %s, the base of a delta", h.baseHash)
			}
		}
	}
	return 0, 0, errors.New("a chain of deltas is too long")
}

// deltaSize is the size that a delta makes, from the beginning of its compressed
// body.
func deltaSize(compressed []byte, size int64) (int64, error) {
	f := inflaters.Get().(*inflater) //nolint:forcetypeassert // the pool's own
	defer inflaters.Put(f)
	f.src.Reset(compressed)
	if err := f.reset(&f.src); err != nil {
		return 0, err
	}
	var head [20]byte
	n, err := io.ReadFull(f.z, head[:min(size, int64(len(head)))])
	if err != nil && n == 0 {
		return 0, err
	}
	return gitobj.DeltaSize(head[:n])
}
