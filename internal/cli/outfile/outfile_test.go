package outfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written is an error at the start, and until the end nothing is changed.
func TestOpenAndReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "report.html")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if read() != "old" {
		t.Error("the file is changed before its end")
	}
	f.Discard()
	if f, err = Open(name); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace([]byte("new")); err != nil {
		t.Fatal(err)
	}
	f.Discard() // after its end it takes nothing away
	if info, err := os.Stat(name); err != nil || read() != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", read(), info.Mode(), err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(link); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace([]byte("newer")); err != nil || read() != "newer" {
		t.Errorf("through a link: %q, %v", read(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	readOnly := filepath.Join(dir, "kept")
	if err := os.WriteFile(readOnly, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{dir: "it is a directory", readOnly: "it is read-only", filepath.Join(dir, "no", "where"): "no such file or directory", filepath.Join(readOnly, "x"): "not a directory"} {
		if err := Check(name); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "write "+name) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if f, err := Open(""); f != nil || err != nil || f.Replace([]byte("x")) != nil {
		t.Errorf("no file: %v, %v", f, err)
	}
	if err := Check("/dev/null"); err != nil {
		t.Errorf("a device: %v", err)
	}
}

// The error names what the user named, not the temporary file.
func TestOpen_NamesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	want := "write " + filepath.Join(dir, "report.html") + ": in " + dir + ": no such file or directory"
	if _, err := Open(filepath.Join(dir, "report.html")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
