//go:build e2e && full

package spine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

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
