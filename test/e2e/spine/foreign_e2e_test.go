//go:build e2e

package spine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// stranger is somebody who may push to the ledger and should not.
func (f *fleet) stranger() *env.Team {
	f.t.Helper()
	mallory, err := f.Team(f.ctx, "mallory")
	if err != nil {
		f.t.Fatal(err)
	}
	return mallory
}

// onLedger puts a stranger's clone on the ledger's newest commit.
func (f *fleet) onLedger(who *env.Team) {
	f.t.Helper()
	for _, args := range [][]string{{"fetch", "-q", "origin"}, {"checkout", "-q", "-B", f.ledger, "origin/" + f.ledger}} {
		if _, err := who.Git(f.ctx, args...); err != nil {
			f.t.Fatal(err)
		}
	}
}

// Generated files belong to the daemon: what others write there is undone by
// name and never acted on. A history that was rewritten stops it.
func TestForeignHandsOnTheLedger(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.Audit = true })
	d := f.up()
	f.put("train", intent("train", 4))
	f.put("serve", intent("serve", 2))
	f.eventually("both are placed", func() error { return f.placed("", 2) })
	f.applied()
	mallory := f.stranger()
	evil := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil, namespace: default}\n"
	contract := f.contractPath(f.only("train", "Peering"))
	slice := f.slicePath(f.only("serve", "Peering"))
	for _, tc := range []struct {
		name   string
		files  map[string]string
		remove string
		named  string
	}{
		{"an edited contract", map[string]string{contract: strings.Replace(f.file(contract), `"4"`, `"7"`, 1)}, "", contract},
		{"a deleted manifest", nil, slice, slice},
		{"an edited manifest", map[string]string{slice: strings.ReplaceAll(f.file(slice), `"2"`, `"8"`)}, "", slice},
		{"a broken contract", map[string]string{contract: "{"}, "", contract},
		{"a stray manifest", map[string]string{"manifests/rome/vision/evil.yaml": evil}, "", "manifests/rome/vision/evil.yaml"},
		{"a stray cluster", map[string]string{"manifests/oslo/evil.yaml": evil, "contracts/x": "x"}, "", "manifests/oslo/evil.yaml"},
		{"a stray request", map[string]string{"requests/vision/202611/evil.yaml": intent("evil", 1)}, "", "requests/vision/202611/evil.yaml"},
	} {
		f.step(tc.name, func(t *testing.T) {
			f.onLedger(mallory)
			before := f.treeOf()
			var err error
			if tc.remove != "" {
				_, err = mallory.Remove(f.ctx, "Tidy up", tc.remove)
			} else {
				_, err = mallory.Commit(f.ctx, "Just a small fix", tc.files)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := mallory.Push(f.ctx, "origin", f.ledger); err != nil {
				t.Fatal(err)
			}
			f.eventually("undone", func() error {
				if now := f.treeOf(); now != before {
					return fmt.Errorf("the ledger's tree is %s, before it was %s: %q", now, before, f.subjects()[:2])
				}
				return nil
			})
			message, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "log", "-1", "--format=%B", f.ledger)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"mallory", tc.named} {
				if !strings.Contains(message, want) {
					t.Errorf("the commit that undoes it does not name %s:\n%s", want, message)
				}
			}
		})
	}
	f.applied()
	f.neverSeen()
	f.step("what the team does meanwhile goes on", func(t *testing.T) {
		f.onLedger(mallory)
		if _, err := mallory.Commit(f.ctx, "And again", map[string]string{contract: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := mallory.Push(f.ctx, "origin", f.ledger); err != nil {
			t.Fatal(err)
		}
		f.put("meanwhile", intent("meanwhile", 1))
		f.eventually("placed", func() error { return f.inPhase("meanwhile", 1, "Peering") })
	})
	f.applied()
	f.sound()
	f.step("a ledger set back to an older commit", func(*testing.T) { f.ledgerSetBack(d, mallory) })
	f.step("inputs of another root", func(*testing.T) { f.otherRoot(d) })
	f.applied()
	f.sound()
}

// slicePath is where a contract's slice lies on the ledger.
func (f *fleet) slicePath(name string) string {
	f.t.Helper()
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "grep", "-l", "kind: ResourceSlice", f.ledger, "--", "manifests/")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, line := range strings.Fields(out) {
		path := strings.TrimPrefix(line, f.ledger+":")
		if strings.Contains(path, name) {
			return path
		}
	}
	f.t.Fatalf("no slice of %s among %s", name, out)
	return ""
}

// neverSeen demands that nothing foreign has reached the cluster at any time.
func (f *fleet) neverSeen() {
	f.t.Helper()
	calls, err := f.Clusters["rome"].Calls("")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range calls {
		if strings.Contains(c.URI, "evil") {
			f.t.Errorf("foreign content was acted on: %s", c)
		}
		if c.Verb == "delete" && c.Resource == "resourceslices" {
			f.t.Errorf("a slice was deleted: %s", c)
		}
	}
	out := f.kubectl("rome", "get", sliceKind, "-A", "-o", `jsonpath={range .items[*]}{.metadata.generation} {.spec.resources.nvidia\.com/gpu}{"\n"}{end}`)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasPrefix(line, "1 ") {
			f.t.Errorf("a slice was changed: %s", line)
		}
	}
}

// stopped demands that the daemon writes and applies nothing until the commit
// is accepted, and then goes on.
func (f *fleet) stopped(d *rig.Daemon, ref, intentName string) {
	f.t.Helper()
	before, err := f.slices("rome")
	if err != nil {
		f.t.Fatal(err)
	}
	f.eventually("the daemon says that it has stopped", func() error { return f.notReady(d, "--accept-rewrite") })
	ledger := f.ref(f.ledger)
	f.put(intentName, intent(intentName, 1))
	if out, code := f.reconcile(d); code == 0 {
		f.t.Errorf("a round without leave goes on: %s", out)
	}
	if err := f.notReady(d, "--accept-rewrite"); err != nil {
		f.t.Error(err)
	}
	if f.ref(f.ledger) != ledger {
		f.t.Error("a daemon that has stopped wrote to the ledger")
	}
	after, err := f.slices("rome")
	if err != nil {
		f.t.Fatal(err)
	}
	for name := range before {
		if !after[name] {
			f.t.Errorf("slice %s was pruned while the daemon should stand still", name)
		}
	}
	if out, err := f.reconcileOnce(d, "--accept-rewrite", f.ref(ref)); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	f.eventually("the daemon goes on", func() error { return f.ready(d) })
	f.eventually("and places again", func() error { return f.inPhase(intentName, 1, "Peering") })
}

func (f *fleet) ledgerSetBack(d *rig.Daemon, who *env.Team) {
	f.t.Helper()
	f.onLedger(who)
	if err := who.Push(f.ctx, "--force", "origin", f.ledger+"~2:"+f.ledger); err != nil {
		f.t.Fatal(err)
	}
	f.stopped(d, f.ledger, "after-ledger")
}

// otherRoot replaces main by one commit without a past.
func (f *fleet) otherRoot(d *rig.Daemon) {
	f.t.Helper()
	for _, args := range [][]string{
		{"pull", "-q", "--rebase", "origin", "main"}, {"checkout", "-q", "--orphan", "anew"}, {"commit", "-q", "-m", "Begin anew"},
		{"branch", "-q", "-M", "anew", "main"}, {"push", "-q", "--force", "origin", "main"},
	} {
		if _, err := f.team.Git(f.ctx, args...); err != nil {
			f.t.Fatal(err)
		}
	}
	f.stopped(d, "main", "after-inputs")
}
