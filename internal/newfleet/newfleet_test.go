package newfleet

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/laid"
)

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

// What links from page to page in a fleet repo is there, reference pages and schemas
// included.
func TestFiles_LinksLead(t *testing.T) {
	files, err := Files("github")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name, text := range files {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "<") {
				continue
			}
			seen++
			to := path.Join(path.Dir(name), m[1])
			if files[to] == nil {
				t.Errorf("%s links to %s, which a fleet repo does not have", name, to)
			}
		}
	}
	if seen < 100 || files["docs/reference/resourceintent.md"] == nil {
		t.Errorf("only %d links were looked at", seen)
	}
}

// What a directory may have before, and what not.
func TestVacant(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, "README.md": true, "readme": true, "LICENSE": true, "LICENCE.txt": true, "COPYING": true, ".gitignore": true, "CODEOWNERS": true, "SECURITY.md": true,
		"main.go": false, "docs": false, "READMEFIRST": false, ".github": false, "clusters": false, "fleet.yaml": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Vacant(dir); (err == nil) != want {
			t.Errorf("with %s: %v, want vacant %t", name, err, want)
		}
	}
	if err := Vacant(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}

// The keys of a repo without a name of its own lie next to it, never in it.
func TestNewKeyring_OfTheWorkingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	k, err := NewKeyring(KeyOptions{Repo: "."})
	if err != nil || filepath.Base(k.Dir) != "acme.keys" || filepath.Dir(k.Dir) == k.Dir {
		t.Fatalf("got %+v, %v", k, err)
	}
}

// A page of an older version that was edited gets what is new, and keeps the edit.
func TestUpdate_Merges(t *testing.T) {
	const page = "docs/upgrade.md"
	dir := t.TempDir()
	if _, err := Make(dir, "github", "", Pin{}); err != nil {
		t.Fatal(err)
	}
	files, err := named("github", "", Pin{})
	if err != nil {
		t.Fatal(err)
	}
	now := files[page]
	first, rest, _ := bytes.Cut(now, []byte("\n"))
	files[page] = append(append(bytes.Clone(first), '\n'), bytes.Replace(rest, []byte("backup"), []byte("copy"), 1)...)
	for name := range files {
		if isSample(name) {
			delete(files, name)
		}
	}
	if _, err := laid.Merge(dir, Lock, Base, files, "v0.0.1", choices("github", "", Pin{})); err != nil {
		t.Fatal(err)
	}
	edited := append([]byte("# Ours\n"), files[page][len(first)+1:]...)
	if err := os.WriteFile(filepath.Join(dir, page), edited, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := Update(dir, "")
	if err != nil || u.From != "v0.0.1" || u.To != version.Text() || len(u.Merged) != 1 || u.Merged[0] != page || len(u.Conflicts) > 0 {
		t.Fatalf("got %+v, %v", u, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, page))
	if want := append([]byte("# Ours\n"), rest...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got\n%.600s\n%v, want\n%.600s", got, err, want)
	}
}
