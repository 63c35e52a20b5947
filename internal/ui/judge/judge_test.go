package judge

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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

// gated is a repository whose commits are read only as far as a test lets them be.
type gated struct {
	remote

	gate func(h tree.Hash) error
}

func (g gated) RawCommit(h tree.Hash) ([]byte, error) {
	if err := g.gate(h); err != nil {
		return nil, err
	}
	return g.remote.RawCommit(h)
}

// TestJudge_SaysHowFar: while a run is under way the state says how many commits are done.
func TestJudge_SaysHowFar(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	w := window(t, s)
	j := New(Options{Repo: remote{s.Remote}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	tell := j.progress(t.Context())
	began := time.Now()
	<-time.After(40 * time.Millisecond)
	tell(3, 10)
	if st := j.Of(t.Context(), "ledger", w[0], s.Remote.Head("main"), nil, true); st.Done != 3 || st.All != 10 {
		t.Errorf("%+v", st)
	}
	if took := time.Since(began); took < 80*time.Millisecond {
		t.Errorf("it rested for %s after 40 ms of work", took-40*time.Millisecond)
	}
	seen := false
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		st := j.Of(t.Context(), "ledger", w[0], s.Remote.Head("main"), w, true)
		seen = seen || st.Running && st.All == len(w)
		if !st.Running {
			if st.Commits != len(w) {
				t.Errorf("%+v", st)
			}
			break
		}
	}
	if !seen {
		t.Error("no state said how many commits there are")
	}
}

// TestJudge_BacksOff: after runs that fail the pause grows, up to an hour; after one that
// does not it is a minute again.
func TestJudge_BacksOff(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	w := window(t, s)
	var mu sync.Mutex
	now, broken, runs := time.Now(), true, 0
	j := New(Options{
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }, Done: func() { mu.Lock(); defer mu.Unlock(); runs++ },
		Repo: gated{remote{s.Remote}, func(tree.Hash) error {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return errors.New("broken")
			}
			return nil
		}},
	})
	look := func() (st State, ran bool) {
		t.Helper()
		mu.Lock()
		before := runs
		mu.Unlock()
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-time.After(2 * time.Millisecond) {
			if st = j.Of(t.Context(), "ledger", w[0], s.Remote.Head("main"), w, true); !st.Running {
				mu.Lock()
				defer mu.Unlock()
				return st, runs > before
			}
		}
		t.Fatal("the run does not end")
		return st, false
	}
	pass := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	for i, rest := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		if st, ran := look(); !ran || st.Trouble == "" {
			t.Fatalf("run %d: ran %t, %+v", i, ran, st)
		}
		pass(rest - time.Second)
		if _, ran := look(); ran {
			t.Errorf("after failure %d another run begins within %s", i, rest)
		}
		pass(time.Second)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	if st, ran := look(); !ran || st.Trouble != "" || j.rest != time.Minute {
		t.Errorf("mended: ran %t, %+v, next in %s", ran, st, j.rest)
	}
}

// TestJudge_RestsAfterTheRequest: who asked first is long answered while a run goes on; it
// takes half a processor at most nevertheless.
func TestJudge_RestsAfterTheRequest(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	w := window(t, s)
	const work = 10 * time.Millisecond
	var worked atomic.Int64
	ended := make(chan struct{})
	j := New(Options{
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Done: func() { close(ended) },
		Repo: gated{remote{s.Remote}, func(tree.Hash) error {
			began := time.Now()
			<-time.After(work)
			worked.Add(int64(time.Since(began)))
			return nil
		}},
	})
	ctx, answered := context.WithCancel(t.Context())
	began := time.Now()
	if st := j.Of(ctx, "ledger", w[0], s.Remote.Head("main"), w, true); !st.Running {
		t.Fatalf("%+v", st)
	}
	answered()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the run does not end")
	}
	took, busy := time.Since(began), time.Duration(worked.Load())
	if busy < time.Duration(len(w))*work {
		t.Fatalf("only %s of work for %d commits", busy, len(w))
	}
	if took < busy*3/2 {
		t.Errorf("%s of work took %s: it does not rest", busy, took)
	}
}
