package gitrepo_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

func TestLastChange(t *testing.T) {
	m := seeded(t)
	first := m.Head("main")
	b := team(t, m, "intents/vision/b.yaml", "1")
	team(t, m, "intents/nlp/c.yaml", "1")
	b2 := team(t, m, "intents/vision/b.yaml", "2")
	last := team(t, m, "intents/nlp/c.yaml", "2")
	r := open(t, m, options())
	h := fetch(t, r)
	for p, want := range map[string]tree.Hash{
		"intents/vision/a.yaml": first, "intents/vision/b.yaml": b2, "intents/nlp/c.yaml": last, "intents/nlp": last, "none": {},
	} {
		c, err := r.LastChange(t.Context(), h.Inputs.Commit.Hash, p)
		if err != nil || c.Hash != want {
			t.Errorf("%s: got %s, %v; want %s", p, c.Hash.Short(), err, want.Short())
		}
	}
	c, err := r.LastChange(t.Context(), b, "intents/vision/b.yaml")
	if err != nil || c.Hash != b || c.Author.String() != "Ada <ada@example.org>" || !c.When().Equal(noon) || c.Subject() != "edit intents/vision/b.yaml" {
		t.Errorf("as of an earlier commit: got %+v, %v", c, err)
	}
	changes, err := r.Changes(t.Context(), first, h.Inputs.Commit.Hash, "intents/vision/")
	if err != nil || len(changes) != 1 || changes["intents/vision/b.yaml"].Commit.Hash != b2 || changes["intents/vision/b.yaml"].Kind != gitrepo.Added {
		t.Errorf("Changes: got %+v, %v", changes, err)
	}
	changes, err = r.Changes(t.Context(), h.Inputs.Commit.Hash, first, "")
	if err != nil || changes["intents/nlp/c.yaml"].Kind != gitrepo.Deleted || !changes["intents/nlp/c.yaml"].Commit.IsZero() {
		t.Errorf("Changes backwards: got %+v, %v", changes, err)
	}
}

// Histories of any shape and with any clocks: LastChanges and Changes agree
// with a plain walk over a linear history.
func TestHistoryAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := memremote.New()
		files := map[string]string{}
		var states []map[string]string
		last := map[string]tree.Hash{}
		var lasts []map[string]tree.Hash
		var commits []tree.Hash
		for i := range rapid.IntRange(1, 12).Draw(t, "commits") {
			p := rapid.SampledFrom([]string{"a/x", "a/y", "a/z/w", "b/x", "c"}).Draw(t, "path")
			who := person("Ada")
			who.When = noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "skew")) * time.Minute)
			ch := gitobj.Change{}
			if _, there := files[p]; there && rapid.Bool().Draw(t, "delete") {
				ch.Deletes = []string{p}
				delete(files, p)
				delete(last, p)
			} else {
				files[p] = fmt.Sprint(i)
				ch.Puts = map[string][]byte{p: []byte(files[p])}
			}
			h, err := m.Commit("main", who, "x\n", ch)
			if err != nil {
				t.Fatal(err)
			}
			if _, there := files[p]; there {
				last[p] = h
			}
			commits = append(commits, h)
			states = append(states, maps.Clone(files))
			lasts = append(lasts, maps.Clone(last))
		}
		r, err := gitrepo.Open(t.Context(), m, options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := len(commits) - 1
		got, err := r.LastChanges(t.Context(), commits[n], []string{"a/x", "a/y", "a/z/w", "b/x", "c"})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(last) {
			t.Fatalf("LastChanges: got %v, want %v", got, last)
		}
		for p, c := range got {
			if c.Hash != last[p] {
				t.Fatalf("%s: got %s, want %s", p, c.Hash.Short(), last[p].Short())
			}
		}
		from := rapid.IntRange(0, n).Draw(t, "from")
		changes, err := r.Changes(t.Context(), commits[from], commits[n], "")
		if err != nil {
			t.Fatal(err)
		}
		for p := range maps.Keys(states[n]) {
			c, changed := changes[p]
			if want := states[from][p] != states[n][p]; changed != want {
				t.Fatalf("%s changed: got %v, want %v", p, changed, want)
			}
			if changed && c.Commit.Hash != lasts[n][p] {
				t.Fatalf("%s: changed by %s, want %s", p, c.Commit.Hash.Short(), lasts[n][p].Short())
			}
		}
	})
}
