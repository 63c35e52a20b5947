package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

func packsIn(t testing.TB, dir string) []string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "cache-*", "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func TestRestartFetchesOnlyWhatIsMissing(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	o := options(func(o *gitrepo.Options) { o.Dir = dir })
	r := open(t, m, o)
	for i := range 20 {
		commit(t, r, request(fetch(t, r), contract("t", fmt.Sprint("c", i), "x")))
	}
	if n := len(packsIn(t, dir)); n != 1 {
		t.Errorf("%d packs after 20 commits, want the clone's one", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	counted := &countPacks{Remote: m}
	r = open(t, counted, o)
	h := fetch(t, r)
	if counted.packs != 0 || content(t, h.Ledger.Tree, "contracts/t/aa/c19.yaml") != "x" {
		t.Errorf("after a clean restart: %d packs, c19 = %s", counted.packs, content(t, h.Ledger.Tree, "contracts/t/aa/c19.yaml"))
	}
	team(t, m, "intents/vision/b.yaml", "new")
	if h = fetch(t, r); counted.packs != 1 || content(t, h.Inputs.Tree, "intents/vision/b.yaml") != "new" {
		t.Errorf("after one input: %d packs", counted.packs)
	}
}

// A process that was killed leaves its recent objects behind in nobody's
// memory; the next one gets them from the remote.
func TestRestartAfterAKill(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	o := options(func(o *gitrepo.Options) { o.Dir = dir })
	r := open(t, m, o)
	commit(t, r, request(fetch(t, r), contract("t", "a", "x")))
	// What a SIGKILL leaves: the files, without Close. The copy of the
	// directory has no lock on it, as after the process is gone.
	copied := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	o.Dir = copied
	r = open(t, m, o)
	if h := fetch(t, r); content(t, h.Ledger.Tree, "contracts/t/aa/a.yaml") != "x" {
		t.Error("the last commit is missing")
	}
	commit(t, r, request(fetch(t, r), contract("t", "b", "x")))
}

func TestPacksThatPileUpAreClonedAnew(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	seen := &observer{}
	r := open(t, m, options(func(o *gitrepo.Options) { o.Dir, o.MaxPacks, o.FlushBytes, o.Observer = dir, 5, 1, seen }))
	first := fetch(t, r)
	for i := range 20 {
		commit(t, r, request(fetch(t, r), contract("t", fmt.Sprint("c", i), "x")))
	}
	h := fetch(t, r)
	if n := len(packsIn(t, dir)); n > 6 {
		t.Errorf("%d packs, want no more than 6", n)
	}
	if seen.troubles() == 0 {
		t.Error("nobody was told")
	}
	if got := content(t, first.Inputs.Tree, "intents/vision/a.yaml"); got != "kind: ResourceIntent\n" {
		t.Errorf("a tree from before the swap: got %s", got)
	}
	for i := range 20 {
		if got := content(t, h.Ledger.Tree, fmt.Sprintf("contracts/t/aa/c%d.yaml", i)); got != "x" {
			t.Errorf("c%d: got %s", i, got)
		}
	}
	if caches, err := filepath.Glob(filepath.Join(dir, "cache-*")); err != nil || len(caches) != 1 {
		t.Errorf("caches left: %v, %v", caches, err)
	}
}

// Whatever happens to the files, the next fetch has everything again.
func TestDamagedLocalCopy(t *testing.T) {
	each := func(dir, pattern string, fn func(string) error) error {
		files, err := filepath.Glob(filepath.Join(dir, "cache-*", pattern))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no %s: %w", pattern, err)
		}
		for _, f := range files {
			if err := fn(f); err != nil {
				return err
			}
		}
		return nil
	}
	garbage := func(name string) error {
		if err := os.Chmod(name, 0o600); err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i := 12; i < len(b)-20; i++ {
			b[i] ^= 0x5a
		}
		return os.WriteFile(name, b, 0o600)
	}
	truncate := func(name string) error { return os.Truncate(name, 20) }
	for name, damage := range map[string]func(dir string) error{
		"a pack is garbage":     func(d string) error { return each(d, "objects/pack/*.pack", garbage) },
		"a pack is cut short":   func(d string) error { return each(d, "objects/pack/*.pack", truncate) },
		"a pack is gone":        func(d string) error { return each(d, "objects/pack/*.pack", os.Remove) },
		"an index is garbage":   func(d string) error { return each(d, "objects/pack/*.idx", garbage) },
		"an index is gone":      func(d string) error { return each(d, "objects/pack/*.idx", os.Remove) },
		"the objects are gone":  func(d string) error { return each(d, "objects", os.RemoveAll) },
		"heads.json is garbage": func(d string) error { return each(d, "heads.json", truncate) },
		"the cache is gone":     func(d string) error { return each(d, ".", os.RemoveAll) },
		"the directory is gone": os.RemoveAll,
		"the directory is a file": func(d string) error {
			if err := os.RemoveAll(d); err != nil {
				return err
			}
			return os.WriteFile(d, []byte("x"), 0o600)
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", name, restarted), func(t *testing.T) {
				m := seeded(t)
				team(t, m, "intents/vision/b.yaml", strings.Repeat("long enough to be damaged\n", 50))
				dir := filepath.Join(t.TempDir(), "state")
				o := options(func(o *gitrepo.Options) { o.Dir, o.Observer = dir, &observer{} })
				r := open(t, m, o)
				q := request(fetch(t, r), contract("t", "a", "x"))
				if restarted {
					if err := r.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := damage(dir); err != nil {
					t.Fatal(err)
				}
				if restarted {
					r = open(t, m, o)
				}
				if _, err := r.Commit(t.Context(), q); err != nil {
					t.Fatalf("Commit: %v", err)
				}
				// A reader may meet the damage first; the next fetch heals it.
				h := fetch(t, r)
				if _, err := h.Inputs.Tree.ReadFile("intents/vision/b.yaml", 0); err != nil {
					var local *gitrepo.ErrLocal
					if !errors.As(err, &local) {
						t.Errorf("reading: got %v, want ErrLocal", err)
					}
					h = fetch(t, r)
				}
				for _, p := range []string{"intents/vision/a.yaml", "intents/vision/b.yaml"} {
					if _, err := h.Inputs.Tree.ReadFile(p, 0); err != nil {
						t.Errorf("%s: %v", p, err)
					}
				}
				if got := content(t, h.Ledger.Tree, "contracts/t/aa/a.yaml"); got != "x" {
					t.Errorf("contract: %s", got)
				}
			})
		}
	}
}

func TestMissingObjectThatNobodyHas(t *testing.T) {
	counted := &countPacks{Remote: seeded(t)}
	r := open(t, counted, options(func(o *gitrepo.Options) { o.Dir = t.TempDir() }))
	h := fetch(t, r)
	for range 5 {
		if _, err := h.Inputs.Tree.Store.File(tree.Hash{1}, 0); err == nil {
			t.Fatal("read an object that does not exist")
		}
		fetch(t, r)
	}
	if counted.packs != 2 {
		t.Errorf("cloned %d times, want once for the start and once for the object", counted.packs)
	}
}

// countPacks counts the packs that a remote gives out.
type countPacks struct {
	gitrepo.Remote
	packs int
}

func (c *countPacks) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	return c.Remote.Fetch(ctx, choose, func(pack io.Reader) error {
		c.packs++
		return sink(pack)
	})
}

// A real full disk: a small tmpfs.
func TestDiskFull(t *testing.T) {
	mount := func(size string) string {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Fatalf("mount a tmpfs (these tests run as root): %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		return dir
	}
	noise := func(n int, seed byte) string {
		b := make([]byte, n)
		x := uint32(seed) + 1
		for i := range b {
			x = x*1664525 + 1013904223
			b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[x>>26]
		}
		return string(b)
	}
	check := func(t *testing.T, m *memremote.Remote, r *gitrepo.Repo, seen *observer, restart func() *gitrepo.Repo) {
		for i := range 8 {
			h := fetch(t, r)
			commit(t, r, request(h, contract("t", fmt.Sprint("c", i), noise(100_000, byte(i)))))
		}
		if seen.troubles() == 0 {
			t.Error("nobody was told of the full disk")
		}
		h := fetch(t, r)
		for i := range 8 {
			if got := content(t, h.Ledger.Tree, fmt.Sprintf("contracts/t/aa/c%d.yaml", i)); got != noise(100_000, byte(i)) {
				t.Errorf("c%d is not what was committed", i)
			}
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		h = fetch(t, restart())
		if h.Ledger.Commit.Hash != m.Head("ledger") {
			t.Errorf("restarted: the ledger is at %s, want %s", h.Ledger.Commit.Hash, m.Head("ledger"))
		}
	}
	t.Run("while writing packs", func(t *testing.T) {
		m, seen := seeded(t), &observer{}
		o := options(func(o *gitrepo.Options) { o.Dir, o.FlushBytes, o.Observer = mount("400k"), 1, seen })
		check(t, m, open(t, m, o), seen, func() *gitrepo.Repo { return open(t, m, o) })
	})
	t.Run("while cloning", func(t *testing.T) {
		m, seen := seeded(t), &observer{}
		team(t, m, "intents/vision/big.yaml", noise(2_000_000, 99))
		o := options(func(o *gitrepo.Options) { o.Dir, o.Observer = mount("400k"), seen })
		check(t, m, open(t, m, o), seen, func() *gitrepo.Repo { return open(t, m, o) })
	})
}

// A disk that failed is tried again after a while.
func TestDiskThatComesBack(t *testing.T) {
	m := seeded(t)
	now := noon
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := &observer{}
	r := open(t, m, options(func(o *gitrepo.Options) { o.Dir, o.Observer, o.Now = dir, seen, func() time.Time { return now } }))
	fetch(t, r)
	if seen.troubles() == 0 {
		t.Error("nobody was told")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fetch(t, r)
	if n := len(packsIn(t, dir)); n != 0 {
		t.Errorf("%d packs, though the disk is not due yet", n)
	}
	now = now.Add(10 * time.Minute)
	fetch(t, r)
	if n := len(packsIn(t, dir)); n != 1 {
		t.Errorf("%d packs, want the clone", n)
	}
}

func TestFileLimits(t *testing.T) {
	for name, mod := range map[string]func(*gitrepo.Options){
		"memory": func(o *gitrepo.Options) { o.MaxBlob = 1000 },
		"disk":   func(o *gitrepo.Options) { o.MaxBlob = 1000; o.Dir = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			team(t, m, "intents/vision/big.yaml", strings.Repeat("x", 200_000))
			team(t, m, "intents/vision/small.yaml", "0123456789")
			h := fetch(t, open(t, m, options(mod)))
			for _, c := range []struct {
				path  string
				limit int64
				want  error
			}{
				{"intents/vision/big.yaml", 0, tree.ErrTooLarge}, {"intents/vision/big.yaml", 1 << 30, tree.ErrTooLarge},
				{"intents/vision/small.yaml", 5, tree.ErrTooLarge}, {"intents/vision/small.yaml", 10, nil},
				{"intents/none", 0, fs.ErrNotExist},
			} {
				if _, err := h.Inputs.Tree.ReadFile(c.path, c.limit); !errors.Is(err, c.want) {
					t.Errorf("%s within %d: got %v, want %v", c.path, c.limit, err, c.want)
				}
			}
		})
	}
}

// A fetch larger than what is taken into memory goes to disk as it comes.
func TestLargeIncrementalFetch(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	r := open(t, m, options(func(o *gitrepo.Options) { o.Dir = dir }))
	fetch(t, r)
	change := gitobj.Change{Puts: map[string][]byte{}}
	for i := range 40 {
		b := make([]byte, 200_000)
		x := uint32(i + 1)
		for j := range b {
			x = x*1664525 + 1013904223
			b[j] = byte(x >> 24)
		}
		change.Puts[fmt.Sprintf("intents/vision/%d", i)] = b
	}
	if _, err := m.Commit("main", person("Ada"), "much\n", change); err != nil {
		t.Fatal(err)
	}
	h := fetch(t, r)
	for p, want := range change.Puts {
		if got := content(t, h.Inputs.Tree, p); got != string(want) {
			t.Errorf("%s differs", p)
		}
	}
	if n := len(packsIn(t, dir)); n != 2 {
		t.Errorf("%d packs, want 2", n)
	}
}

// A damaged cache is set aside under a name that is said, with the reason, once:
// at a start and while the daemon runs. No more than one is kept.
func TestDamagedCache_IsSetAside(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	seen := &observer{}
	o := options(func(o *gitrepo.Options) { o.Dir, o.Observer = dir, seen })
	check := func(reason string) {
		t.Helper()
		aside, err := filepath.Glob(filepath.Join(dir, "cache-*.damaged-*"))
		if err != nil || len(aside) != 1 {
			t.Fatalf("set aside: %v, %v; want one", aside, err)
		}
		said := 0
		for _, err := range seen.trouble {
			if strings.Contains(err.Error(), aside[0]) && strings.Contains(err.Error(), reason) {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%d lines name %s and %q, want one: %v", said, aside[0], reason, seen.trouble)
		}
	}
	for i := range 2 {
		r := open(t, m, o)
		fetch(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		heads, err := filepath.Glob(filepath.Join(dir, "cache-*[0-9]", "heads.json"))
		if err != nil || len(heads) == 0 {
			t.Fatal(heads, err)
		}
		for _, name := range heads {
			if err := os.Truncate(name, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		seen.trouble = nil
		fetch(t, open(t, m, o))
		check("heads.json")
	}
	r := open(t, m, o)
	h := fetch(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, m, o)
	for _, pack := range packsIn(t, dir) {
		if strings.Contains(pack, ".damaged-") {
			continue
		}
		b, err := os.ReadFile(pack)
		if err != nil {
			t.Fatal(err)
		}
		for i := 12; i < len(b)-20; i++ {
			b[i] ^= 0x5a
		}
		if err := os.Chmod(pack, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pack, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen.trouble = nil
	if _, err := r.Tree(h.Inputs.Commit.Hash); err == nil {
		t.Fatal("a pack of garbage can be read")
	}
	fetch(t, r)
	check("is damaged")
}
