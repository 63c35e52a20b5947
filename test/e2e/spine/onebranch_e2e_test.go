//go:build e2e

package spine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// fleetFile is a fleet.yaml whose daemon writes to a branch.
func fleetFile(branch, more string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
		"  writeBack: {mode: push, inputs: main, branch: " + branch + ", statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}\n" + more
}

// On one branch for people and daemon, teams' pushes race with ours, nobody
// loses anything, and our own commits start no round. What ended long ago
// leaves the tree, and its cost stays.
func TestOneBranchAndRetention(t *testing.T) {
	f := start(t, func(o *rig.Options) {
		o.Inputs = map[string]string{"fleet.yaml": fleetFile("main", "  retention: {ended: 2s}\n")}
	})
	f.ledger = "main"
	d := f.up("--verbose")
	f.put("train", intent("train", 4))
	f.eventually("placed", func() error { return f.inPhase("train", 1, "Peering") })
	f.applied()
	f.step("our own commits start no round", func(t *testing.T) {
		planned := func() int {
			return strings.Count(f.read(d.LogFile()), "msg=round ") - strings.Count(f.read(d.LogFile()), "outcome=unchanged")
		}
		f.eventually("at rest", func() error {
			before := planned()
			f.quiet(2 * time.Second)
			if n := planned() - before; n > 0 {
				return fmt.Errorf("%d rounds planned", n)
			}
			return nil
		})
		if !strings.Contains(f.read(d.LogFile()), "outcome=unchanged") {
			t.Error("the log does not tell rounds that change nothing")
		}
	})
	f.step("teams race with the daemon", func(*testing.T) {
		const n = 10
		for i := range n {
			f.put(fmt.Sprintf("race%d", i), intent(fmt.Sprintf("race%d", i), 1))
		}
		f.eventually("all are placed", func() error { return f.placed("race", n) })
		f.applied()
	})
	f.step("what has ended leaves, and its cost stays", func(*testing.T) { f.retired() })
	f.applied()
	f.sound()
}

// spendFile is the part of a spend file that is added up here.
type spendFile struct {
	Entries []struct{ Contract, Amount, Currency string }
}

// retired ends a contract and adds its cost up before and after it leaves.
func (f *fleet) retired() {
	f.t.Helper()
	name := f.only("train", "Peering")
	path := f.contractPath(name)
	f.remove("train")
	f.eventually("it leaves the tree", func() error {
		if len(f.phases("train")) != 0 {
			return fmt.Errorf("it is still there: %v", f.phases("train"))
		}
		return nil
	})
	repo := f.Git.RepoDir(rig.Repo)
	left, err := env.Git(f.ctx, repo, "log", "-1", "--diff-filter=D", "--format=%H", f.ledger, "--", path)
	if err != nil {
		f.t.Fatal(err)
	}
	ended, err := env.Git(f.ctx, repo, "show", left+"^:"+path)
	if err != nil || !strings.Contains(ended, "phase: Released") {
		f.t.Fatalf("it left as: %s %v", ended, err)
	}
	month := ""
	var spend spendFile
	for _, path := range strings.Fields(f.list(f.ledger, "contracts/vision/")) {
		if strings.HasPrefix(path, "contracts/vision/spend-") {
			month = path
			if err := yaml.Unmarshal([]byte(f.file(path)), &spend); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	if month == "" || len(spend.Entries) != 1 || spend.Entries[0].Contract != name {
		f.t.Fatalf("spend file %q holds %+v, want the cost of %s", month, spend, name)
	}
	paid, err := decimal.NewFromString(spend.Entries[0].Amount)
	if err != nil || !paid.IsPositive() {
		f.t.Fatalf("it cost %q: %v", spend.Entries[0].Amount, err)
	}
	var was struct {
		Status struct{ Accrued string }
	}
	if err := yaml.Unmarshal([]byte(ended), &was); err != nil {
		f.t.Fatal(err)
	}
	if accrued, err := decimal.NewFromString(was.Status.Accrued); err != nil || !accrued.Equal(paid) {
		f.t.Errorf("it had accrued %q, and the spend file says %s: %v", was.Status.Accrued, paid, err)
	}
}
