package judge

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// remote is a story's repository as the judge reads it.
type remote struct{ *memremote.Remote }

func (r remote) RawCommit(h tree.Hash) ([]byte, error) { return r.Objects().Commit(h) }
func (remote) Offered() (gitrepo.Commit, error)        { return gitrepo.Commit{}, nil }

// window is the ledger's line, newest first.
func window(t *testing.T, s *story.Story) (out []tree.Hash) {
	t.Helper()
	for at := s.Remote.Head("ledger"); !at.IsZero(); {
		out = append(out, at)
		raw, err := s.Remote.Objects().Commit(at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := gitobj.ParseCommit(raw)
		if err != nil {
			t.Fatal(err)
		}
		at = tree.Hash{}
		if len(c.Parents) > 0 {
			at = c.Parents[0]
		}
	}
	return out
}

// TestJudge: a real daemon's ledger is verified, a foreign commit is named, each commit is
// judged once, and there is a pause between runs.
func TestJudge(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	var mu sync.Mutex
	now := time.Now()
	j := New(Options{
		Repo: remote{s.Remote}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
	})
	of := func() State {
		t.Helper()
		w := window(t, s)
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
			if st := j.Of(t.Context(), "ledger", w[0], s.Remote.Head("main"), w, true); !st.Running {
				return st
			}
		}
		t.Fatal("the run does not end")
		return State{}
	}
	first := of()
	if all := len(window(t, s)); first.Head != window(t, s)[0] || first.Commits != all || first.Decisions == 0 || len(first.Violations) > 0 || first.Trouble != "" || all < 5 {
		t.Fatalf("of %d commits: %+v", all, first)
	}
	before := s.Remote.Head("ledger")
	root, err := s.Remote.Tree(before)
	if err != nil {
		t.Fatal(err)
	}
	victim := ""
	if err := root.Walk(func(name string, _ tree.Entry) error {
		if strings.HasPrefix(name, "contracts/") && !strings.Contains(name, "_intent") {
			victim = name
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	foreign, err := s.Remote.Commit("ledger", gitobj.Person{Name: "Eve", Email: "eve@example.org", When: s.At}, "mine\n", gitobj.Change{Deletes: []string{victim}})
	if err != nil {
		t.Fatal(err)
	}
	if got := of(); got.Head != before || len(got.Violations) > 0 {
		t.Errorf("within the pause: %+v", got)
	}
	mu.Lock()
	now = now.Add(pause)
	mu.Unlock()
	got := of()
	list := got.Violations[foreign.String()]
	if got.Head != foreign || got.Commits != first.Commits+1 || len(got.Violations) != 1 || len(list) == 0 || list[0].Rule != "foreign" || list[0].Path != victim {
		t.Errorf("after a foreign commit: %+v", got)
	}
	if len(first.Violations) > 0 {
		t.Error("what was shown before has changed")
	}
	if again := of(); again.Commits != got.Commits {
		t.Errorf("with nothing new %d commits were judged, after %d", again.Commits, got.Commits)
	}
}

// TestJudge_Window: of a long history the oldest commit that is looked at is taken as it
// stands; a run that fails begins anew.
func TestJudge_Window(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	w := window(t, s)
	w = w[:len(w)/2]
	j := New(Options{Repo: remote{s.Remote}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	end := func(head tree.Hash) State {
		t.Helper()
		st := j.Of(t.Context(), "ledger", head, s.Remote.Head("main"), w, false)
		for until := time.Now().Add(30 * time.Second); st.Running && time.Now().Before(until); <-time.After(5 * time.Millisecond) {
			st = j.Of(t.Context(), "ledger", head, s.Remote.Head("main"), w, false)
		}
		return st
	}
	if st := end(w[0]); st.From != w[len(w)-1] || st.Commits != len(w)-1 || len(st.Violations) > 0 || st.Trouble != "" {
		t.Errorf("of %d commits: %+v", len(w), st)
	}
	j.ended = time.Time{}
	if st := end(tree.BlobHash([]byte("nothing"))); st.Trouble == "" || !st.Head.IsZero() {
		t.Errorf("of a commit that is not there: %+v", st)
	}
	j.ended = time.Time{}
	if st := end(w[0]); st.Trouble != "" || st.Commits != len(w)-1 {
		t.Errorf("afterwards: %+v", st)
	}
}
