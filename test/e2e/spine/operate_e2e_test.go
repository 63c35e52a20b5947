//go:build e2e

package spine

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// What operators do: suspend, watch without writing, look at metrics, stop a
// daemon while another one stands by.
func TestOperation(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.Audit = true })
	shadow := f.daemon("shadow", "--shadow")
	f.agents()
	f.await(shadow)
	f.step("a shadow plans and writes nothing", func(t *testing.T) {
		f.put("train", intent("train", 4))
		f.eventually("planned", func() error {
			out, said, code := f.cli("plan", f.Git.URL(rig.Repo), "--market", "http://"+shadow.Operators+"/market")
			if code != 2 || !strings.Contains(out, "vision/train") {
				return fmt.Errorf("plan ends with %d: %s%s", code, out, said)
			}
			return nil
		})
		f.quiet(3 * time.Second)
		if head := f.ref(f.ledger); head != "" {
			t.Errorf("a shadow wrote %s", head)
		}
		if have, err := f.slices("rome"); err != nil || len(have) != 0 {
			t.Errorf("a shadow applied %v: %v", have, err)
		}
	})
	one := f.daemon("one")
	one.NotifyPushes(f.ctx)
	for name := range f.Providers {
		if _, err := f.Agent(f.ctx, name, one); err != nil {
			t.Fatal(err)
		}
	}
	f.await(one)
	f.eventually("a daemon that may write places it", func() error { return f.inPhase("train", 1, "Peering") })
	f.applied()
	f.step("nothing is asked of anybody while nothing happens", func(t *testing.T) { f.silent() })
	f.step("an intent is suspended and resumed", func(t *testing.T) {
		f.put("train", intent("train", 4, "  suspend: true\n"))
		f.eventually("given back", func() error { return f.inPhase("train", 1, "Released") })
		f.applied()
		f.put("train", intent("train", 4))
		f.eventually("placed again", func() error { return f.inPhase("train", 1, "Peering") })
		f.applied()
	})
	f.step("the fleet is suspended and resumed", func(t *testing.T) {
		f.push("Stand still", map[string]*string{"fleet.yaml": ptr(fleetFile(f.ledger, "  suspend: true\n"))})
		f.push("Ask and give up", map[string]*string{intentPath("still"): ptr(intent("still", 1)), intentPath("train"): nil})
		f.quiet(3 * time.Second)
		if err := f.inPhase("train", 1, "Peering"); err != nil {
			t.Errorf("a fleet that stands still gave back: %v", err)
		}
		f.push("Go on", map[string]*string{"fleet.yaml": ptr(fleetFile(f.ledger, ""))})
		f.eventually("placed", func() error { return f.inPhase("still", 1, "Peering") })
		f.eventually("given back", func() error { return f.inPhase("train", 2, "Released") })
		f.applied()
	})
	f.step("metrics are as documented", func(t *testing.T) { f.metrics(one) })
	f.step("a daemon that is told to stop makes room at once", func(t *testing.T) { f.handover(one) })
	f.applied()
	f.sound()
}

// silent demands that daemon and agents make no call for some seconds but to
// renew Leases and keep watches.
func (f *fleet) silent() {
	f.t.Helper()
	// Agents show on their clusters, up to a second later, what was decided.
	f.eventually("everybody has said what there was to say", func() error {
		return errors.Join(f.asked(time.Now().Add(-2 * time.Second))...)
	})
	from := time.Now()
	f.quiet(8 * time.Second)
	for _, call := range f.asked(from) {
		f.t.Errorf("though nothing happens: %v", call)
	}
}

// asked are the calls to clusters since a time that are not about being there
// at all.
func (f *fleet) asked(since time.Time) (calls []error) {
	f.t.Helper()
	for name, c := range f.Clusters {
		all, err := c.Calls("")
		if err != nil {
			f.t.Fatal(err)
		}
		for _, call := range all {
			if call.At.Before(since) || call.Resource == "leases" || call.Verb == "watch" || strings.HasPrefix(call.URI, "/version") || strings.HasPrefix(call.URI, "/readyz") {
				continue
			}
			calls = append(calls, fmt.Errorf("on %s: %s", name, call))
		}
	}
	return calls
}

// metrics demands those that are documented, with values where the story
// before must have left some.
func (f *fleet) metrics(d *rig.Daemon) {
	f.t.Helper()
	f.eventually("metrics", func() error {
		text, err := f.get(d, "/metrics")
		if err != nil {
			return err
		}
		for _, want := range []string{
			`fleetbroker_reservations_total{phase="Reserved",requester="vision"}`, "fleetbroker_decision_seconds_count", "fleetbroker_commit_seconds_count",
			"fleetbroker_push_conflicts_total", `fleetbroker_advert_total{cluster="paris",result="accepted"}`, "fleetbroker_time_to_reserve_seconds_count",
			"fleetbroker_time_to_active_seconds_count", `fleetbroker_spend_total{currency="EUR",tenant="vision"}`, `fleetbroker_savings{currency="EUR",tenant="vision"}`,
		} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("/metrics has no %s", want)
			}
		}
		for _, zero := range []string{`fleetbroker_spend_total{currency="EUR",tenant="vision"} 0` + "\n", "fleetbroker_commit_seconds_count 0\n", "fleetbroker_time_to_reserve_seconds_count 0\n"} {
			if strings.Contains(text, zero) {
				return fmt.Errorf("/metrics says %s after contracts were placed and ended", zero)
			}
		}
		return nil
	})
}

// handover stops a daemon as an orchestrator does, while another stands by.
func (f *fleet) handover(one *rig.Daemon) {
	f.t.Helper()
	two := f.daemon("two")
	two.NotifyPushes(f.ctx)
	for name := range f.Providers {
		if _, err := f.Agent(f.ctx, name, two); err != nil {
			f.t.Fatal(err)
		}
	}
	f.eventually("it stands by", func() error { return logged(two, standsBy) })
	if err := logged(two, "holds the cluster's Lease"); err == nil {
		f.t.Error("two daemons hold one Lease")
	}
	watch := bounded.StartStopwatch()
	if err := one.Stop(); err != nil {
		f.t.Fatal(err)
	}
	if err := watch.Late(10*time.Second, time.Minute); err != nil {
		f.t.Errorf("it stopped: %v", err)
	}
	if err := one.Failure(); !strings.Contains(err.Error(), "exit status 0") {
		f.t.Errorf("it did not end well: %v", err)
	}
	f.put("next", intent("next", 1))
	f.within(writers.Young+patience, "the other one places and applies", func() error { return f.inPhase("next", 1, "Peering") })
	// A Lease that nobody gave up would have to run out first: 30 s.
	if err := watch.Late(writers.Young+12*time.Second, 2*time.Minute); err != nil {
		f.t.Errorf("the other one took over, and the Lease was not given up: %v", err)
	}
}

// A remote over ssh and one that is a directory serve as well as http; signed
// commits verify with git itself; what only looks like ours is undone.
func TestSignedOverSSH(t *testing.T) {
	f := start(t, nil)
	keys := filepath.Join(f.Dir, "keys")
	for _, name := range []string{"broker", "mallory"} {
		if out, err := exec.CommandContext(f.ctx, "sh", "-c", "mkdir -p "+keys+" && ssh-keygen -q -t ed25519 -N '' -C "+name+" -f "+keys+"/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	public := f.read(filepath.Join(keys, "broker.pub"))
	signed := strings.Replace(fleetFile(f.ledger, ""), "branch:", "signers: [{principal: fleetbroker@example.org, publicKey: "+strings.TrimSpace(public)+"}], branch:", 1)
	f.push("Sign", map[string]*string{"fleet.yaml": &signed})

	sshDir := filepath.Join(f.Dir, "ssh")
	if err := exec.CommandContext(f.ctx, "mkdir", "-p", sshDir).Run(); err != nil {
		t.Fatal(err)
	}
	server, err := env.StartSSH(f.ctx, f.Git.Dir, sshDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	key := filepath.Join(keys, "broker")
	d := f.up("--repo", server.URL(rig.Repo), "--git-ssh-key", server.ClientKeyFile, "--git-known-hosts", server.KnownHostFile, "--signing-key", key)
	f.put("train", intent("train", 4))
	f.eventually("placed over ssh", func() error { return f.inPhase("train", 1, "Peering") })
	f.applied()
	f.step("every commit verifies", func(*testing.T) { f.verified(public) })
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	f.step("a directory is a remote too", func(*testing.T) {
		local := f.daemon("local", "--identity", "one", "--repo", "file://"+f.Git.RepoDir(rig.Repo), "--signing-key", key)
		for name := range f.Providers {
			if _, err := f.Agent(f.ctx, name, local); err != nil {
				f.t.Fatal(err)
			}
		}
		f.await(local)
		f.put("local", intent("local", 1))
		f.eventually("placed", func() error { return f.inPhase("local", 1, "Peering") })
	})
	f.applied()
	f.verified(public)
	f.sound()
	// The checker goes by trailers and would take these for ours.
	f.step("a commit that looks like ours is undone", func(*testing.T) { f.lookalike(filepath.Join(keys, "mallory")) })
	f.applied()
}

// verified demands that git accepts the signature of each commit of the ledger
// that the checker takes for ours.
func (f *fleet) verified(public string) {
	f.t.Helper()
	allowed := filepath.Join(f.Dir, "allowed-signers")
	f.write(allowed, "fleetbroker@example.org "+public)
	repo := f.Git.RepoDir(rig.Repo)
	list, err := env.Git(f.ctx, repo, "log", "--format=%H", "--committer=fleetbroker@example.org", f.ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	good := 0
	for _, commit := range strings.Fields(list) {
		if _, err := env.Git(f.ctx, repo, "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", commit); err != nil {
			if author, _ := env.Git(f.ctx, repo, "log", "-1", "--format=%an", commit); author != "mallory" {
				f.t.Errorf("%v", err)
			}
			continue
		}
		good++
	}
	if good < 2 {
		f.t.Errorf("%d commits verify", good)
	}
}

// lookalike pushes commits with the daemon's committer and trailers: one
// unsigned, one signed by somebody else.
func (f *fleet) lookalike(key string) {
	f.t.Helper()
	mallory := f.stranger()
	mallory.Email = "fleetbroker@example.org"
	contract := f.contractPath(f.only("train", "Peering"))
	message := "place vision/train on paris/h100\n\nContract: x - -> Reserved\nInputs: " + f.ref("main") + "\nMarket: " + f.ref("main^{tree}") + "\nPlan: sha256:00\nNow: 2026-11-20T12:00:00Z"
	for _, sign := range [][]string{{"commit", "-q"}, {"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "commit", "-q", "-S"}} {
		f.onLedger(mallory)
		before := f.treeOf()
		if err := mallory.Write(map[string]string{contract: strings.Replace(f.file(contract), `"4"`, `"8"`, 1)}); err != nil {
			f.t.Fatal(err)
		}
		for _, args := range [][]string{{"add", "-A"}, append(sign, "-m", message), {"push", "-q", "origin", f.ledger}} {
			if _, err := mallory.Git(f.ctx, args...); err != nil {
				f.t.Fatal(err)
			}
		}
		f.eventually("undone", func() error {
			if now := f.treeOf(); now != before {
				return fmt.Errorf("the ledger's tree is %s, before it was %s", now, before)
			}
			return nil
		})
		if !strings.HasPrefix(f.subjects()[0], "undo edits of generated files by mallory") {
			f.t.Errorf("it is undone by %q", f.subjects()[0])
		}
	}
}
