package gitobj

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's checksum of a pack
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Pack encodes the set as a packfile, without deltas (the objects of one
// commit are few and small; a search for deltas costs more than it saves) and
// compressed for speed: a commit of 64 contracts has more than 500 objects of
// some hundred bytes each. Equal sets give equal bytes.
func (s Set) Pack() ([]byte, error) { return s.pack(&deflaters) }

// PackStored is Pack without compression, for a reader in the same process.
func (s Set) PackStored() ([]byte, error) { return s.pack(&storers) }

func (s Set) pack(with *sync.Pool) ([]byte, error) {
	names := make([]tree.Hash, 0, len(s))
	for h := range s {
		names = append(names, h)
	}
	slices.SortFunc(names, func(a, b tree.Hash) int { return bytes.Compare(a[:], b[:]) })
	var buf bytes.Buffer
	buf.Grow(s.Bytes()/2 + 64*len(s) + 64)
	buf.WriteString("PACK")
	var word [4]byte
	for _, n := range []uint32{2, uint32(len(s))} { // version and count
		binary.BigEndian.PutUint32(word[:], n)
		buf.Write(word[:])
	}
	z := with.Get().(*zlib.Writer) //nolint:forcetypeassert // nothing else is put there
	defer with.Put(z)
	for _, h := range names {
		o := s[h]
		packHeader(&buf, o.Type, len(o.Data))
		z.Reset(&buf)
		if _, err := z.Write(o.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", h, err)
		}
		if err := z.Close(); err != nil {
			return nil, fmt.Errorf("pack %s: %w", h, err)
		}
	}
	sum := sha1.Sum(buf.Bytes()) //nolint:gosec // git's checksum of a pack
	buf.Write(sum[:])
	return buf.Bytes(), nil
}

// packHeader writes an entry's type and size: four bits of the size beside the
// type, then seven a byte, lowest first.
func packHeader(buf *bytes.Buffer, t Type, size int) {
	b := byte(t)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		buf.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	buf.WriteByte(b)
}

// deflaters are compressors that are used again: their tables are larger than
// most objects. storers only frame.
var (
	deflaters = sync.Pool{New: func() any { return writer(zlib.BestSpeed) }}
	storers   = sync.Pool{New: func() any { return writer(zlib.NoCompression) }}
)

func writer(level int) *zlib.Writer {
	z, err := zlib.NewWriterLevel(nil, level)
	if err != nil {
		panic(err) // the level exists
	}
	return z
}
