package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tried is a fenced block of commands for a shell, with the block of what the last prints
// where it prints something.
var tried = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(\n```\n(.*?)^```\n)?")

// abbreviated are what differs from one repository to the next: a commit, a key.
var abbreviated = regexp.MustCompile(`commit [0-9a-f]{7,40}|SHA256:[0-9A-Za-z+/]{43}`)

func unabbreviated(text string) string {
	return abbreviated.ReplaceAllStringFunc(text, func(is string) string {
		if strings.HasPrefix(is, "commit") {
			return "commit 1a2b3c4"
		}
		return "SHA256:…"
	})
}

// The page on signatures is what happens to a person who does what it says, with keys of
// their own.
func TestSignatures(t *testing.T) {
	page, err := filepath.Abs("signatures/README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "fleet")
	if err := os.CopyFS(dir, os.DirFS("signatures")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, value := range map[string]string{
		"GIT_AUTHOR_DATE": "2026-11-20T10:00:00Z", "GIT_COMMITTER_DATE": "2026-11-20T10:00:00Z", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": filepath.Join(t.TempDir(), "config"), "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	if err := os.WriteFile(os.Getenv("GIT_CONFIG_GLOBAL"), []byte("[user]\n\tname = Grace\n\temail = grace@example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := 0
	now := tried.ReplaceAllFunc(text, func(block []byte) []byte {
		m := tried.FindSubmatch(block)
		script, last := string(m[1]), ""
		if i := strings.LastIndex(script, "\nfleetbroker "); i >= 0 {
			script, last = script[:i], strings.TrimPrefix(strings.TrimSpace(script[i:]), "fleetbroker ")
		}
		if out, err := exec.Command("sh", "-euc", script).CombinedOutput(); err != nil { //nolint:gosec // this repository's page
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
		shown := []byte("```sh\n" + string(m[1]) + "```\n")
		if last == "" {
			return shown
		}
		code, out := fleetbroker(t, strings.Fields(last)...)
		if (code != 0) != (len(m[2]) > 0) {
			t.Errorf("fleetbroker %s ends with %d:\n%s", last, code, out)
		}
		if out == "" {
			return shown
		}
		refused++
		return append(shown, "\n```\n"+unabbreviated(out)+"```\n"...)
	})
	if refused != 2 {
		t.Errorf("%d changes were refused, want Bob's and Ada's", refused)
	}
	if bytes.Equal(now, text) {
		return
	}
	if !*update {
		t.Fatalf("the page shows something else (run with -update to accept)\n--- now\n%s", now)
	}
	if err := os.WriteFile(page, now, 0o644); err != nil { //nolint:gosec // for everybody to read
		t.Fatal(err)
	}
}
