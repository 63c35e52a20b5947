package gitrepo_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

const pull = "refs/pull/7/head"

func TestSideIsReadBesideTheInputs(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	fork := fetch(t, r).Inputs.Commit.Hash
	head, err := m.Rewrite(pull, fork, person("Mallory"), "ask\n", gitobj.Change{Puts: map[string][]byte{"intents/vision/b.yaml": []byte("theirs")}})
	if err != nil {
		t.Fatal(err)
	}
	team(t, m, "intents/vision/a.yaml", "moved on")
	onto := fetch(t, r).Inputs.Commit.Hash

	side, err := r.Side(t.Context(), pull, onto, gitrepo.BranchBounds)
	if err != nil {
		t.Fatal(err)
	}
	if side.Commit != head || side.Base != fork {
		t.Errorf("commit %s from %s, want %s from %s", side.Commit, side.Base, head, fork)
	}
	if got := content(t, side.Tree, "intents/vision/b.yaml"); got != "theirs" {
		t.Errorf("its file is %q", got)
	}
	if got := content(t, side.BaseTree, "intents/vision/a.yaml"); got == "moved on" {
		t.Error("the base is the inputs of now")
	}
	if _, err := r.Tree(head); err == nil {
		t.Error("what a pull request brings became part of the local copy")
	}
	after := fetch(t, r)
	if after.Inputs.Commit.Hash != onto {
		t.Error("reading it moved the inputs")
	}

	// What is merged already brings nothing; what is not there is said so.
	m.SetRef(pull, onto)
	if side, err = r.Side(t.Context(), pull, onto, gitrepo.BranchBounds); err != nil || side.Base != onto {
		t.Errorf("of the inputs' own head: from %s, %v", side.Base, err)
	}
	if _, err := r.Side(t.Context(), "refs/pull/8/head", onto, gitrepo.BranchBounds); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a ref that is not there: %v", err)
	}
}

// A branch that merged the inputs in comes from where it did so last.
func TestSideThatMergedTheInputs(t *testing.T) {
	dir := bare(t)
	gitPut(t, dir, "main", "intents/vision/a.yaml", "one")
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "clone", "-q", dir, clone)
	git(t, clone, "checkout", "-q", "-b", "ask")
	git(t, clone, "commit", "-q", "--allow-empty", "-m", "first")
	gitPut(t, dir, "main", "intents/vision/a.yaml", "two")
	git(t, clone, "fetch", "-q")
	git(t, clone, "merge", "-q", "-m", "catch up", "origin/main")
	git(t, clone, "push", "-q", "origin", "HEAD:"+pull)

	srv := serveGit(t, filepath.Dir(dir))
	r := open(t, dial(t, srv.URL+"/"+filepath.Base(dir), gitrepo.Auth{}), options())
	onto := fetch(t, r).Inputs.Commit.Hash
	side, err := r.Side(t.Context(), pull, onto, gitrepo.BranchBounds)
	if err != nil || side.Base != onto {
		t.Errorf("from %s, %v; want %s", side.Base, err, onto)
	}
}

func TestSideIsBounded(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	onto := fetch(t, r).Inputs.Commit.Hash
	change := gitobj.Change{Puts: map[string][]byte{}}
	for i := range 5 {
		change.Puts[filepath.Join("intents/vision", string(rune('b'+i)))] = bytes.Repeat([]byte{byte(i)}, 15<<20)
	}
	if _, err := m.Rewrite(pull, onto, person("Mallory"), "fill\n", change); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Side(t.Context(), pull, onto, gitrepo.BranchBounds); !errors.Is(err, gitrepo.ErrSideTooLarge) {
		t.Errorf("75 MiB: %v, want ErrSideTooLarge", err)
	}
	if _, err := r.Side(t.Context(), pull, onto, gitrepo.ForkBounds); !errors.Is(err, gitrepo.ErrSideTooLarge) || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Errorf("a fork's: %v", err)
	}
	// Many commits: a branch of the repository may have more than a fork.
	at := onto
	for i := range 210 {
		var err error
		if at, err = m.Rewrite(pull, at, person("Mallory"), "more\n", gitobj.Change{Puts: map[string][]byte{"x": {byte(i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Side(t.Context(), pull, onto, gitrepo.BranchBounds); err != nil {
		t.Errorf("210 commits: %v", err)
	}
	if _, err := r.Side(t.Context(), pull, onto, gitrepo.ForkBounds); !errors.Is(err, gitrepo.ErrSideTooLarge) || !strings.Contains(err.Error(), "more than 200 commits") {
		t.Errorf("210 commits of a fork: %v", err)
	}
	// A history of its own has nothing in common.
	if _, err := m.Rewrite(pull, tree.Hash{}, person("Mallory"), "alone\n", gitobj.Change{Puts: map[string][]byte{"x": nil}}); err != nil {
		t.Fatal(err)
	}
	if side, err := r.Side(t.Context(), pull, onto, gitrepo.BranchBounds); err != nil || !side.Base.IsZero() {
		t.Errorf("a history of its own: from %s, %v", side.Base, err)
	}
}
