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
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
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
