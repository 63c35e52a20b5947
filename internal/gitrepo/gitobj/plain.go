package gitobj

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's checksum of a pack
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// mostPlain is the largest object that readPlain takes, in bytes.
const mostPlain = 1 << 20

// inflaters are used again: their windows are larger than most objects.
var inflaters sync.Pool

// readPlain decodes a pack that is as Set.Pack writes it: whole, of small objects,
// without deltas. It inflates each object once. Of any other pack it says nothing:
// that is left to the general parser, verdict and words included.
func readPlain(pack []byte, limit int64) (Set, bool) {
	const head, tail = 12, sha1.Size
	if len(pack) < head+tail || string(pack[:4]) != "PACK" || binary.BigEndian.Uint32(pack[4:]) != 2 {
		return nil, false
	}
	body, count := pack[head:len(pack)-tail], binary.BigEndian.Uint32(pack[8:])
	if sum := sha1.Sum(pack[:len(pack)-tail]); !bytes.Equal(sum[:], pack[len(pack)-tail:]) { //nolint:gosec // git's checksum of a pack
		return nil, false
	}
	r, set := bytes.NewReader(body), make(Set, min(int(count), len(body)/8))
	z, _ := inflaters.Get().(io.ReadCloser)
	defer func() {
		if z != nil {
			inflaters.Put(z)
		}
	}()
	var beyond [1]byte
	for range count {
		kind, size, ok := plainHeader(r)
		if limit -= size + perObject; !ok || size > mostPlain || limit < 0 {
			return nil, false
		}
		var err error
		if z == nil {
			z, err = zlib.NewReader(r)
		} else {
			err = z.(zlib.Resetter).Reset(r, nil) //nolint:forcetypeassert // zlib says so
		}
		if err != nil {
			return nil, false
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(z, data); err != nil {
			return nil, false
		}
		if n, err := z.Read(beyond[:]); n != 0 || err != io.EOF {
			return nil, false
		}
		set.Add(kind, data)
	}
	return set, r.Len() == 0
}

// plainHeader reads what stands before an object that is no delta.
func plainHeader(r *bytes.Reader) (Type, int64, bool) {
	first, err := r.ReadByte()
	if err != nil || r.UnreadByte() != nil {
		return 0, 0, false
	}
	kind := Type(first >> 4 & 7)
	delta, size, err := entryHeader(r)
	return kind, size, err == nil && !delta && (kind == Commit || kind == Tree || kind == Blob || kind == Tag)
}
