package laid

import (
	"os"
	"path/filepath"
	"testing"
)

// Who may write to a repository has no file written but those that are laid, and none
// removed of git's own, by links and by a lock that was edited.
func TestHostileRepository(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	write("fleet.yaml", "mine")
	write(".git/hooks/pre-push", "a hook")
	write("lock", "format: 1\nversion: v1\nfiles:\n  .git/hooks/pre-push: "+digest([]byte("a hook"))+"\n  ../outside: "+digest([]byte("x"))+"\n")
	for _, name := range []string{"README.md.tmp", "README.md.new"} {
		if err := os.Symlink("fleet.yaml", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Write(dir, "lock", map[string][]byte{"README.md": []byte("laid")}, "v2", nil); err != nil {
		t.Fatal(err)
	}
	is("README.md", "laid")
	is("fleet.yaml", "mine")
	is(".git/hooks/pre-push", "a hook")
	if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fleet.yaml", filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, "lock", map[string][]byte{"README.md": []byte("laid again")}, "v3", nil); err == nil {
		t.Error("a link is taken for the file")
	}
	is("fleet.yaml", "mine")
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || len(left) != 1 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}
