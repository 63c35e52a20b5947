package packs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

const hashSize = len(tree.Hash{})

// index tells where in a pack an object begins and where it ends. 36 bytes an
// object, without pointers.
type index struct {
	fan   [257]uint32 // objects whose first byte is smaller
	names []byte      // sorted, hashSize each
	// offsets by name, and all of them in order with the end of the last.
	offsets []int64
	ordered []int64
}

// located is an object and where it lies.
type located struct {
	hash   tree.Hash
	offset int64
	crc    uint32
}

// newIndex indexes objects of which end is where the last one ends. The list
// is sorted in place; of an object that a pack holds twice the first counts.
func newIndex(list []located, end int64) *index {
	slices.SortFunc(list, func(a, b located) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	x := &index{names: make([]byte, 0, len(list)*hashSize), offsets: make([]int64, 0, len(list)), ordered: make([]int64, 0, len(list)+1)}
	for i := range list {
		x.ordered = append(x.ordered, list[i].offset)
		if i > 0 && list[i].hash == list[i-1].hash {
			continue
		}
		x.names = append(x.names, list[i].hash[:]...)
		x.offsets = append(x.offsets, list[i].offset)
		x.fan[int(list[i].hash[0])+1]++
	}
	for i := 1; i < len(x.fan); i++ {
		x.fan[i] += x.fan[i-1]
	}
	x.ordered = append(x.ordered, end)
	slices.Sort(x.ordered)
	return x
}

// packSize is the size of the pack that it is of, in bytes.
func (x *index) packSize() int64 { return x.ordered[len(x.ordered)-1] + trailerSize }

// size is that of its own file: what is of fixed size, and of each object its name,
// checksum and offset.
func (x *index) size() int64 {
	size := 8 + 256*4 + 2*hashSize + len(x.offsets)*(hashSize+4+4)
	for _, offset := range x.offsets {
		if offset >= 1<<31 {
			size += 8
		}
	}
	return int64(size)
}

// find is where an object begins.
func (x *index) find(h tree.Hash) (int64, bool) {
	low, high := int(x.fan[h[0]]), int(x.fan[int(h[0])+1])
	i := low + sort.Search(high-low, func(i int) bool {
		at := (low + i) * hashSize
		return bytes.Compare(x.names[at:at+hashSize], h[:]) >= 0
	})
	if i == high || !bytes.Equal(x.names[i*hashSize:(i+1)*hashSize], h[:]) {
		return 0, false
	}
	return x.offsets[i], true
}

// end is where the object that begins at an offset ends.
func (x *index) end(offset int64) (int64, bool) {
	i, ok := slices.BinarySearch(x.ordered, offset)
	if !ok || i+1 >= len(x.ordered) {
		return 0, false
	}
	return x.ordered[i+1], true
}

// writeIndex writes git's index of a pack.
func writeIndex(name string, list []located, checksum tree.Hash) (err error) {
	var w idxfile.Writer
	if err := w.OnHeader(uint32(len(list))); err != nil { //nolint:gosec // a pack's header counts in 32 bits
		return err
	}
	for i := range list {
		w.Add(plumbing.Hash(list[i].hash), uint64(list[i].offset), list[i].crc) //nolint:gosec // never negative
	}
	if err := w.OnFooter(plumbing.Hash(checksum)); err != nil {
		return err
	}
	x, err := w.Index()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // our own state directory
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	_, err = idxfile.NewEncoder(f).Encode(x)
	return err
}

// readIndex reads git's index of a pack of which end is where its last object
// ends.
func readIndex(name string, end int64) (*index, error) {
	f, err := os.Open(name) //nolint:gosec // our own state directory
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(f).Decode(x); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	entries, err := x.Entries()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var list []located
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return newIndex(list, end), nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if e.Offset >= uint64(end) { //nolint:gosec // never negative
			return nil, fmt.Errorf("read %s: an object lies beyond the pack's end", name)
		}
		list = append(list, located{tree.Hash(e.Hash), int64(e.Offset), e.CRC32}) //nolint:gosec // below end
	}
}
