//go:build e2e

package spine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// What the fleet stands on is taken away by one commit each, and given back:
// no contract ends by that, nothing is pruned, and the daemon goes on.
func TestGroundTakenAway(t *testing.T) {
	f := start(t, nil)
	d := f.up()
	for i := range 3 {
		f.put(fmt.Sprintf("firm%d", i), intent(fmt.Sprintf("firm%d", i), 1))
	}
	f.eventually("placed", func() error { return f.placed("firm", 3) })
	f.applied()
	for i, path := range []string{"fleet.yaml", "tenants/vision.yaml", "clusters/paris.yaml", "clusters/rome.yaml"} {
		f.step(path, func(*testing.T) {
			content := f.read(filepath.Join(f.team.Dir, path))
			for _, text := range []*string{ptr("kind: ["), nil} {
				f.push("Take "+path+" away", map[string]*string{path: text})
				f.polled()
				f.standing()
				if err := d.Stop(); err != nil {
					f.t.Fatal(err)
				}
				if err := d.Restart(f.ctx); err != nil {
					f.t.Fatal(err)
				}
				f.polled()
				f.standing()
			}
			f.push("Give "+path+" back", map[string]*string{path: &content})
			name := fmt.Sprintf("after%d", i)
			f.put(name, intent(name, 1))
			f.eventually("placed afterwards", func() error { return f.inPhase(name, 1, "Peering") })
			f.eventually("ready", func() error { return f.ready(d) })
			f.applied()
		})
	}
	f.step("the ledger branch", func(*testing.T) { f.branchDeleted(d, f.ledger, "delete the ledger") })
	f.step("the branch of the inputs", func(*testing.T) { f.branchDeleted(d, "main", "delete main") })
	f.sound()
	f.step("another branch for the ledger", func(*testing.T) { f.otherLedger(d) })
	f.applied()
	f.sound()
}

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

// A daemon that hangs, and wakes up, brings nothing back that another one has released:
// the other, which shares no store with it, takes over once nothing was written for two
// minutes and the cluster's Lease has run out, and the one that wakes up writes to
// neither the cluster nor the ledger.
func TestHungDaemonWakesUp(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.Audit = true })
	const hung = "fleetbroker:one" // its user in the cluster, so that its calls are told apart
	kubeconfig, err := f.Clusters["rome"].KubeconfigFor(hung, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(f.Dir, "kubeconfigs-one")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(filepath.Join(own, "rome.kubeconfig"), string(kubeconfig))
	one := f.daemon("one", "--kubeconfigs-dir", own)
	one.NotifyPushes(f.ctx)
	f.eventually("it leads", func() error { return logged(one, "holds the cluster's Lease") })
	two := f.daemon("two", "--poll-interval", "10m") // it learns of the intent after one has decided
	f.agents()
	f.await(one)
	f.put("old", intent("old", 4))
	f.eventually("placed", func() error { return f.inPhase("old", 1, "Peering") })
	two.NotifyPushes(f.ctx)
	f.push("Wake the other one", map[string]*string{"README.md": ptr("# The fleet\n")})
	f.eventually("the other one stands by", func() error { return logged(two, standsBy) })
	f.applied()
	if err := one.Pause(); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	f.push("Exchange", map[string]*string{intentPath("old"): nil, intentPath("new"): ptr(intent("new", 16))})
	f.within(writers.Young+2*patience, "the other one gives back and places", func() error {
		if err := f.inPhase("old", 1, "Released"); err != nil {
			return err
		}
		return f.inPhase("new", 1, "Peering")
	})
	f.applied()
	if took := time.Since(frozen); took > writers.Young+delivery.Takeover(delivery.DefaultLeaseDuration)+20*time.Second {
		t.Errorf("the other took over, gave back and placed after %s", took)
	}
	woken, ledger := time.Now(), f.ref(f.ledger)
	if err := one.Resume(); err != nil {
		t.Fatal(err)
	}
	f.eventually("it stands by now", func() error { return logged(one, standsBy) })
	f.quiet(2 * time.Second)
	if f.ref(f.ledger) != ledger {
		t.Errorf("once it woke up, the ledger got %q", f.subjects()[:1])
	}
	f.put("last", intent("last", 1))
	f.eventually("both know", func() error { return f.stateSays("last", "state: Queued") })
	f.quiet(4 * time.Second)
	f.applied()
	calls, err := f.Clusters["rome"].Calls(hung)
	if err != nil {
		t.Fatal(err)
	}
	wrote := 0
	for _, c := range calls {
		writes := c.Verb == "create" || c.Verb == "update" || c.Verb == "patch" || c.Verb == "delete"
		if writes && c.Resource != "leases" {
			wrote++
			if c.At.After(woken) {
				t.Errorf("the daemon that woke up writes: %s", c)
			}
		}
	}
	if wrote == 0 {
		t.Error("it never wrote anything, which shows nothing")
	}
	f.sound()
}

// Killed again and again in the middle of much work, a daemon loses nothing
// and repeats nothing.
func TestKilledAgainAndAgain(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.AgentArgs = []string{"--advertisement-requeue-interval", "500ms"} })
	d := f.up()
	for wave := range 6 {
		files := map[string]*string{}
		for i := range 8 {
			name := fmt.Sprintf("w%dx%d", wave%2, i)
			if wave < 2 {
				files[intentPath(name)] = ptr(intent(name, 1))
			} else if wave < 4 && i%2 == 0 {
				files[intentPath(name)] = nil
			} else if wave >= 4 && i%2 == 0 {
				files[intentPath(name)] = ptr(intent(name, 1, fmt.Sprintf("  priority: %d\n", wave)))
			}
		}
		before := f.ref(f.ledger)
		f.push(fmt.Sprintf("Wave %d", wave), files)
		f.eventually("work has begun", func() error {
			if f.ref(f.ledger) == before {
				return fmt.Errorf("the ledger is still at %s", before)
			}
			return nil
		})
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := d.Restart(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	f.await(d)
	f.eventually("all sixteen are placed", func() error { return f.placed("w", 16) })
	f.applied()
	f.quiet(2 * time.Second)
	f.sound()
}
