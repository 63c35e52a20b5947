package packs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// onOne is a pack of n objects of some bytes that stand on one of size bytes.
func onOne(kind gitobj.Type, size, n, makes int) (pack []byte, names []tree.Hash) {
	base := bytes.Repeat([]byte{'a'}, size)
	entries := []written{{kind: byte(kind), body: base}}
	for i := range n {
		d := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(makes))
		d = binary.BigEndian.AppendUint32(append(d, 4), uint32(i))
		d = append(d, 0xb0, byte(makes-4), byte((makes-4)>>8))
		entries = append(entries, written{kind: 6, body: d})
		body := append(binary.BigEndian.AppendUint32(nil, uint32(i)), base[:makes-4]...)
		names = append(names, gitobj.Object{Type: kind, Data: body}.Hash())
	}
	return packOf(entries), names
}

// A file is as large as it is: whether it is read does not go by what it stands on in the pack
// that a server happened to make, nor by what lies in a cache.
func TestSizeOfWhatAnObjectStandsOn(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int{2 << 20, 15 << 20, 100 << 20} {
		pack, names := onOne(gitobj.Blob, size, 2, 60_000)
		d, err := packs.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if _, err := d.Take(bytes.NewReader(pack)); err != nil {
			t.Fatal(err)
		}
		for _, h := range names {
			if o, err := d.Read(h, limit); err != nil || len(o.Data) != 60_000 {
				t.Errorf("on %d MiB: %d bytes, %v", size>>20, len(o.Data), err)
			}
			if _, err := d.Read(h, 50_000); !errors.Is(err, tree.ErrTooLarge) {
				t.Errorf("on %d MiB: %v, want it too large", size>>20, err)
			}
		}
		base := gitobj.Object{Type: gitobj.Blob, Data: bytes.Repeat([]byte{'a'}, size)}.Hash()
		if _, err := d.Read(base, limit); !errors.Is(err, tree.ErrTooLarge) {
			t.Errorf("%d MiB: %v, want it too large", size>>20, err)
		}
	}
}

// Commits of a kilobyte that each stand on a quarter of a gigabyte would take a tenth of a
// second to read, each time: some are taken in, thousands are not.
func TestSmallObjectsThatStandOnMuch(t *testing.T) {
	for n, fits := range map[int]bool{20: true, 1000: false} {
		pack, names := onOne(gitobj.Commit, 200<<20, n, 1000)
		d, err := packs.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		_, err = d.Take(bytes.NewReader(pack))
		switch {
		case fits && err != nil:
			t.Errorf("%d: %v", n, err)
		case fits:
			if o, err := d.Read(names[0], 0); err != nil || len(o.Data) != 1000 {
				t.Errorf("%d bytes, %v", len(o.Data), err)
			}
		case !errors.Is(err, gitobj.ErrPackTooLarge) || !strings.Contains(err.Error(), "each time they are read"):
			t.Errorf("%d in a pack of %d KiB: %v, want it refused", n, len(pack)>>10, err)
		}
	}
}
