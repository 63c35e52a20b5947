package reviews

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// TestBrokenPullRequestsAreTold: a tree that git refuses, or that unrolls to much
// more than the inputs have, is not read, and its author sees why.
func TestBrokenPullRequestsAreTold(t *testing.T) {
	levels := func(set gitobj.Set, n int) tree.Entry {
		e := tree.Entry{Name: "x.yaml", Kind: tree.File, Hash: set.Add(gitobj.Blob, []byte(intent("x", 1)))}
		for range n {
			var list []tree.Entry
			for i := range 10 {
				list = append(list, tree.Entry{Name: string(rune('0'+i)) + e.Name, Kind: e.Kind, Hash: e.Hash})
			}
			e = tree.Entry{Name: "z", Kind: tree.Dir, Hash: set.Add(gitobj.Tree, tree.EncodeDir(list))}
		}
		return e
	}
	for name, c := range map[string]struct {
		entry func(gitobj.Set) tree.Entry
		want  string
	}{
		"another's directory": {func(s gitobj.Set) tree.Entry {
			return tree.Entry{Name: "../z.yaml", Hash: s.Add(gitobj.Blob, []byte("x"))}
		}, "holds a slash"},
		"a bomb":       {func(s gitobj.Set) tree.Entry { return levels(s, 20) }, "more than 4000000 entries"},
		"a small bomb": {func(s gitobj.Set) tree.Entry { return levels(s, 5) }, "they repeat each other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.rounds()
			root, err := s.remote.Tree(s.remote.Head("main"))
			if err != nil {
				t.Fatal(err)
			}
			entries, err := root.Entries()
			if err != nil {
				t.Fatal(err)
			}
			set := gitobj.Set{}
			list := append([]tree.Entry{c.entry(set)}, entries...)
			tree.Sort(list)
			s.remote.SetRef("refs/heads/broken", s.remote.Head("main"))
			head, err := s.remote.CommitTree("broken", mallory, "Ask", set, set.Add(gitobj.Tree, tree.EncodeDir(list)), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := s.fake.Add(forgetest.Pull{Title: "Ask", Author: "mallory", Branch: "broken", Base: "main", Fork: true})
			s.remote.SetRef("refs/pull/1/head", head)
			s.fake.Change(n, func(p *forgetest.Pull) { p.Head = head.String() })
			s.fake.Say(n, "grace", "/plan "+head.String())
			s.pass()
			states, said := s.states(n)
			if text := said + s.comment(n, marker); strings.Join(states, " ") != "pending failure" || !strings.Contains(text, "broken tree") || !strings.Contains(text, c.want) {
				t.Errorf("got %v: %s", states, text)
			}
			s.rounds()
			if v := s.loop.View(); v.Trouble != "" {
				t.Errorf("the daemon is in trouble: %s", v.Trouble)
			}
		})
	}
}
