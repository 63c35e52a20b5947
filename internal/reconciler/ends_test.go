package reconciler

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// emptied is a fleet of seven intents, six of which a commit, that is returned,
// takes away: too many at once.
func emptied(t *testing.T) (*story, tree.Hash) {
	t.Helper()
	s := newStory(t, "ledger")
	files := map[string]string{}
	var paths []string
	for i := range 6 {
		name := fmt.Sprintf("job%d", i)
		files["intents/vision/"+name+".yaml"] = intentOf(name, "1")
		paths = append(paths, "intents/vision/"+name+".yaml")
	}
	files["intents/vision/stays.yaml"] = intentOf("stays", "1")
	s.push(files)
	s.rest()
	gone := s.delete(paths...)
	return s, gone
}

func (s *story) delete(paths ...string) tree.Hash {
	s.t.Helper()
	h, err := s.remote.Commit("main", ada, "Done", gitobj.Change{Deletes: paths})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// released counts the releases that rounds until rest commit.
func (s *story) released() int {
	s.t.Helper()
	n := 0
	for _, subject := range s.rest() {
		if strings.HasPrefix(subject, "release ") || strings.Contains(subject, "6 released") {
			n++
		}
	}
	return n
}

// Leave for a commit of the inputs holds on later ones where nothing else ends,
// and on no others.
func TestAllowEnds_OnALaterCommitWithTheSameEnds(t *testing.T) {
	for name, c := range map[string]struct {
		// after the commit that leave is given for; leave is for another where that is
		// returned.
		after func(*story, tree.Hash) tree.Hash
		ends  bool
		says  string // code of the line that says why not, "" for none
	}{
		"the commit itself": {func(_ *story, gone tree.Hash) tree.Hash { return gone }, true, ""},
		"a later commit": {func(s *story, gone tree.Hash) tree.Hash {
			s.push(map[string]string{"README.md": "Moved on\n"})
			return gone
		}, true, ""},
		"a later one that deletes more": {func(s *story, gone tree.Hash) tree.Hash {
			s.delete("intents/vision/stays.yaml")
			return gone
		}, false, "FB1106"},
		"a later one that asks for more": {func(s *story, gone tree.Hash) tree.Hash {
			s.push(map[string]string{"intents/vision/new.yaml": intentOf("new", "1")})
			return gone
		}, true, ""},
		"an earlier commit": {func(s *story, gone tree.Hash) tree.Hash {
			data, err := s.remote.Objects().Commit(gone)
			if err != nil {
				s.t.Fatal(err)
			}
			c, err := gitobj.ParseCommit(data)
			if err != nil {
				s.t.Fatal(err)
			}
			return c.Parents[0]
		}, false, "FB1106"},
		"an earlier one that cannot be read": {func(s *story, _ tree.Hash) tree.Hash {
			good, set := s.tree("main"), gitobj.Set{}
			bad, err := s.remote.CommitTree("main", eve, "Twice", set, spoilers["a name twice"](s.t, good, "tenants", set), nil)
			if err != nil {
				s.t.Fatal(err)
			}
			if _, err := s.remote.CommitTree("main", ada, "Revert", nil, good.Root, nil); err != nil {
				s.t.Fatal(err)
			}
			return bad
		}, false, "FB1105"},
		"a commit of the ledger": {func(s *story, _ tree.Hash) tree.Hash { return s.remote.Head("ledger") }, false, "FB1104"},
		"no commit":              {func(*story, tree.Hash) tree.Hash { return tree.BlobHash([]byte("x")) }, false, "FB1104"},
	} {
		t.Run(name, func(t *testing.T) {
			s, gone := emptied(t)
			leave := c.after(s, gone)
			if n := s.released(); n > 0 {
				t.Fatalf("%d releases without leave", n)
			}
			s.start()
			s.r.opts.AllowEnds = leave
			if n := s.released(); (n > 0) != c.ends {
				t.Errorf("%d releases with leave for %s", n, leave.Short())
			}
			if c.says != "" {
				s.lines.Wants(t, c.says)
			}
		})
	}
}

// That ends are held back is logged once, until it is for something else or over.
func TestHeldBack_IsLoggedOnce(t *testing.T) {
	s, _ := emptied(t)
	var log bytes.Buffer
	s.r.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	rounds := func() {
		t.Helper()
		for i := range 3 {
			s.push(map[string]string{"README.md": fmt.Sprintln(s.at, i)}) // a round that plans
			s.rest()
		}
	}
	said := func() [2]int {
		return [2]int{strings.Count(log.String(), "ends are held back\""), strings.Count(log.String(), "ends are not held back any more")}
	}
	rounds()
	if got := said(); got != [2]int{1, 0} {
		t.Fatalf("logged %v times, want once:\n%s", got, log.String())
	}
	back := map[string]string{}
	for i := range 6 {
		name := fmt.Sprintf("job%d", i)
		back["intents/vision/"+name+".yaml"] = intentOf(name, "1")
	}
	s.push(back)
	rounds()
	if got := said(); got != [2]int{1, 1} {
		t.Fatalf("logged %v times, want once each:\n%s", got, log.String())
	}
}
