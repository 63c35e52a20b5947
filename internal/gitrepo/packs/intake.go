package packs

import (
	"crypto/sha1" //nolint:gosec // git's checksum
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// entry is an object while its pack is taken in.
type entry struct {
	header
	offset int64
	crc    uint32
	hash   tree.Hash
	// claimed: a delta that somebody resolves.
	claimed atomic.Bool
}

// intake takes one pack in.
type intake struct {
	file    *os.File
	entries []*entry
	end     int64 // where the last object ends
	made    int64 // bytes of all bodies so far, inflated
}

// What bodies inflate to is bounded by what was received: honest packs of more than
// someMade bytes have a fraction of ratio, and a body of zeros a thousand times its own.
const (
	someMade = 1 << 30
	ratio    = 64
	// piece of a large body is inflated before the bound is looked at again, in bytes.
	piece = 1 << 20
)

// makes counts bytes that are about to be inflated.
func (t *intake) makes(n int64, s *stream) error {
	if t.made += n; t.made > someMade+ratio*s.offset() || t.made > maxTotal {
		return fmt.Errorf("%w: %d bytes of it make more than %d", gitobj.ErrPackTooLarge, s.offset(), t.made-n)
	}
	return nil
}

// Take reads a pack to its end, checks and indexes it, and makes its objects
// known. A pack without objects changes nothing. ours tells, with an error,
// that the disk failed and not what was read.
func (d *Dir) Take(src io.Reader) (ours bool, err error) {
	f, err := os.CreateTemp(d.path, tmpPrefix+"*"+packSuffix)
	if err != nil {
		return true, fmt.Errorf("take a pack in: %w", err)
	}
	t := intake{file: f}
	checksum, ours, err := t.receive(src)
	if err == nil {
		err = t.resolve()
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		ours, err = true, cerr
	}
	if err != nil || len(t.entries) == 0 {
		if rerr := os.Remove(f.Name()); rerr != nil {
			ours, err = true, errors.Join(err, rerr)
		}
		if err != nil {
			err = fmt.Errorf("take a pack in: %w", err)
		}
		return ours, err
	}
	list := make([]located, len(t.entries))
	for i, e := range t.entries {
		list[i] = located{e.hash, e.offset, e.crc}
	}
	t.entries = nil // before what follows takes as much
	if err := d.publish(f.Name(), list, t.end, checksum); err != nil {
		return true, fmt.Errorf("take a pack in: %w", err)
	}
	return false, nil
}

// hashed is an inflated object on its way to a name.
type hashed struct {
	of   *entry
	data *[]byte
}

// inline is the size from which an object is hashed while it is inflated
// instead of after it.
const inline = 1 << 20

// receive copies a pack to the file and names everything that is not a delta.
func (t *intake) receive(src io.Reader) (checksum tree.Hash, ours bool, err error) {
	w := writer(t.file)
	s := newStream(src, w, sha1.New()) //nolint:gosec // git's checksum
	work := make(chan hashed, 256)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for h := range work {
				h.of.name(h.of.kind, *h.data)
				buffers.Put(h.data)
			}
		})
	}
	err = t.scan(s, work)
	close(work)
	workers.Wait()
	if err == nil {
		checksum, err = s.trailer()
	}
	if err == nil {
		if err = w.Flush(); err != nil {
			return checksum, true, err
		}
	}
	if s.broken != nil {
		return checksum, true, s.broken
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the pack is cut off: %w", io.ErrUnexpectedEOF)
	}
	return checksum, false, err
}

// mostObjects is how many objects a pack may have in a process of so much memory: each takes
// perObject while it is taken in. Without a limit of memory it is a hundred million.
func mostObjects(memory int64) int64 {
	const perObject, ever = 160, 100_000_000
	return min(memory/perObject, ever)
}

// scan reads all entries.
func (t *intake) scan(s *stream, work chan<- hashed) error {
	count, err := s.preamble()
	if err != nil {
		return err
	}
	var f inflater
	most := mostObjects(debug.SetMemoryLimit(-1))
	var block []entry // the count is the sender's word: room is made as objects come
	for i := range count {
		if int64(i) == most {
			return fmt.Errorf("%w: it has %d objects, and the memory of this process (GOMEMLIMIT) is enough for %d: raise it, and the container's, if they are the fleet's", gitobj.ErrPackTooLarge, count, most)
		}
		if len(block) == 0 {
			block = make([]entry, min(count-i, 1<<14))
		}
		e := &block[0]
		block = block[1:]
		t.entries = append(t.entries, e)
		e.offset = s.offset()
		s.begin()
		if e.header, err = readHeader(s, e.offset); err == nil {
			err = t.inflate(e, s, &f, work)
		}
		if err != nil {
			return fmt.Errorf("object %d of %d: %w", i+1, count, err)
		}
		e.crc = s.objectSum()
	}
	t.end = s.offset()
	return nil
}

// inflate reads an entry's body, which names it unless it is a delta.
func (t *intake) inflate(e *entry, s *stream, f *inflater, work chan<- hashed) error {
	more := func(n int64) error { return t.makes(n, s) }
	switch {
	case e.isDelta():
		return f.through(io.Discard, e.size, s, more)
	case e.size > inline:
		h := plumbing.NewHasher(e.kind, e.size)
		if err := f.through(h, e.size, s, more); err != nil {
			return err
		}
		e.hash = tree.Hash(h.Sum())
		return nil
	}
	if err := more(e.size); err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's own
	*buf = slices.Grow((*buf)[:0], int(e.size))[:e.size]
	if err := f.into(*buf, s); err != nil {
		return err
	}
	work <- hashed{e, buf}
	return nil
}

// name names an object by its content, with an eye on collisions.
func (e *entry) name(kind gitobj.Type, data []byte) {
	e.hash = tree.Hash(plumbing.ComputeHash(kind, data))
}
