package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	git "github.com/go-git/go-git/v5"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// A clone in which other content stands under an object's name is not believed: what signs a
// commit signs the names of what it holds.
func TestObjects_AreHeldToTheirNames(t *testing.T) {
	dir := t.TempDir()
	run := func(stdin string, args ...string) tree.Hash {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		h, _ := tree.ParseHash(string(bytes.TrimSpace(out)))
		return h
	}
	run("", "init", "-q")
	objectOf := func(text string) (blob, dir, commit tree.Hash) {
		blob = run(text, "hash-object", "-w", "--stdin")
		dir = run("100644 blob "+blob.String()+"\ta\n", "mktree")
		return blob, dir, run("", "commit-tree", "-m", text, dir.String())
	}
	var names, others [3]tree.Hash
	names[0], names[1], names[2] = objectOf("signed")
	others[0], others[1], others[2] = objectOf("other!")
	open := func() *objects {
		repo, err := git.PlainOpen(dir)
		if err != nil {
			t.Fatal(err)
		}
		return &objects{storage: repo.Storer}
	}
	read := func(o *objects) (errs [3]error) {
		_, errs[0] = o.File(names[0], 0)
		_, errs[1] = o.Dir(names[1])
		_, errs[2] = o.Commit(names[2])
		return errs
	}
	for i, err := range read(open()) {
		if err != nil {
			t.Errorf("%d as it was: %v", i, err)
		}
	}
	at := func(h tree.Hash) string {
		return filepath.Join(dir, ".git", "objects", h.String()[:2], h.String()[2:])
	}
	for i, h := range names {
		if err := os.Remove(at(h)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at(others[i]), at(h)); err != nil {
			t.Fatal(err)
		}
	}
	for i, err := range read(open()) {
		if err == nil || !strings.Contains(err.Error(), "what stands under that name is "+others[i].Short()) {
			t.Errorf("%d with other content: %v", i, err)
		}
	}
}
