package packs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// FuzzIndex: a damaged index is refused, or each object that it finds lies
// within the pack and ends behind where it begins.
func FuzzIndex(f *testing.F) {
	name := filepath.Join(f.TempDir(), "good.idx")
	if err := writeIndex(name, []located{{tree.Hash{1}, 12, 7}, {tree.Hash{1, 2}, 40, 8}, {tree.Hash{250}, 90, 9}}, tree.Hash{5}); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, int64(200))
	f.Add(good, int64(90))
	f.Add(good[:len(good)/2], int64(200))
	f.Add([]byte("\xfftOc\x00\x00\x00\x02"), int64(12))
	name = filepath.Join(f.TempDir(), "fuzz.idx")
	f.Fuzz(func(t *testing.T, content []byte, end int64) {
		if end < 0 {
			return
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := readIndex(name, end)
		if err != nil {
			return
		}
		if len(x.names) != len(x.offsets)*hashSize || len(x.ordered) < len(x.offsets) {
			t.Fatalf("%d names of %d objects", len(x.names)/hashSize, len(x.offsets))
		}
		for i := range x.offsets {
			at, ok := x.find(tree.Hash(x.names[i*hashSize:]))
			stop, ends := x.end(at)
			if !ok || at != x.offsets[i] || at < 0 || at >= end || ends && stop > end {
				t.Fatalf("object %d begins at %d (%v) and ends at %d (%v) of %d", i, at, ok, stop, ends, end)
			}
		}
	})
}
