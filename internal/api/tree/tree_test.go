package tree

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The hashes must be git's own: a directory read from disk and the commit of
// the same directory must be recognised as equal.
func TestHashesAreGits(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"a.yaml": "a", "a/b.yaml": "b", "a.d/c": "c", "intents/vision/x.yaml": "kind: ResourceIntent\n"}
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if name == "a.d/c" {
			if err := os.WriteFile(p, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "a-dir")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.yaml", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	want := git("write-tree")
	got, err := FromDisk(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Root.String() != want {
		t.Errorf("tree of the directory: got %s, git says %s", got.Root, want)
	}
	b, err := got.ReadFile("intents/vision/x.yaml", 0)
	if err != nil || string(b) != files["intents/vision/x.yaml"] {
		t.Errorf("ReadFile: got %q, %v", b, err)
	}
	if _, err := got.ReadFile("intents/none", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of a missing path: got %v, want fs.ErrNotExist", err)
	}
	if _, err := got.ReadFile("intents/vision/x.yaml", 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("ReadFile over its limit: got %v, want ErrTooLarge", err)
	}
}

// TestFromDisk_BoundsAndModes: a file is read whole and with its mode up to the limit, and no
// further; an empty one is a file, too.
func TestFromDisk_BoundsAndModes(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "run": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12345"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := FromDisk(dir, 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		kind    Kind
		content string
	}{"plain": {File, "12345"}, "run": {Executable, "12345"}, "empty": {File, ""}} {
		e, err := got.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := got.ReadFile(name, 0)
		if err != nil || e.Kind != want.kind || string(b) != want.content {
			t.Errorf("%s: got %v, %q, %v", name, e.Kind, b, err)
		}
	}
	if _, err := FromDisk(dir, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: got %v, want ErrTooLarge", err)
	}
}

func TestBuildEqualsFromDisk(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"x/y/z": []byte("1"), "x/a": []byte("2"), "x.y": []byte("3")}
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := FromDisk(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	built := NewMemory().Build(files)
	if disk.Root != built.Root {
		t.Errorf("Build gives %s, FromDisk %s", built.Root, disk.Root)
	}
	var names []string
	if err := built.Walk(func(name string, _ Entry) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "x.y x/a x/y/z" {
		t.Errorf("Walk: got %q", got)
	}
}

// TestAMissingObjectIsNotAMissingPath: a store that lost a directory must not
// make the tree look empty.
func TestAMissingObjectIsNotAMissingPath(t *testing.T) {
	whole := NewMemory().Build(map[string][]byte{"a/b/c": nil})
	lost := Tree{NewMemory(), whole.Root}
	if sub, err := lost.Sub("a"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sub of a lost root: %v %v", sub, err)
	}
	if _, err := lost.Find("a/b"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("find in a lost root: %v", err)
	}
	if sub, err := whole.Sub("x/y"); err != nil || !sub.IsZero() {
		t.Errorf("a missing path: %v %v", sub, err)
	}
}
