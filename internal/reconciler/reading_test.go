package reconciler

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// twoDirs is a store in which every directory but the root has the same bytes.
type twoDirs struct {
	root      tree.Hash
	top, rest []byte
}

func (s twoDirs) Dir(h tree.Hash) ([]tree.Entry, error) {
	if h == s.root {
		return gitobj.DecodeDir(s.top)
	}
	return gitobj.DecodeDir(s.rest)
}

func (s twoDirs) File(tree.Hash, int64) ([]byte, error) { return []byte("kind: x\n"), nil }

func (s twoDirs) Size(tree.Hash) (int64, error) { return 8, nil }

// FuzzOneReading: whatever bytes a tree has, it is refused before anybody reads
// it, or listing, finding, comparing (as delivery, verification and the search
// for foreign edits do), writing it again and the fleet's reader see the same
// paths.
func FuzzOneReading(f *testing.F) {
	h := tree.BlobHash(nil)
	dir := func(entries ...tree.Entry) []byte { return tree.EncodeDir(entries) }
	file := func(name string) tree.Entry { return tree.Entry{Name: name, Hash: h} }
	sub := func(name string) tree.Entry { return tree.Entry{Name: name, Kind: tree.Dir, Hash: tree.Hash{1}} }
	f.Add(dir(file("fleet.yaml"), sub("intents")), dir(file("a.yaml")))
	f.Add(dir(file("fleet.yaml"), file("fleet.yaml"), sub("intents")), dir(file("../nlp/x.yaml")))
	f.Add(dir(sub("intents"), sub("tenants")), dir(file("a"), file("a.b"), sub("a")))
	f.Add(dir(sub("intents"), sub("intents")), dir(file("sub/evil.yaml")))
	f.Fuzz(func(t *testing.T, top, rest []byte) {
		s := twoDirs{tree.Hash{9}, top, rest}
		vetter := tree.NewVetter(tree.DefaultBounds)
		stored := tree.Tree{Store: s, Root: s.root}
		root, err := vetter.Bounded(stored)
		var w tree.Weight
		if err == nil {
			w, err = vetter.Whole(stored, nil)
		}
		if err != nil {
			if !errors.As(err, new(*tree.BrokenError)) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if w.Entries > 10_000 {
			return
		}
		// One that knows directories from other places, or has seen the tree before, sees the same.
		for _, v := range []*tree.Vetter{vetter, tree.NewVetter(tree.DefaultBounds)} {
			for _, sub := range [][]string{{"intents"}, nil} {
				if _, err := v.Whole(tree.Tree{Store: s, Root: tree.Hash{1}}, sub); err != nil && !errors.As(err, new(*tree.BrokenError)) {
					t.Fatal(err)
				}
			}
			if again, err := v.Bounded(stored); err != nil || again.Root != root.Root {
				t.Fatalf("bounded to %s, %v; at first to %s", again.Root, err, root.Root)
			}
		}
		listed := map[string]tree.Entry{}
		if err := root.Walk(func(p string, e tree.Entry) error {
			if _, twice := listed[p]; twice {
				return fmt.Errorf("%q twice", p)
			}
			listed[p] = e
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		compared := map[string]tree.Entry{}
		if err := tree.Diff(tree.Tree{}, root, func(p string, _, to tree.Entry) error {
			compared[p] = to
			return nil
		}); err != nil || !maps.Equal(listed, compared) {
			t.Fatalf("listed %v, compared %v, %v", listed, compared, err)
		}
		for p, e := range listed {
			if got, err := root.Find(p); err != nil || got != e {
				t.Fatalf("%q: found %+v, %v, listed %+v", p, got, err, e)
			}
			// Names that are not UTF-8 are git's to have, and fs.ValidPath's not.
			if !fs.ValidPath(strings.ToValidUTF8(p, "\ufffd")) || strings.Contains(p, "\x00") {
				t.Fatalf("%q is no path", p)
			}
		}
		again, err := tree.With(root, map[string]tree.Entry{"\x01new": {Name: "\x01new", Hash: h}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := again.Walk(func(p string, e tree.Entry) error {
			if p == "\x01new" {
				return nil
			}
			if n++; listed[p] != e {
				return fmt.Errorf("%q is %+v, was %+v", p, e, listed[p])
			}
			return nil
		}); err != nil || n+1 < len(listed) {
			t.Fatalf("written again: %d of %d paths, %v", n, len(listed), err)
		}
		read, err := fleet.NewReader().Read(t.Context(), root, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range read.Diagnostics {
			if _, ok := listed[d.File]; !ok && !known(root, listed, d.File) {
				t.Fatalf("the fleet's reader speaks of %q, listed are %q", d.File, slices.Sorted(maps.Keys(listed)))
			}
		}
	})
}

// known reports whether a path is a directory, of what is listed or empty, or
// stands for what is missing.
func known(root tree.Tree, listed map[string]tree.Entry, p string) bool {
	if e, err := root.Find(p); err == nil && e.Kind == tree.Dir {
		return true
	}
	for l := range listed {
		if len(l) > len(p) && l[:len(p)] == p && l[len(p)] == '/' {
			return true
		}
	}
	return p == "fleet.yaml" || p == ""
}
