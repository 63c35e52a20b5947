//go:build e2e

package spine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// silence is how long an agent goes unheard before its cluster sells nothing
// new, and grace how long until its contracts move, in these stories.
const (
	silence = 4 * time.Second
	grace   = 15 * time.Second
)

// provider is a provider's Cluster with a price of a GPU and a grace.
func provider(name, price string, grace time.Duration) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec:\n  roles: [provider]\n"+
		"  agent: {gracePeriod: %s}\n  defaultPrice: {currency: EUR, perHour: {gpu: %q}}\n", name, grace, price)
}

// at lets an intent take capacity of one provider alone.
func at(provider string) string { return "  placement: {providers: {allow: [" + provider + "]}}\n" }

// Whatever becomes of agents, what was sold stays known, and nothing is sold
// twice.
func TestAgents(t *testing.T) {
	f := start(t, func(o *rig.Options) {
		o.Providers = map[string][]env.GPUNode{"paris": {h100("paris-1")}, "milan": {h100("milan-1"), h100("milan-2")}}
		o.Inputs = map[string]string{
			"clusters/paris.yaml": provider("paris", "2.00", grace),
			"clusters/milan.yaml": provider("milan", "9.00", time.Hour),
		}
	})
	d := f.daemon("one", "--agent-silence", silence.String())
	d.NotifyPushes(f.ctx)
	agents := f.agents()
	f.await(d)
	f.put("anchor", intent("anchor", 1, at("milan")))
	f.put("parisian", intent("parisian", 2, at("paris")))
	f.put("mover", intent("mover", 4, "  weights: {cost: 1}\n"))
	f.put("follower", intent("follower", 1, "  weights: {cost: 1}\n"))
	f.eventually("all are placed", func() error { return f.placed("", 4) })
	if c := f.contractFile(f.only("mover", "Peering")); !strings.Contains(c, "provider: paris") {
		t.Fatalf("the cheaper provider was not taken:\n%s", c)
	}
	f.step("a silent one sells nothing new and keeps what it sold", func(t *testing.T) {
		if err := agents["paris"].Pause(); err != nil {
			t.Fatal(err)
		}
		f.eventually("its contracts are known to be in doubt", func() error { return f.inPhase("parisian", 1, "Degraded") })
		f.put("late", intent("late", 1, at("paris")))
		f.eventually("what only it could give waits", func() error { return f.stateSays("late", "state: Queued") })
		if err := agents["paris"].Resume(); err != nil {
			t.Fatal(err)
		}
		f.eventually("it sells again", func() error { return f.inPhase("late", 1, "Peering") })
		f.eventually("its contracts are well again", func() error { return f.inPhase("parisian", 1, "Peering") })
		if len(f.phases("mover")) != 1 {
			t.Errorf("silence within the grace moved a contract: %v", f.phases("mover"))
		}
	})
	f.step("past its grace its contracts go elsewhere", func(t *testing.T) {
		if err := agents["paris"].Kill(); err != nil {
			t.Fatal(err)
		}
		f.eventually("the mover is on milan", func() error {
			if err := f.inPhase("mover", 1, "Peering"); err != nil {
				return err
			}
			return f.inPhase("mover", 1, "Releasing")
		})
		if c := f.contractFile(f.only("mover", "Peering")); !strings.Contains(c, "provider: milan") {
			t.Errorf("it moved to:\n%s", c)
		}
		f.eventually("so is the follower", func() error { return f.inPhase("follower", 1, "Releasing") })
		f.eventually("what fits nowhere else stays where it is", func() error { return f.inPhase("parisian", 1, "Degraded") })
		f.eventually("what is gone from the consumer still waits for the provider", func() error {
			return f.contractSays(f.only("mover", "Releasing"), "drained:")
		})
	})
	f.step("an operator gives a contract of a lost provider up", func(t *testing.T) {
		release := func(contract string) (string, int) {
			out, said, code := f.cli(append([]string{"release", "--force", contract, "--repo", f.Git.URL(rig.Repo)}, f.Trust()...)...)
			return out + said, code
		}
		if out, code := release(f.only("mover", "Peering")); code == 0 {
			t.Errorf("one that is in use is given up: %s", out)
		}
		if out, code := release(f.only("mover", "Releasing")); code != 0 {
			t.Errorf("it ends with %d: %s", code, out)
		}
		f.eventually("it has ended", func() error { return f.inPhase("mover", 1, "Failed") })
	})
	f.step("an agent that comes back, with a new epoch, lets go, and gives what it still holds", func(t *testing.T) {
		var err error
		if agents["paris"], err = f.Agent(f.ctx, "paris", f.daemons...); err != nil {
			t.Fatal(err)
		}
		f.eventually("the contract that moved away has ended", func() error { return f.inPhase("follower", 1, "Failed") })
		f.eventually("the one that stayed is well again", func() error { return f.inPhase("parisian", 1, "Peering") })
		if len(f.phases("parisian")) != 1 {
			t.Errorf("what could not move was made anew: %v", f.phases("parisian"))
		}
		f.remove("follower")
		f.applied()
	})
	f.step("a cluster shrinks and grows", func(*testing.T) { f.shrinkAndGrow() })
	f.step("a daemon that starts is deaf until it hears half, and changes nothing", func(*testing.T) { f.deaf(d, agents) })
	f.applied()
	f.sound()
}

// shrinkAndGrow takes the node of milan away that the mover is on, gives one like it back,
// and one more.
func (f *fleet) shrinkAndGrow() {
	f.t.Helper()
	f.put("filler", intent("filler", 8, at("milan"), "  priority: 10\n")) // anchor 1, mover 4, filler 8 of 16
	f.eventually("sold", func() error { return f.inPhase("filler", 1, "Peering") })
	node := f.nodeOf("milan", f.only("mover", "Peering"))
	if other := f.nodeOf("milan", f.only("filler", "Peering")); other == node {
		f.t.Fatalf("twelve GPUs are on the eight of %s", node)
	}
	f.kubectl("milan", "delete", "node", node)
	f.eventually("what was on the node is degraded, and nothing else", func() error {
		if err := f.inPhase("filler", 1, "Peering"); err != nil {
			return err
		}
		return f.inPhase("mover", 1, "Degraded")
	})
	f.put("more", intent("more", 4, at("milan")))
	f.eventually("nothing is sold of what is not there", func() error { return f.stateSays("more", "state: Queued") })
	for _, name := range []string{node, "milan-3"} {
		if _, err := env.CreateGPUNode(f.ctx, f.Clusters["milan"].Config, h100(name)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.eventually("what waited is placed", func() error { return f.inPhase("more", 1, "Peering") })
	f.eventually("the excess is well again", func() error { return f.inPhase("mover", 1, "Peering") })
}

// nodeOf is the node of a provider that a contract's only part is on.
func (f *fleet) nodeOf(provider, contract string) string {
	f.t.Helper()
	var c v1alpha1.Contract
	if err := yaml.Unmarshal([]byte(f.contractFile(contract)), &c); err != nil || len(c.Spec.Nodes) != 1 {
		f.t.Fatalf("contract %s is not on one node: %v\n%s", contract, err, f.contractFile(contract))
	}
	return f.kubectl(provider, "get", "nodes", "-l", v1alpha1.LabelNode+"="+c.Spec.Nodes[0].Node, "-o", "jsonpath={.items[0].metadata.name}")
}

// deaf starts the daemon again while no agent reports.
func (f *fleet) deaf(d *rig.Daemon, agents map[string]*env.Program) {
	f.t.Helper()
	if err := d.Stop(); err != nil {
		f.t.Fatal(err)
	}
	for _, a := range agents {
		if err := a.Pause(); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := d.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("it says that it is deaf", func() error { return f.notReady(d, "deaf") })
	before := f.treeOf()
	f.put("unheard", intent("unheard", 1))
	f.quiet(2 * silence)
	if f.treeOf() != before {
		f.t.Error("a deaf daemon changed the ledger")
	}
	for _, a := range agents {
		if err := a.Resume(); err != nil {
			f.t.Fatal(err)
		}
	}
	f.eventually("it decides once it hears", func() error { return f.inPhase("unheard", 1, "Peering") })
	f.eventually("it says that it is ready", func() error { return f.ready(d) })
}

// A change of a cluster's nodes is known within a second, long before the next
// report is due.
func TestNodesWithdrawnAtOnce(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.AgentArgs = []string{"--advertisement-requeue-interval", "10m"} })
	d := f.up("--agent-silence", "1h")
	gpus := func(want string) func() error {
		return func() error {
			market, err := d.Market(f.ctx)
			if err != nil {
				return err
			}
			if !strings.Contains(market, "gpu: \""+want+"\"") {
				return fmt.Errorf("want %s GPUs in the market:\n%s", want, market)
			}
			return nil
		}
	}
	f.eventually("sixteen GPUs are offered", gpus("16"))
	for _, change := range []struct{ label, want string }{{"fleetbroker.io/pool-", "8"}, {"fleetbroker.io/pool=h100", "16"}} {
		f.kubectl("paris", "label", "node", "paris-2", change.label)
		watch := bounded.StartStopwatch()
		f.eventually("the market follows", gpus(change.want))
		if err := watch.Late(5*time.Second, time.Minute); err != nil {
			t.Errorf("the market follows: %v", err)
		}
	}
}
