package gitobj_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// FuzzReadPack: whatever bytes, the quick way through a pack without deltas and
// the general one see the same objects, or both refuse.
func FuzzReadPack(f *testing.F) {
	set := gitobj.Set{}
	for i := range 5 {
		b := set.Add(gitobj.Blob, []byte(fmt.Sprint("content ", i)))
		set.Add(gitobj.Tree, rawDir(rawEntry{"100644", "a", b}))
	}
	for _, pack := range []func() ([]byte, error){set.Pack, set.PackStored, gitobj.Set{}.Pack} {
		p, err := pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p[:len(p)-sha1.Size])
		f.Add(p[:len(p)-sha1.Size-3])
		f.Add(append(p[:len(p)-sha1.Size:len(p)-sha1.Size], 0))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha1.Sum(body)
		pack := append(body[:len(body):len(body)], sum[:]...)
		mem := memory.NewStorage()
		want := gitobj.StorePack(bytes.NewReader(pack), 1<<20, mem)
		got, err := gitobj.ReadPack(bytes.NewReader(pack), 1<<20)
		if (want == nil) != (err == nil) {
			t.Fatalf("ReadPack says %v, StorePack %v", err, want)
		}
		if err != nil {
			return
		}
		if len(got) != len(mem.Objects) {
			t.Fatalf("ReadPack has %d objects, StorePack %d", len(got), len(mem.Objects))
		}
		for h, o := range mem.Objects {
			data, err := gitobj.ReadObject(o)
			if err != nil {
				t.Fatal(err)
			}
			if g := got[tree.Hash(h)]; g.Type != o.Type() || !bytes.Equal(g.Data, data) || g.Hash() != tree.Hash(h) {
				t.Fatalf("object %s differs", h)
			}
		}
	})
}
