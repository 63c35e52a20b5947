package watching

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A git server may write to the user's terminal, through git, for as long as it likes: what
// is kept of that is its first line.
func TestFetch_KeepsLittleOfWhatGitSays(t *testing.T) {
	dir := t.TempDir()
	git := filepath.Join(dir, "git")
	script := "#!/bin/sh\necho 'remote: no such branch' >&2\nhead -c 100000000 /dev/zero >&2\nexit 1\n"
	if err := os.WriteFile(git, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Fetch(t.Context(), dir, "origin", "ledger")
	runtime.ReadMemStats(&after)
	if err == nil || !strings.HasSuffix(err.Error(), "git: remote: no such branch") {
		t.Errorf("got %.200v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("it took %d MiB of memory", took>>20)
	}
}
