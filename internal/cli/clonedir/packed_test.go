package clonedir_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// chain is a pack of a blob of 64 KiB and deltas of a size that stand on each other and make
// as much, with its index; where copies is set they are a few hundred bytes that make so much.
// The last makes few bytes, and is what top names. The other objects' names are made up:
// working them out takes longer than all else, and nobody asks for them.
func chain(t *testing.T, deltas, size int, copies bool) (pack, index []byte, top plumbing.Hash) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, uint32(deltas + 1)})
	var x idxfile.Writer
	_ = x.OnHeader(uint32(deltas + 1))
	z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	before := 0
	entry := func(kind byte, body []byte, name plumbing.Hash) {
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
		x.Add(name, uint64(at), crc32.ChecksumIEEE(b.Bytes()[at:]))
	}
	const block = 64 << 10 // what a copy without a size takes
	last := make([]byte, block)
	entry(3, last, plumbing.Hash{1})
	for i := range deltas {
		if i == deltas-1 {
			size = block
		}
		d := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(last))), uint64(size))
		if copies {
			d = append(d, bytes.Repeat([]byte{0x80}, size/block)...)
			last = make([]byte, size)
		} else {
			last = bytes.Repeat([]byte{byte(i)}, size)
			for at := 0; at < size; at += 127 {
				n := min(127, size-at)
				d = append(append(d, byte(n)), last[at:at+n]...)
			}
		}
		name := plumbing.Hash{2, byte(i)}
		if i == deltas-1 {
			top = plumbing.Hash(gitobj.Object{Type: gitobj.Blob, Data: last}.Hash())
			name = top
		}
		entry(6, d, name)
	}
	sum := sha1.Sum(b.Bytes()) //nolint:gosec // git's checksum
	b.Write(sum[:])
	var out bytes.Buffer
	err := x.OnFooter(sum)
	if err == nil {
		var made *idxfile.MemoryIndex
		if made, err = x.Index(); err == nil {
			_, err = idxfile.NewEncoder(&out).Encode(made)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), out.Bytes(), top
}

// A pack whose object stands on deltas of many megabytes takes little memory, not that of all
// of them, and one of more than a gigabyte is refused.
func TestOpen_ChainsOfLargeDeltas(t *testing.T) {
	for name, c := range map[string]struct {
		deltas, size int
		copies, fine bool
		most         int64 // MiB
	}{"long": {24, 4 << 20, false, true, 64}, "too long": {48, 24 << 20, true, false, 200}} {
		t.Run(name, func(t *testing.T) {
			dir, _ := repository(t)
			pack, index, top := chain(t, c.deltas, c.size, c.copies)
			name := fmt.Sprintf(".git/objects/pack/pack-%x", pack[len(pack)-20:])
			write(t, filepath.Join(dir, name+".pack"), string(pack))
			write(t, filepath.Join(dir, name+".idx"), string(index))
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
			n := (int64(most) - int64(before.HeapAlloc)) >> 20 //nolint:gosec // far below
			if t.Logf("%d KiB, %d MiB of deltas: %d MiB", len(pack)>>10, c.deltas*c.size>>20, n); n > c.most {
				t.Errorf("a pack of %d KiB took %d MiB to read one object", len(pack)>>10, n)
			}
		})
	}
}
