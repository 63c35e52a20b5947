package clonedir_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
)

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is one of two commits, whose objects are loose.
func repository(t *testing.T) (dir, head string) {
	t.Helper()
	dir = t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "one")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "two")
	return dir, run(t, dir, "rev-parse", "main")
}

// read opens a repository and reads its branch main, for half a minute at the most.
func read(t *testing.T, dir string) (head string, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var repo *git.Repository
		if repo, err = clonedir.Open(dir); err != nil {
			return
		}
		var h *plumbing.Hash
		if h, err = repo.ResolveRevision("refs/heads/main"); err != nil {
			return
		}
		head = h.String()
		var o plumbing.EncodedObject
		if o, err = repo.Storer.EncodedObject(plumbing.CommitObject, *h); err != nil {
			return
		}
		var r io.ReadCloser
		if r, err = o.Reader(); err == nil {
			_, err = io.Copy(io.Discard, r)
		}
	}()
	select {
	case <-done:
		return head, err
	case <-time.After(30 * time.Second):
		t.Fatal("it was not read within 30 s")
		return "", nil
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.RemoveAll(name), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// What is no file is waited for nowhere, and what has no end is not read.
func TestOpen_WaitsForNoPipe(t *testing.T) {
	for _, c := range []struct {
		file string
		read bool // without that file
	}{
		{".git", false}, {".git/HEAD", false}, {".git/config", false}, {".git/commondir", false}, {".git/refs/heads/main", false}, {"object", false},
		{".git/packed-refs", true}, {".git/objects/info/alternates", true}, {".git/shallow", true},
	} {
		for kind, mode := range map[string]uint32{"pipe": syscall.S_IFIFO, "socket": syscall.S_IFSOCK} {
			t.Run(c.file+" "+kind, func(t *testing.T) {
				dir, head := repository(t)
				at := filepath.Join(dir, c.file)
				if c.file == "object" {
					at = filepath.Join(dir, ".git/objects", head[:2], head[2:])
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.RemoveAll(at), syscall.Mknod(at, mode|0o600, 0)); err != nil {
					t.Fatal(err)
				}
				if _, err := read(t, dir); (err == nil) != c.read {
					t.Errorf("read: %v, want it read: %v", err, c.read)
				}
			})
		}
	}
}

// What stands next to the objects says nothing of them, and borrowing from itself ends.
func TestOpen_ReadsWhatIsSigned(t *testing.T) {
	for name, change := range map[string]func(dir, head string){
		"replaced":          func(dir, head string) { run(t, dir, "replace", head, head+"~1") },
		"graft":             func(dir, head string) { write(t, filepath.Join(dir, ".git/info/grafts"), head+"\n") },
		"shallow":           func(dir, head string) { write(t, filepath.Join(dir, ".git/shallow"), head+"\n") },
		"borrows of itself": func(dir, _ string) { write(t, filepath.Join(dir, ".git/objects/info/alternates"), "objects\n") },
		"tag for a branch": func(dir, _ string) {
			run(t, dir, "tag", "-a", "-m", "x", "v1")
			write(t, filepath.Join(dir, ".git/refs/heads/main"), run(t, dir, "rev-parse", "v1"))
		},
		"commit-graph": func(dir, head string) {
			run(t, dir, "commit-graph", "write", "--reachable")
			graph := filepath.Join(dir, ".git/objects/info/commit-graph")
			raw, err := os.ReadFile(graph)
			if err != nil {
				t.Fatal(err)
			}
			write(t, graph, string(bytes.ReplaceAll(raw, raw[len(raw)-60:len(raw)-20], bytes.Repeat([]byte{1}, 40))))
		},
		"gitfile": func(dir, _ string) {
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "other")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".git"), "gitdir: other\n")
		},
		"include": func(dir, _ string) {
			raw, err := os.ReadFile(filepath.Join(dir, ".git/config"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".git/config"), string(raw)+"[include]\n\tpath = /dev/zero\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, head := repository(t)
			change(dir, head)
			if got, err := read(t, dir); err != nil || got != head {
				t.Errorf("got %s, %v; want %s", got, err, head)
			}
		})
	}
}

func TestOpen_Refuses(t *testing.T) {
	const missing = "1111111111111111111111111111111111111111"
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"gitfile to itself":     {".git", "gitdir: .git", "is no directory"},
		"commondir of nothing":  {".git/commondir", "nowhere", "is no directory"},
		"large config":          {".git/config", strings.Repeat("[a]\n", 1<<20), "at most 1048576 are read"},
		"large ref":             {".git/refs/heads/main", strings.Repeat("1", 2<<20), "reference not found"},
		"symbolic ref outside":  {".git/refs/heads/main", "ref: ../../../outside", "reference not found"},
		"symbolic ref in turns": {".git/refs/heads/main", "ref: refs/heads/main", "reference not found"},
		"object of no kind":     {".git/objects/11/" + missing[2:], "x", "reference not found"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := repository(t)
			write(t, filepath.Join(dir, "outside"), missing)
			write(t, filepath.Join(dir, ".git/refs/heads/other"), missing)
			if c.text == "x" {
				write(t, filepath.Join(dir, ".git/refs/heads/main"), missing)
			}
			write(t, filepath.Join(dir, c.file), c.text)
			if head, err := read(t, dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v; want %q", head, err, c.want)
			}
		})
	}
	if _, err := clonedir.Open(t.TempDir()); !errors.Is(err, git.ErrRepositoryNotExists) {
		t.Errorf("a plain directory: %v", err)
	}
}

// A repository that borrows from itself what it does not have ends, and is named.
func TestBorrows(t *testing.T) {
	dir, _ := repository(t)
	repo, err := clonedir.Open(dir)
	if err != nil || clonedir.Borrows(repo.Storer) {
		t.Fatalf("borrows, or %v", err)
	}
	write(t, filepath.Join(dir, ".git/objects/info/alternates"), "objects\n")
	write(t, filepath.Join(dir, ".git/refs/heads/main"), strings.Repeat("1", 40))
	if _, err := read(t, dir); err == nil || !clonedir.Borrows(repo.Storer) {
		t.Errorf("read: %v; borrows: %v", err, clonedir.Borrows(repo.Storer))
	}
}

// A loose object that makes more than its header says, or less, is not inflated to its end;
// one of a large file is read.
func TestOpen_ObjectsOfMoreThanTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		says, makes int64
		fine        bool
	}{"more": {100, 512 << 20, false}, "less": {1 << 29, 100 << 20, false}, "too much": {1 << 40, 100 << 20, false}, "as much": {100 << 20, 100 << 20, true}} {
		t.Run(name, func(t *testing.T) {
			dir, _ := repository(t)
			var b bytes.Buffer
			z := zlib.NewWriter(&b)
			fmt.Fprintf(z, "blob %d\x00", c.says)
			if _, err := io.CopyN(z, zeros{}, c.makes); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".git/objects/11", strings.Repeat("1", 38)), b.String())
			repo, err := clonedir.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = repo.Storer.EncodedObject(plumbing.BlobObject, plumbing.NewHash(strings.Repeat("1", 40)))
			runtime.ReadMemStats(&after)
			if (err == nil) != c.fine {
				t.Errorf("read: %v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 && !c.fine {
				t.Errorf("refusing it took %d MiB of memory", took)
			}
		})
	}
}

// zeros are endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
