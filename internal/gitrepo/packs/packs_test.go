package packs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// git runs git in a directory and returns what it prints.
func git(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// repository makes one whose files change a little with every commit, so that
// git packs chains of deltas, and with one large file.
func repository(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	git(t, dir, "", "init", "-q", "-b", "main")
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's seed
	lines := make([]string, 200)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d says %d\n", i, r.Int())
	}
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(r.Uint32())
	}
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("large", large)
	put("empty", nil)
	for commit := range 20 {
		for f := range 5 {
			lines[r.IntN(len(lines))] = fmt.Sprintf("changed in %d to %d\n", commit, r.Int())
			put(fmt.Sprintf("dir%d/file%d", f%2, f), []byte(strings.Join(lines, "")))
		}
		git(t, dir, "", "add", "-A")
		git(t, dir, "", "commit", "-q", "-m", fmt.Sprintf("commit %d", commit))
	}
	git(t, dir, "", "tag", "-a", "-m", "a tag", "v1")
	return dir
}

// packed is all of a repository as one pack.
func packed(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	all := git(t, dir, "", "rev-list", "--objects", "--all", "--no-object-names")
	return []byte(git(t, dir, all, append([]string{"pack-objects", "--stdout", "-q", "--depth=50", "--window=50"}, args...)...))
}

var kinds = map[string]gitobj.Type{"commit": gitobj.Commit, "tree": gitobj.Tree, "blob": gitobj.Blob, "tag": gitobj.Tag}

// same compares every object with what git says of it.
func same(t testing.TB, d *packs.Dir, dir string) {
	t.Helper()
	rest := git(t, dir, "", "cat-file", "--batch-all-objects", "--batch")
	n := 0
	for ; rest != ""; n++ {
		var name, kind string
		var size int
		head, body, _ := strings.Cut(rest, "\n")
		if _, err := fmt.Sscan(head, &name, &kind, &size); err != nil {
			t.Fatal(err)
		}
		want := body[:size]
		rest = body[size+1:]
		h, err := tree.ParseHash(name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := d.Read(h, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o.Type != kinds[kind] || string(o.Data) != want {
			t.Errorf("%s: got a %s of %d bytes, want a %s of %d", name, o.Type, len(o.Data), kind, size)
		}
		if _, err := d.Read(h, int64(size)); err != nil {
			t.Errorf("%s within its size: %v", name, err)
		}
		if _, err := d.Read(h, int64(size-1)); size > 1 && !errors.Is(err, tree.ErrTooLarge) {
			t.Errorf("%s within less than its size: %v", name, err)
		}
	}
	if n < 100 {
		t.Fatalf("only %d objects", n)
	}
}

func open(t testing.TB, dir string) *packs.Dir {
	t.Helper()
	d, err := packs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// What is taken in reads as git reads it, now and after opening again, and git
// finds nothing wrong with the files.
func TestTakeAndRead(t *testing.T) {
	repo := repository(t)
	for name, args := range map[string][]string{
		"offsets to bases": {"--delta-base-offset"},
		"names of bases":   {},
		"no deltas":        {"--depth=0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir)
			if ours, err := d.Take(bytes.NewReader(packed(t, repo, args...))); err != nil {
				t.Fatal(ours, err)
			}
			same(t, d, repo)
			same(t, open(t, dir), repo)
			list, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(list) != 2 {
				t.Fatalf("there are %v, %v", list, err)
			}
			for _, f := range list {
				if strings.HasSuffix(f, ".idx") {
					git(t, dir, "", "verify-pack", f)
				}
			}
			if _, err := d.Take(bytes.NewReader(packed(t, repo, args...))); err != nil || d.Len() != 1 {
				t.Errorf("the same pack again: %d packs, %v", d.Len(), err)
			}
		})
	}
}

// An empty pack is none, and what is not there is not found.
func TestNothing(t *testing.T) {
	d := open(t, t.TempDir())
	var none gitobj.Set
	b, err := none.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Take(bytes.NewReader(b)); err != nil || d.Len() != 0 {
		t.Errorf("%d packs, %v", d.Len(), err)
	}
	if _, err := d.Read(tree.Hash{1}, 0); !errors.Is(err, packs.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A pack that was cut off or changed is refused and leaves nothing behind.
func TestDamagedPacksAreRefused(t *testing.T) {
	pack := packed(t, repository(t), "--delta-base-offset")
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test's seed
	dir := t.TempDir()
	d := open(t, dir)
	for i := range 300 {
		bad := bytes.Clone(pack)
		switch i % 3 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		case 1:
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		default:
			bad = append(bad, byte(i))
		}
		if ours, err := d.Take(bytes.NewReader(bad)); err == nil || ours {
			t.Fatalf("case %d: ours is %t, error %v", i, ours, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// Whatever byte of the files changes, an object reads as it was or not at all.
func TestDamagedFiles(t *testing.T) {
	repo := repository(t)
	dir := t.TempDir()
	if _, err := open(t, dir).Take(bytes.NewReader(packed(t, repo, "--delta-base-offset"))); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []tree.Hash
	for line := range strings.Lines(git(t, repo, "", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")) {
		h, err := tree.ParseHash(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h)
	}
	r := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test's seed
	hurt := 0
	for i := range 40 {
		file := list[i%len(list)]
		good, err := os.ReadFile(file) //nolint:gosec // the test's own
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		for range 20 {
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		}
		if i%5 == 4 {
			bad = bad[:r.IntN(len(bad))]
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := packs.Open(dir); err != nil {
			hurt++
		} else {
			for _, h := range names {
				o, err := d.Read(h, 0)
				if err != nil {
					hurt++
				} else if o.Hash() != h {
					t.Fatalf("%s reads as %s", h, o.Hash())
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if hurt == 0 {
		t.Error("no damage was noticed")
	}
	same(t, open(t, dir), repo)
}

// Many read at once while another pack comes and the directory is closed.
func TestConcurrentUse(t *testing.T) {
	repo := repository(t)
	d, err := packs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Take(bytes.NewReader(packed(t, repo, "--delta-base-offset"))); err != nil {
		t.Fatal(err)
	}
	h, err := tree.ParseHash(strings.TrimSpace(git(t, repo, "", "rev-parse", "main:dir0/file0")))
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				o, err := d.Read(h, 0)
				if errors.Is(err, packs.ErrClosed) {
					return
				}
				if err != nil || o.Hash() != h {
					t.Errorf("got %s, %v", o.Hash(), err)
					return
				}
			}
		})
	}
	for i := range 20 {
		set := gitobj.Set{}
		set.Add(gitobj.Blob, fmt.Appendf(nil, "blob %d", i))
		pack, err := set.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Take(bytes.NewReader(pack)); err != nil {
			t.Fatal(err)
		}
	}
	if d.Len() != 21 {
		t.Errorf("%d packs", d.Len())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	readers.Wait()
}

// FuzzTake lets a hostile server send anything.
func FuzzTake(f *testing.F) {
	pack := packed(f, repository(f), "--delta-base-offset")
	f.Add(pack[:4096])
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	set := gitobj.Set{}
	set.Add(gitobj.Blob, []byte("hello"))
	small, err := set.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	d, err := packs.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if ours, err := d.Take(bytes.NewReader(b)); ours {
			t.Error(err)
		}
	})
}
