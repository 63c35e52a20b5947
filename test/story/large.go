package story

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// TooLarge gives a tenant a directory that is deeper than is read, asks for
// something for another tenant, and lets the daemon rest.
func (s *Story) TooLarge(tenant string) {
	s.t.Helper()
	s.Push("Let nlp in", map[string]string{"tenants/nlp.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome]}\n"})
	s.Rest()
	root, err := s.Remote.Tree(s.Remote.Head("main"))
	if err != nil {
		s.t.Fatal(err)
	}
	set := gitobj.Set{}
	deep := set.Add(gitobj.Tree, tree.EncodeDir([]tree.Entry{{Name: "x", Hash: set.Add(gitobj.Blob, []byte("x"))}}))
	for range tree.DefaultBounds.Depth {
		deep = set.Add(gitobj.Tree, tree.EncodeDir([]tree.Entry{{Name: "d", Kind: tree.Dir, Hash: deep}}))
	}
	put := func(at tree.Tree, name string, h tree.Hash) tree.Hash {
		entries, err := at.Entries()
		if err != nil {
			s.t.Fatal(err)
		}
		entries = slices.DeleteFunc(slices.Clone(entries), func(e tree.Entry) bool { return e.Name == name })
		entries = append(entries, tree.Entry{Name: name, Kind: tree.Dir, Hash: h})
		tree.Sort(entries)
		return set.Add(gitobj.Tree, tree.EncodeDir(entries))
	}
	intents, err := root.Sub("intents")
	if err != nil {
		s.t.Fatal(err)
	}
	own, err := intents.Sub(tenant)
	if err != nil {
		s.t.Fatal(err)
	}
	top := put(root, "intents", put(intents, tenant, put(own, "large", deep)))
	who := gitobj.Person{Name: "Eve", Email: "eve@example.org", When: s.At}
	if _, err := s.Remote.CommitTree("main", who, "Large", set, top, nil); err != nil {
		s.t.Fatal(err)
	}
	s.Push("Ask for talk", map[string]string{"intents/nlp/talk.yaml": strings.ReplaceAll(Intent("talk", 1), "namespace: vision", "namespace: nlp")})
	s.Rest()
	if n := len(s.Read().ByIntent("nlp", "talk")); n != 1 {
		s.t.Fatalf("the other tenant has %d contracts, want 1", n)
	}
}

// SmallAgain takes back what TooLarge gave, in the name of another person.
func (s *Story) SmallAgain(tenant string) {
	s.t.Helper()
	who := gitobj.Person{Name: "Bob", Email: "bob@example.org", When: s.At}
	if _, err := s.Remote.Commit("main", who, "Small", gitobj.Change{Deletes: []string{"intents/" + tenant + "/large"}}); err != nil {
		s.t.Fatal(err)
	}
	s.Rest()
}
