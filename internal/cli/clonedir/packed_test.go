package clonedir_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// chain is a pack of a blob of one byte and deltas of a size that stand on each other; the
// last makes few bytes, and is what top names.
func chain(deltas, size int) (pack []byte, top plumbing.Hash) {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, uint32(deltas + 1)})
	z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	before := 0
	entry := func(kind byte, body []byte) {
		at := b.Len()
		n := len(body)
		head := kind<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(n & 0x7f)
		}
		b.WriteByte(head)
		if kind == 6 {
			back := at - before
			offset := []byte{byte(back & 0x7f)}
			for back >>= 7; back > 0; back >>= 7 {
				back--
				offset = append([]byte{0x80 | byte(back&0x7f)}, offset...)
			}
			b.Write(offset)
		}
		before = at
		z.Reset(&b)
		_, _ = z.Write(body)
		_ = z.Close()
	}
	entry(3, []byte("x"))
	last := 1
	for i := range deltas {
		if i == deltas-1 {
			size = 1 << 10
		}
		makes := size/2 - 16
		d := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(last)), uint64(makes))
		d = binary.BigEndian.AppendUint32(append(d, 4), uint32(i))
		entry(6, append(d, bytes.Repeat([]byte{0x90, 1}, makes-4)...))
		last = makes
	}
	sum := sha1.Sum(b.Bytes()) //nolint:gosec // git's checksum
	b.Write(sum[:])
	body := append(binary.BigEndian.AppendUint32(nil, uint32(deltas-1)), make([]byte, last-4)...)
	return b.Bytes(), plumbing.Hash(gitobj.Object{Type: gitobj.Blob, Data: body}.Hash())
}

// A pack of a megabyte whose object stands on a gigabyte of deltas takes little memory, and
// one of more is refused.
func TestOpen_ChainsOfLargeDeltas(t *testing.T) {
	for name, c := range map[string]struct {
		deltas int
		fine   bool
	}{"long": {12, true}, "too long": {48, false}} {
		t.Run(name, func(t *testing.T) {
			dir, _ := repository(t)
			pack, top := chain(c.deltas, 16<<20)
			name := fmt.Sprintf(".git/objects/pack/pack-%x", pack[len(pack)-20:])
			write(t, filepath.Join(dir, name+".pack"), string(pack))
			run(t, dir, "index-pack", "-o", name+".idx", name+".pack")
			repo, err := clonedir.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer debug.SetGCPercent(debug.SetGCPercent(10))
			runtime.GC()
			var before, at runtime.MemStats
			runtime.ReadMemStats(&before)
			most, read := uint64(0), make(chan error)
			go func() {
				o, err := repo.Storer.EncodedObject(plumbing.BlobObject, top)
				if err == nil {
					var r io.ReadCloser
					if r, err = o.Reader(); err == nil {
						_, err = io.Copy(io.Discard, r)
					}
				}
				read <- err
			}()
			for done := false; !done; {
				select {
				case err := <-read:
					if done = true; (err == nil) != c.fine || err != nil && !errors.Is(err, gitobj.ErrPackTooLarge) {
						t.Errorf("read: %v", err)
					}
				case <-time.After(time.Millisecond):
					runtime.ReadMemStats(&at)
					most = max(most, at.HeapAlloc)
				}
			}
			if n := int64(most) - int64(before.HeapAlloc); n > 130<<20 { //nolint:gosec // far below
				t.Errorf("a pack of %d KiB took %d MiB to read one object", len(pack)>>10, n>>20)
			}
		})
	}
}
