//go:build e2e

package spine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// standing demands that the firm contracts stand, on ledger and cluster.
func (f *fleet) standing() {
	f.t.Helper()
	if err := f.placed("firm", 3); err != nil {
		f.t.Error(err)
	}
	f.applied()
}

// polled waits until a round on what was just pushed has ended, well or not:
// until the daemon, which makes its rounds one by one, has asked the remote
// some more times.
func (f *fleet) polled() {
	f.t.Helper()
	asked := f.Git.Stats().Requests
	f.eventually("the daemon asks the remote again", func() error {
		if n := f.Git.Stats().Requests - asked; n < 6 {
			return fmt.Errorf("it has asked %d times", n)
		}
		return nil
	})
}

// branchDeleted deletes a branch and restores it.
func (f *fleet) branchDeleted(d *rig.Daemon, branch, what string) {
	f.t.Helper()
	head := f.ref(branch)
	before, err := f.slices("rome")
	if err != nil {
		f.t.Fatal(err)
	}
	repo := f.Git.RepoDir(rig.Repo)
	if _, err := f.team.Git(f.ctx, "--git-dir", repo, "update-ref", "-d", "refs/heads/"+branch); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
	f.eventually("the daemon says that it has stopped", func() error { return f.notReady(d, branch) })
	if ref := f.ref(branch); ref != "" {
		f.t.Errorf("the daemon made %s anew, at %s", branch, ref)
	}
	after, err := f.slices("rome")
	if err != nil {
		f.t.Fatal(err)
	}
	if !maps.Equal(before, after) {
		f.t.Errorf("the cluster had %v, and now %v", before, after)
	}
	if _, err := f.team.Git(f.ctx, "--git-dir", repo, "update-ref", "refs/heads/"+branch, head); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("the daemon goes on by itself", func() error { return f.ready(d) })
	name := "after-" + branch
	f.put(name, intent(name, 1))
	f.eventually("and places", func() error { return f.inPhase(name, 1, "Peering") })
}

// otherLedger lets the fleet name another branch for the ledger: nothing is
// begun there before somebody has brought the old one over.
func (f *fleet) otherLedger(d *rig.Daemon) {
	f.t.Helper()
	f.push("Keep books", map[string]*string{"fleet.yaml": ptr(fleetFile("books", ""))})
	f.eventually("the daemon wants to be started again", func() error { return f.notReady(d, "restart it to follow") })
	f.standing()
	if err := d.Stop(); err != nil {
		f.t.Fatal(err)
	}
	if err := d.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("it misses what it had accepted", func() error { return f.notReady(d, "books") })
	f.standing()
	if ref := f.ref("books"); ref != "" {
		f.t.Fatalf("the daemon began a new ledger at %s", ref)
	}
	if _, err := f.team.Git(f.ctx, "--git-dir", f.Git.RepoDir(rig.Repo), "branch", "books", f.ledger); err != nil {
		f.t.Fatal(err)
	}
	f.ledger = "books"
	f.eventually("it goes on there", func() error { return f.ready(d) })
	f.put("booked", intent("booked", 1))
	f.eventually("and places", func() error { return f.inPhase("booked", 1, "Peering") })
}

// oddEntry is something that is neither a plain file nor a directory of such,
// and how it is made in the team's clone.
type oddEntry struct {
	name string
	make func() error
}

func (f *fleet) oddEntries(vision string) []oddEntry {
	return []oddEntry{
		{"a link to a file", func() error { return os.Symlink("firm.yaml", filepath.Join(vision, "link.yaml")) }},
		{"a link out of the repo", func() error { return os.Symlink("/etc/passwd", filepath.Join(vision, "passwd.yaml")) }},
		{"a link for a directory", func() error { return os.Symlink("..", filepath.Join(vision, "loop")) }},
		{"a directory called as a file", func() error {
			return f.team.Write(map[string]string{"intents/vision/dir.yaml/inner.yaml": intent("inner", 1)})
		}},
		{"a large file", func() error {
			return f.team.Write(map[string]string{"intents/vision/large.yaml": strings.Repeat("# nothing\n", 2_000_000)})
		}},
		{"a deep file", func() error {
			return f.team.Write(map[string]string{"intents/vision/deep.yaml": "a: " + strings.Repeat("[", 100_000) + "\n"})
		}},
		{"odd names", func() error {
			return f.team.Write(map[string]string{
				"intents/vision/with space.yaml": intent("space", 1), "intents/vision/ümläut.yaml": intent("umlaut", 1), "intents/vision/new\nline.yaml": intent("line", 1),
			})
		}},
		{"a submodule", func() error {
			_, err := f.team.Git(f.ctx, "update-index", "--add", "--cacheinfo", "160000,"+f.ref("main")+",intents/vision/module")
			return err
		}},
		{"a kustomization of what is not there", func() error {
			return f.team.Write(map[string]string{"intents/vision/k/kustomization.yaml": "resources: [../../../../etc, https://example.org/x, missing.yaml]\n"})
		}},
		{"a stray tenant and a stray top", func() error {
			return f.team.Write(map[string]string{"intents/ghost/x.yaml": intent("ghost", 1), "intents/loose.yaml": "x", "stray/file": "x", "contracts.txt": "x"})
		}},
	}
}

// What git can hold beside plain files hurts nobody either.
func TestOddEntries(t *testing.T) {
	f := start(t, nil)
	d := f.up()
	f.put("firm", intent("firm", 1))
	f.eventually("placed", func() error { return f.inPhase("firm", 1, "Peering") })
	vision := filepath.Join(f.team.Dir, "intents", "vision")
	for i, tc := range f.oddEntries(vision) {
		f.step(tc.name, func(t *testing.T) {
			if _, err := f.team.Git(f.ctx, "pull", "-q", "--rebase"); err != nil {
				t.Fatal(err)
			}
			if err := tc.make(); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("beside%d", i)
			files := map[string]string{intentPath(name): intent(name, 1)}
			if tc.name == "a submodule" { // `git add --all` would drop it: there is no directory
				if err := f.team.Write(files); err != nil {
					t.Fatal(err)
				}
				for _, args := range [][]string{{"add", intentPath(name)}, {"commit", "-q", "-m", tc.name}, {"push", "-q"}} {
					if _, err := f.team.Git(f.ctx, args...); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.MkdirAll(filepath.Join(vision, "module"), 0o755); err != nil {
					t.Fatal(err)
				}
			} else if _, err := f.team.CommitAndPush(f.ctx, tc.name, files); err != nil {
				t.Fatal(err)
			}
			f.eventually("what is right beside it is placed", func() error { return f.inPhase(name, 1, "Peering") })
			f.remove(name)
			f.eventually("and given back", func() error { return f.inPhase(name, 1, "Released") })
		})
	}
	if err := f.inPhase("firm", 1, "Peering"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"inner", "space", "umlaut"} {
		if err := f.inPhase(name, 1, "Peering"); err != nil {
			t.Error(err)
		}
	}
	if len(f.phases("ghost")) != 0 {
		t.Error("a directory of no tenant got a contract")
	}
	if out, said, code := f.cli("validate", f.team.Dir); code != 1 {
		t.Errorf("validate ends with %d: %s%s", code, out, said)
	}
	if err := f.ready(d); err != nil {
		t.Error(err)
	}
	f.applied()
	f.sound()
}

// standsBy is what a daemon logs that finds another one's commits on the ledger.
const standsBy = "stands by: another daemon writes this ledger"
