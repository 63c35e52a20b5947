package gitobj

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/klauspost/compress/zlib"
)

const (
	// mostInMemory is what a pack read into memory may hold at most where the
	// caller names no limit, in bytes.
	mostInMemory = 2 << 30
	// mostReceived is how many bytes such a pack may have itself.
	mostReceived = 128 << 20
	// perObject is what an object costs beside its bytes.
	perObject = 128
)

// weigh adds up what a pack holds once it is read: each object, and of a delta
// what it makes, by what the headers say. It inflates without keeping anything,
// so that a pack that is small and makes much is refused before it does.
func weigh(pack []byte, limit int64) error {
	if len(pack) < 12 {
		return nil // the parser tells
	}
	count := binary.BigEndian.Uint32(pack[8:])
	r := bytes.NewReader(pack[12:])
	var z io.ReadCloser
	left := limit
	for i := range count {
		delta, size, err := entryHeader(r)
		if err == nil {
			if z == nil {
				z, err = zlib.NewReader(r)
			} else {
				err = z.(zlib.Resetter).Reset(r, nil) //nolint:forcetypeassert // zlib says so
			}
		}
		if left -= size + perObject; left < 0 {
			return ErrPackTooLarge
		}
		if err == nil {
			var makes int64
			if makes, err = through(z, delta, size); err == nil {
				if left -= makes; left < 0 {
					return fmt.Errorf("%w: its deltas make more than %d bytes", ErrPackTooLarge, limit)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("object %d of %d: %w", i+1, count, err)
		}
	}
	return nil
}

// through inflates one body to its end, and tells what a delta makes.
func through(z io.Reader, delta bool, size int64) (makes int64, err error) {
	if delta {
		head := make([]byte, min(size, 20))
		if _, err := io.ReadFull(z, head); err != nil {
			return 0, err
		}
		if makes, err = DeltaSize(head); err != nil {
			return 0, err
		}
		size -= int64(len(head))
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, size+1))
	if err == nil && n != size {
		err = errors.New("its length is not what its header says")
	}
	return makes, err
}

// entryHeader reads what stands before an object's body.
func entryHeader(r io.ByteReader) (delta bool, size int64, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return false, 0, err
	}
	kind := Type(b >> 4 & 7)
	size = int64(b & 15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if shift > 53 {
			return false, 0, errors.New("its size is out of range")
		}
		if b, err = r.ReadByte(); err != nil {
			return false, 0, err
		}
		size |= int64(b&0x7f) << shift
	}
	switch kind {
	case plumbing.OFSDeltaObject:
		for b = 0x80; b&0x80 != 0 && err == nil; {
			b, err = r.ReadByte()
		}
		return true, size, err
	case plumbing.REFDeltaObject:
		for range len(plumbing.Hash{}) {
			if _, err = r.ReadByte(); err != nil {
				break
			}
		}
		return true, size, err
	}
	return false, size, nil
}

// DeltaSize is the size that a delta says its result has: the second of the two
// numbers that it begins with.
func DeltaSize(delta []byte) (int64, error) {
	var size int64
	for range 2 {
		size = 0
		for shift := 0; ; shift += 7 {
			if len(delta) == 0 || shift > 49 {
				return 0, errors.New("a delta does not begin with two sizes")
			}
			b := delta[0]
			delta = delta[1:]
			size |= int64(b&0x7f) << shift
			if b&0x80 == 0 {
				break
			}
		}
	}
	return size, nil
}
