package packs

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1" //nolint:gosec // git's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

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

// writeIndex writes the index of a pack (gitformat-pack(5), version 2) as it goes: a pack has
// millions of objects. It sorts the list by name; of a name that is there twice one is kept.
func writeIndex(name string, list []located, checksum tree.Hash) (err error) {
	slices.SortFunc(list, func(a, b located) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.offset, b.offset))
	})
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // our own state directory
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	sum := sha1.New() //nolint:gosec // git's checksum
	w := bufio.NewWriter(io.MultiWriter(f, sum))
	var b [8]byte
	word := func(n uint32) {
		binary.BigEndian.PutUint32(b[:4], n)
		_, _ = w.Write(b[:4]) // Flush tells
	}
	each := func(do func(*located)) {
		for i := range list {
			if i == 0 || list[i].hash != list[i-1].hash {
				do(&list[i])
			}
		}
	}
	var fan [256]uint32
	each(func(l *located) { fan[l.hash[0]]++ })
	_, _ = w.WriteString("\xfftOc")
	word(2)
	total := uint32(0)
	for _, n := range fan {
		total += n
		word(total)
	}
	each(func(l *located) { _, _ = w.Write(l.hash[:]) })
	each(func(l *located) { word(l.crc) })
	const far = 1 << 31
	var beyond []int64
	each(func(l *located) {
		if l.offset < far {
			word(uint32(l.offset)) //nolint:gosec // below far
			return
		}
		word(far | uint32(len(beyond))) //nolint:gosec // a pack is bounded
		beyond = append(beyond, l.offset)
	})
	for _, offset := range beyond {
		binary.BigEndian.PutUint64(b[:], uint64(offset)) //nolint:gosec // never negative
		_, _ = w.Write(b[:])
	}
	_, _ = w.Write(checksum[:])
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = f.Write(sum.Sum(nil))
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
	return decodeIndex(f, name, end)
}

func decodeIndex(f io.Reader, name string, end int64) (*index, error) {
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
