//go:build e2e

package spine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// Of two replicas the one that serves the cluster is killed in the midst of its
// work: the other takes over once the Lease has run out, and nothing is lost.
// Then that one is killed too, and an operator's single round waits for the
// dead daemon's Lease instead of leaving the cluster to it.
func TestKilledHoldersOfTheLease(t *testing.T) {
	f := start(t, nil)
	one, two := f.pair()
	const holds = "holds the cluster's Lease"
	f.eventually("one of them serves the cluster", func() error {
		if logged(one, holds) != nil {
			return logged(two, holds)
		}
		return nil
	})
	holder, other := one, two
	if logged(one, holds) != nil {
		holder, other = two, one
	}
	f.step("the other takes over", func(t *testing.T) {
		for i := range 4 {
			f.put(fmt.Sprintf("job%d", i), intent(fmt.Sprintf("job%d", i), 1))
		}
		f.eventually("the first is reserved", func() error { return f.inPhase("job0", 1, "Reserved", "Peering") })
		if err := holder.Kill(); err != nil {
			t.Fatal(err)
		}
		f.put("late", intent("late", 1))
		for _, name := range []string{"job0", "job1", "job2", "job3", "late"} {
			f.eventually(name+" is placed and applied", func() error { return f.inPhase(name, 1, "Peering") })
		}
		f.applied()
		if err := logged(other, holds); err != nil {
			t.Error(err)
		}
	})
	f.step("a single round waits for the Lease of a dead daemon", func(t *testing.T) {
		market, err := other.Market(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(f.Dir, "market.yaml")
		f.write(file, market)
		if err := other.Kill(); err != nil {
			t.Fatal(err)
		}
		f.put("last", intent("last", 1))
		out, said, code := f.cli(append([]string{"reconcile", "--once", "--repo", f.Git.URL(rig.Repo), "--state-dir", filepath.Join(f.Dir, "state-operator"),
			"--kubeconfigs-dir", filepath.Join(f.Dir, "kubeconfigs"), "--identity", "operator", "--market", file}, f.Trust()...)...)
		if code != 0 || strings.Contains(out, "is left to") {
			t.Errorf("reconcile ends with %d: %s%s", code, out, said)
		}
		if err := f.inPhase("last", 1, "Reserved", "Peering"); err != nil {
			t.Error(err)
		}
		f.applied()
	})
	f.sound()
}
