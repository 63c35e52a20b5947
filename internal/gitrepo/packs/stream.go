package packs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// header is what stands before an object's compressed body.
type header struct {
	kind gitobj.Type // or plumbing.OFSDeltaObject, plumbing.REFDeltaObject
	// size of the inflated body: the object, or the delta.
	size int64
	// base of a delta: where it begins in this pack, or its name.
	base     int64
	baseHash tree.Hash
}

func (h *header) isDelta() bool {
	return h.kind == plumbing.OFSDeltaObject || h.kind == plumbing.REFDeltaObject
}

// readHeader reads the header of the object at an offset
// (gitformat-pack(5): "object entries").
func readHeader(r io.ByteReader, offset int64) (h header, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return h, err
	}
	h.kind = gitobj.Type(b >> 4 & 7)
	h.size = int64(b & 15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if shift > 53 {
			return h, errors.New("an object's size is out of range")
		}
		if b, err = r.ReadByte(); err != nil {
			return h, err
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.kind {
	case gitobj.Commit, gitobj.Tree, gitobj.Blob, gitobj.Tag:
	case plumbing.OFSDeltaObject:
		h.base, err = readBase(r, offset)
	case plumbing.REFDeltaObject:
		for i := range h.baseHash {
			if h.baseHash[i], err = r.ReadByte(); err != nil {
				break
			}
		}
	default:
		err = fmt.Errorf("object type %d is unknown", h.kind)
	}
	return h, err
}

// readBase reads how far before a delta its base begins.
func readBase(r io.ByteReader, offset int64) (int64, error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	back := int64(b & 0x7f)
	for b&0x80 != 0 {
		if back > offset {
			break
		}
		if b, err = r.ReadByte(); err != nil {
			return 0, err
		}
		back = (back+1)<<7 | int64(b&0x7f)
	}
	if back <= 0 || back >= offset {
		return 0, errors.New("a delta's base lies outside the pack")
	}
	return offset - back, nil
}

// stream reads a pack once from front to back: it copies what arrives to a
// file, counts, and sums. Only what was asked for is summed, so that the
// checksum ends where the trailer begins.
type stream struct {
	src  io.Reader
	copy io.Writer
	// broken is a failure of the copy, as opposed to the source's.
	broken error

	buf      []byte
	pos, end int   // within buf
	start    int64 // offset of buf[0]
	crcFrom  int   // what of buf is not in crc yet
	sumFrom  int   // what of buf is not in sum yet
	crc      uint32
	sum      hash.Hash
}

const streamBuffer = 256 << 10

// MaxReceived is how many bytes a pack may have: what never ends must not fill a
// disk. A pack of so much does not come from a repo of text.
const MaxReceived = 4 << 30

func newStream(src io.Reader, to io.Writer, sum hash.Hash) *stream {
	return &stream{src: src, copy: to, buf: make([]byte, streamBuffer), sum: sum}
}

// offset of the next byte.
func (s *stream) offset() int64 { return s.start + int64(s.pos) }

func (s *stream) fill() error {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, s.buf[s.crcFrom:s.end])
	s.sum.Write(s.buf[s.sumFrom:s.end])
	s.start += int64(s.end)
	s.pos, s.end, s.crcFrom, s.sumFrom = 0, 0, 0, 0
	if s.start > MaxReceived {
		return fmt.Errorf("%w: it has more than %d bytes", gitobj.ErrPackTooLarge, int64(MaxReceived))
	}
	n, err := io.ReadAtLeast(s.src, s.buf, 1)
	s.end = n
	if n > 0 {
		if _, werr := s.copy.Write(s.buf[:n]); werr != nil {
			s.broken = werr
			return werr
		}
		return nil
	}
	return err
}

// ReadByte implements io.ByteReader, which keeps a decompressor from reading
// beyond the end of its object.
func (s *stream) ReadByte() (byte, error) {
	if s.pos == s.end {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.buf[s.pos]
	s.pos++
	return b, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if s.pos == s.end {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.pos:s.end])
	s.pos += n
	return n, nil
}

// begin starts the checksum of one object.
func (s *stream) begin() {
	s.crc, s.crcFrom = 0, s.pos
}

// objectSum is the checksum of what was read since begin.
func (s *stream) objectSum() uint32 {
	return crc32.Update(s.crc, crc32.IEEETable, s.buf[s.crcFrom:s.pos])
}

// preamble reads a pack's first twelve bytes and returns the count of objects.
func (s *stream) preamble() (uint32, error) {
	var b [12]byte
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return 0, fmt.Errorf("the pack has no header: %w", err)
	}
	if !gitobj.IsPack(b[:8]) {
		return 0, gitobj.ErrNoPack
	}
	return binary.BigEndian.Uint32(b[8:]), nil
}

// trailer compares the checksum of everything so far with the one that
// follows, after which nothing may come.
func (s *stream) trailer() (tree.Hash, error) {
	s.sum.Write(s.buf[s.sumFrom:s.pos])
	s.sumFrom = s.pos
	is := tree.Hash(s.sum.Sum(nil))
	var want tree.Hash
	if _, err := io.ReadFull(s, want[:]); err != nil {
		return is, fmt.Errorf("the pack ends without its checksum: %w", err)
	}
	if is != want {
		return is, errors.New("the pack's checksum is wrong")
	}
	if _, err := s.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("something follows the pack's checksum")
		}
		return is, err
	}
	return is, nil
}

var _ interface {
	io.Reader
	io.ByteReader
} = (*stream)(nil)

// writer buffers a pack's way to disk.
func writer(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, streamBuffer) }
