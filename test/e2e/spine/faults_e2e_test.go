//go:build e2e

package spine

import (
	"context"
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// Whatever happens to a push, one contract comes of one intent, and nothing is
// applied before the remote has it.
func TestFaultsOfTheGitServer(t *testing.T) {
	f := start(t, nil)
	f.behind = true
	f.up()
	for i, tc := range []struct {
		name  string
		fault env.Fault
		n     int
	}{
		{"refused", env.FaultPushRefused, 2},
		{"cut", env.FaultPushCut, 2},
		{"answer-lost", env.FaultPushAnswerLost, 1},
		{"answer-cut", env.FaultPushAnswerCut, 1},
		{"no-room", env.FaultPushNoRoom, 2},
		{"server-error", env.FaultRefuse, 5},
		{"cut-in-the-body", env.FaultCutBody, 3},
	} {
		f.step(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("f%d", i)
			f.Git.FailNext(tc.fault, tc.n)
			f.put(name, intent(name, 1))
			f.eventually("placed once", func() error { return f.inPhase(name, 1, "Reserved", "Peering") })
			f.Git.SetFault(env.FaultNone)
			f.applied()
		})
	}
	f.step("stalls in the middle of bodies", func(*testing.T) {
		f.Git.SetFault(env.FaultStallBody)
		f.put("stalled", intent("stalled", 1))
		f.eventually("the daemon says what is wrong", func() error { return f.notReady(f.daemons[0], "the remote has not answered for 3") })
		f.Git.SetFault(env.FaultNone)
		f.eventually("placed", func() error { return f.inPhase("stalled", 1, "Peering") })
		f.eventually("ready", func() error { return f.ready(f.daemons[0]) })
	})
	f.step("gone and back", func(t *testing.T) {
		if err := f.Git.Down(); err != nil {
			t.Fatal(err)
		}
		f.put("gone", intent("gone", 1))
		f.eventually("the daemon says what is wrong", func() error { return f.notReady(f.daemons[0], "fetch the fleet repo") })
		if err := f.Git.Up(); err != nil {
			t.Fatal(err)
		}
		f.eventually("placed", func() error { return f.inPhase("gone", 1, "Peering") })
	})
	f.step("gone and back, and only a cluster has drifted", func(t *testing.T) {
		if err := f.Git.Down(); err != nil {
			t.Fatal(err)
		}
		f.eventually("it says what is wrong", func() error { return f.notReady(f.daemons[0], "fetch the fleet repo") })
		f.kubectl("rome", "delete", sliceKind, "-n", tenantNamespace("paris"), f.only("gone", "Peering"))
		if err := f.Git.Up(); err != nil {
			t.Fatal(err)
		}
		f.eventually("it says that all is well", func() error { return f.ready(f.daemons[0]) })
		f.applied() // the drift, too, once the remote has confirmed what shall be there
	})
	f.step("a hook refuses", func(t *testing.T) {
		hook := "#!/bin/sh\nwhile read old new ref; do\n  case $ref in refs/heads/" + f.ledger +
			") git diff --name-only $old $new | grep -q /hooked/ && { echo 'policy: no hooked'; exit 1; };; esac\ndone\nexit 0\n"
		if err := env.InstallHook(f.Git.RepoDir(rig.Repo), "pre-receive", hook); err != nil {
			t.Fatal(err)
		}
		hooked, fine := intent("hooked", 1), intent("fine", 1)
		f.push("Ask for two", map[string]*string{intentPath("hooked"): &hooked, intentPath("fine"): &fine})
		f.eventually("the other one is placed", func() error { return f.inPhase("fine", 1, "Peering") })
		if got := f.phases("hooked"); len(got) != 0 {
			t.Errorf("the refused one stands on the ledger: %v", got)
		}
		if err := env.RemoveHook(f.Git.RepoDir(rig.Repo), "pre-receive"); err != nil {
			t.Fatal(err)
		}
		f.eventually("the refused one too, once it may", func() error { return f.inPhase("hooked", 1, "Peering") })
	})
	f.applied()
	f.sound()
}

// fault makes the git server fail so from when it is called.
func fault(f *fleet, what env.Fault) func() error {
	return func() error { f.Git.SetFault(what); return nil }
}

// A daemon that is killed at any step loses nothing and repeats nothing.
func TestKilledAtEachStep(t *testing.T) {
	f := start(t, nil)
	f.behind = true
	d := f.up()
	kill := func(t *testing.T) {
		t.Helper()
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		f.Git.SetFault(env.FaultNone)
		if err := d.Restart(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	held := func(t *testing.T) {
		t.Helper()
		ctx, cancel := context.WithTimeout(f.ctx, patience)
		defer cancel()
		if err := f.Git.WaitHeld(ctx, 1); err != nil {
			t.Fatal("the daemon did not get to the step: ", err)
		}
	}
	for i, step := range []struct {
		name    string
		arm     func() error
		reached func(t *testing.T, name string)
	}{
		{"while it fetches", fault(f, env.FaultHang), func(t *testing.T, _ string) { held(t) }},
		{"before the push is taken", fault(f, env.FaultPushHang), func(t *testing.T, _ string) { held(t) }},
		{"after the push, before its answer", fault(f, env.FaultPushAnswerHeld), func(t *testing.T, _ string) { held(t) }},
		{"after the commit, while it applies", f.Clusters["rome"].Pause, func(_ *testing.T, name string) {
			f.eventually("reserved", func() error { return f.inPhase(name, 1, "Reserved") })
		}},
	} {
		f.step(step.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			if err := step.arm(); err != nil {
				t.Fatal(err)
			}
			f.put(name, intent(name, 2))
			step.reached(t, name)
			kill(t)
			if err := f.Clusters["rome"].Resume(); err != nil {
				t.Fatal(err)
			}
			f.await(d)
			f.eventually("placed once", func() error { return f.inPhase(name, 1, "Peering") })
			f.applied()
		})
	}
	f.sound()
}
