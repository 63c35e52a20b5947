package observing

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// A local copy that was damaged is in the log, and the fleet repo is read all the same.
func TestObserver_DamagedCopy(t *testing.T) {
	remote, dir := memremote.New(), t.TempDir()
	ada := gitobj.Person{Name: "Ada", Email: "ada@example.org", When: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	if _, err := remote.Commit("main", ada, "Begin", gitobj.Change{Puts: map[string][]byte{"README.md": []byte("A fleet\n")}}); err != nil {
		t.Fatal(err)
	}
	var lines logtest.Lines
	read := func() {
		t.Helper()
		repo, err := gitrepo.Open(t.Context(), remote, gitrepo.Options{Dir: dir, Inputs: "main", Ledger: "ledger", Observer: &Observer{Log: lines.Logger()}})
		if err != nil {
			t.Fatal(err)
		}
		heads, err := repo.Fetch(t.Context())
		if err != nil || heads.Inputs.Commit.Hash != remote.Head("main") {
			t.Fatalf("read %s, %v", heads.Inputs.Commit.Hash, err)
		}
		if err := repo.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if read(); strings.Contains(lines.String(), "trouble") {
		t.Fatalf("of a copy that is good:\n%s", lines.String())
	}
	packs, err := filepath.Glob(filepath.Join(dir, "cache-*", "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("packs %v, %v", packs, err)
	}
	for _, name := range packs {
		if err := errors.Join(os.Chmod(name, 0o600), os.Truncate(name, 20)); err != nil {
			t.Fatal(err)
		}
	}
	read()
	lines.Wants(t, "FB1046")
}
