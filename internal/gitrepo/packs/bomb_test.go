package packs_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// number is a delta's size, seven bits a byte.
func number(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

// deltaBomb is a pack of a file of zeros and deltas each of which is so many
// times the one before: some hundred bytes that make size×times^levels. wide
// deltas stand beside each other on the last.
func deltaBomb(size, times, levels, wide int) []byte {
	var pack bytes.Buffer
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(1 + levels + wide)})
	last := 0
	put := func(kind byte, back int, body []byte) {
		at := pack.Len()
		n := len(body)
		b := kind<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			pack.WriteByte(b | 0x80)
			b = byte(n & 0x7f)
		}
		pack.WriteByte(b)
		if back > 0 {
			d := []byte{byte(back & 0x7f)}
			for back >>= 7; back > 0; back >>= 7 {
				back--
				d = append([]byte{0x80 | byte(back&0x7f)}, d...)
			}
			pack.Write(d)
		}
		z := zlib.NewWriter(&pack)
		_, _ = z.Write(body)
		_ = z.Close()
		if kind != 6 || last < at {
			last = at
		}
	}
	put(3, 0, make([]byte, size))
	for i := range levels + wide {
		var d bytes.Buffer
		d.Write(number(size))
		makes := size * times
		if i >= levels {
			makes += i - levels + 1
		}
		d.Write(number(makes))
		for range times {
			for left, at := size, 0; left > 0; {
				n := min(left, 0xffffff)
				d.Write([]byte{0xff, byte(at), byte(at >> 8), byte(at >> 16), byte(at >> 24), byte(n), byte(n >> 8), byte(n >> 16)})
				left, at = left-n, at+n
			}
		}
		for k := range makes - size*times {
			d.Write([]byte{1, byte(k)})
		}
		base := last
		put(6, pack.Len()-base, d.Bytes())
		if i < levels {
			size *= times
		} else {
			last = base
		}
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.Bytes()
}

// TestDeltaBombs: a pack is held to what its deltas make, on disk and in memory,
// before that is made.
func TestDeltaBombs(t *testing.T) {
	for _, c := range []struct {
		size, times, levels, wide int
		fits                      bool
	}{
		{1 << 10, 4, 3, 3, true}, {1 << 20, 16, 3, 0, false}, {1 << 20, 400, 1, 0, false}, {1 << 16, 8, 6, 0, false}, {100 << 20, 1, 30, 0, false}, {1 << 20, 1, 300, 0, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			limit := int64(64 << 20)
			if c.fits {
				limit = 0
			}
			pack := deltaBomb(c.size, c.times, c.levels, c.wide)
			dir := t.TempDir()
			d, err := packs.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			for where, read := range map[string]func() error{
				"disk":   func() error { _, err := d.Take(bytes.NewReader(pack)); return err },
				"memory": func() error { _, err := gitobj.ReadPack(bytes.NewReader(pack), limit); return err },
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				err := read()
				took := time.Since(start)
				runtime.ReadMemStats(&after)
				if c.fits {
					if err != nil {
						t.Errorf("%s: %v", where, err)
					}
					continue
				}
				if !errors.Is(err, gitobj.ErrPackTooLarge) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: got %v", where, err)
				}
				if n := after.Sys - before.Sys; n > 800<<20 {
					t.Errorf("%s: took %d MiB", where, n>>20)
				}
				t.Logf("%s: a pack of %d bytes: %v in %s", where, len(pack), err, took)
			}
			if list, err := os.ReadDir(dir); err != nil || !c.fits && len(list) > 0 {
				t.Errorf("left behind: %v, %v", list, err)
			}
		})
	}
}

// FuzzPack: whatever bytes, a pack is refused on disk and in memory, or both
// hold the same objects.
func FuzzPack(f *testing.F) {
	f.Add(deltaBomb(16, 2, 2, 1))
	f.Add(deltaBomb(1, 1, 0, 0))
	f.Add(deltaBomb(1<<10, 60, 3, 0))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if len(pack) > 12 { // its sender makes the checksum right
			pack = bytes.Clone(pack)
			if n := len(pack) - 20; n >= 12 {
				sum := sha1.Sum(pack[:n])
				copy(pack[n:], sum[:])
			}
		}
		d, err := packs.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		_, derr := d.Take(bytes.NewReader(pack))
		set, merr := gitobj.ReadPack(bytes.NewReader(pack), 4<<20)
		if derr != nil || merr != nil {
			return
		}
		for h, o := range set {
			got, err := d.Read(h, 0)
			if err != nil || got.Type != o.Type || !bytes.Equal(got.Data, o.Data) {
				t.Fatalf("%s: %v", h, err)
			}
			if kind, size, err := d.Stat(h); err != nil || kind != o.Type || size != int64(len(o.Data)) {
				t.Fatalf("%s: stat says a %s of %d bytes, %v; it is a %s of %d", h, kind, size, err, o.Type, len(o.Data))
			}
		}
	})
}

// packOf is a pack of entries as they are given: the type and, of a delta, how far back or
// on which name it stands.
func packOf(entries []written) []byte {
	var pack bytes.Buffer
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(len(entries))})
	z, _ := zlib.NewWriterLevel(&pack, zlib.BestSpeed)
	var at []int
	for _, e := range entries {
		at = append(at, pack.Len())
		n := len(e.body)
		b := e.kind<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			pack.WriteByte(b | 0x80)
			b = byte(n & 0x7f)
		}
		pack.WriteByte(b)
		switch e.kind {
		case 6:
			back := at[len(at)-1] - at[e.on]
			d := []byte{byte(back & 0x7f)}
			for back >>= 7; back > 0; back >>= 7 {
				back--
				d = append([]byte{0x80 | byte(back&0x7f)}, d...)
			}
			pack.Write(d)
		case 7:
			pack.Write(e.name[:])
		}
		z.Reset(&pack)
		_, _ = z.Write(e.body)
		_ = z.Close()
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.Bytes()
}

// written is an entry.
type written struct {
	kind byte
	on   int       // of an offset delta: the number of its base
	name tree.Hash // of a delta that names it
	body []byte
}

// longDelta is a delta of some size that makes half of it from the first byte of a base, and
// then a number.
func longDelta(base, size, number int) (d []byte, makes int) {
	makes = size/2 - 16
	d = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(base)), uint64(makes))
	d = append(d, 4)
	d = binary.BigEndian.AppendUint32(d, uint32(number))
	return append(d, bytes.Repeat([]byte{0x90, 1}, makes-4)...), makes
}

// An object that stands on many deltas of megabytes is read with one of them in memory, and
// one that stands on more than is read in a moment is not taken in.
func TestLongChainsOfLargeDeltas(t *testing.T) {
	chain := func(deltas, size int) (pack []byte, top tree.Hash) {
		entries := []written{{kind: 3, body: []byte("x")}}
		last := 1
		for i := range deltas {
			if i == deltas-1 {
				size = 1 << 10
			}
			d, makes := longDelta(last, size, i)
			entries, last = append(entries, written{kind: 6, on: i, body: d}), makes
		}
		body := append(binary.BigEndian.AppendUint32(nil, uint32(deltas-1)), bytes.Repeat([]byte{0}, last-4)...)
		return packOf(entries), gitobj.Object{Type: gitobj.Blob, Data: body}.Hash()
	}
	pack, top := chain(14, 16<<20)
	d, err := packs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.Take(bytes.NewReader(pack)); err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	var before, at runtime.MemStats
	runtime.ReadMemStats(&before)
	most, read := uint64(0), make(chan error)
	go func() {
		o, err := d.Read(top, 1<<20)
		if err == nil && len(o.Data) != 1<<9-16 {
			err = fmt.Errorf("got %d bytes", len(o.Data))
		}
		read <- err
	}()
	for done := false; !done; {
		select {
		case err := <-read:
			if done = true; err != nil {
				t.Error(err)
			}
		case <-time.After(time.Millisecond):
			runtime.ReadMemStats(&at)
			most = max(most, at.HeapAlloc)
		}
	}
	if n := int64(most) - int64(before.HeapAlloc); n > 130<<20 {
		t.Errorf("a pack of %d KiB took %d MiB to read one object", len(pack)>>10, n>>20)
	} else {
		t.Logf("a pack of %d KiB took %d MiB to read one object", len(pack)>>10, n>>20)
	}
	if _, err := d.Take(bytes.NewReader(deltaBomb(15<<20, 1, 72, 0))); !errors.Is(err, gitobj.ErrPackTooLarge) || !strings.Contains(err.Error(), "stands on deltas") {
		t.Errorf("a chain of 72: %v, want it refused", err)
	}
}

// A base that a pack has many times, with many deltas that name it, is gone through once.
func TestBasesThatComeManyTimes(t *testing.T) {
	const times = 50_000
	base := written{kind: 3, body: []byte("base")}
	name := gitobj.Object{Type: gitobj.Blob, Data: base.body}.Hash()
	var entries []written
	for range times {
		entries = append(entries, base)
	}
	for i := range times {
		d := binary.BigEndian.AppendUint32([]byte{4, 8, 4}, uint32(i))
		entries = append(entries, written{kind: 7, name: name, body: append(d, 0x90, 4)})
	}
	pack := packOf(entries)
	d, err := packs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	start := time.Now()
	if _, err := d.Take(bytes.NewReader(pack)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a pack of %d KiB took %s", len(pack)>>10, took)
	}
	if o, err := d.Read(gitobj.Object{Type: gitobj.Blob, Data: []byte("\x00\x00\x00\x07base")}.Hash(), 0); err != nil || len(o.Data) != 8 {
		t.Errorf("got %q, %v", o.Data, err)
	}
}

// A pack has as many objects as the process has memory for, and is refused before it takes
// more.
func TestPacksOfMoreObjectsThanMemoryIsEnoughFor(t *testing.T) {
	entries := make([]written, 5001)
	for i := range entries {
		entries[i] = written{kind: 3, body: binary.BigEndian.AppendUint32(nil, uint32(i))}
	}
	fits, many := packOf(entries[:5000]), packOf(entries)
	d, err := packs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(5000 * 160))
	if _, err := d.Take(bytes.NewReader(many)); !errors.Is(err, gitobj.ErrPackTooLarge) || !strings.Contains(err.Error(), "5001 objects") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := d.Take(bytes.NewReader(fits)); err != nil {
		t.Error(err)
	}
}

// zerosPack is a pack of one body of zeros, of so many times 16 MiB: a thousandth of
// what they inflate to. The last block of a body is not there, which nobody may reach.
func zerosPack(times int) []byte {
	const block = 16 << 20
	var one bytes.Buffer
	z := zlib.NewWriter(&one)
	_, _ = z.Write(make([]byte, block))
	_ = z.Flush()
	head := one.Len()
	_, _ = z.Write(make([]byte, block))
	_ = z.Flush()
	again := one.Bytes()[head:]
	body := slices.Concat(one.Bytes()[:head], bytes.Repeat(again, times-1))
	var pack bytes.Buffer
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, 1})
	n := times * block
	b := byte(3<<4 | n&15)
	for n >>= 4; n > 0; n >>= 7 {
		pack.WriteByte(b | 0x80)
		b = byte(n & 0x7f)
	}
	pack.WriteByte(b)
	pack.Write(body)
	return pack.Bytes()
}

// A body that inflates to a thousand times what was received is refused long before it
// is inflated whole, whatever the 64 GiB of all allow.
func TestBodiesOfZeros(t *testing.T) {
	bounded.Run(t, bounded.Bounds{CPU: 10 * time.Second}, func(t *testing.T) {
		dir, err := packs.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		pack := zerosPack(1_000) // 15.6 GiB
		if _, err := dir.Take(bytes.NewReader(pack)); !errors.Is(err, gitobj.ErrPackTooLarge) {
			t.Errorf("a pack of %d bytes: %v", len(pack), err)
		}
	})
}
