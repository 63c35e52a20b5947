package packs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// inflater is a decompressor that is used again and again: its tables are
// larger than most objects.
type inflater struct {
	z   io.ReadCloser
	src bytes.Reader
	one [1]byte
}

// ends reads the byte after the last one, which must not be there, and with it
// the compressed body's own checksum.
func (f *inflater) ends() error {
	if n, err := f.z.Read(f.one[:]); n > 0 || err == nil {
		return errors.New("an object is longer than its header says")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// reset begins to inflate what src holds.
func (f *inflater) reset(src io.Reader) (err error) {
	if f.z == nil {
		f.z, err = zlib.NewReader(src)
		return err
	}
	return f.z.(zlib.Resetter).Reset(src, nil) //nolint:forcetypeassert // zlib says so
}

// into inflates exactly len(p) bytes of src into p.
func (f *inflater) into(p []byte, src io.Reader) error {
	if err := f.reset(src); err != nil {
		return err
	}
	if _, err := io.ReadFull(f.z, p); err != nil {
		return fmt.Errorf("an object is shorter than its header says: %w", err)
	}
	return f.ends()
}

// through inflates exactly size bytes of src to w, and asks more before each piece.
func (f *inflater) through(w io.Writer, size int64, src io.Reader, more func(int64) error) error {
	if err := f.reset(src); err != nil {
		return err
	}
	for size > 0 {
		n := min(size, piece)
		if err := more(n); err != nil {
			return err
		}
		if _, err := io.CopyN(w, f.z, n); err != nil {
			return fmt.Errorf("an object is shorter than its header says: %w", err)
		}
		size -= n
	}
	return f.ends()
}

// bytes inflates size bytes from compressed.
func (f *inflater) bytes(compressed []byte, size int64) ([]byte, error) {
	f.src.Reset(compressed)
	out := make([]byte, size)
	return out, f.into(out, &f.src)
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}
