//go:build e2e && full

package enforce

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// A term that is extended in git goes on where it was: past the old end there
// is no version of the provider's slice that was granted less.
func TestRenewedWithoutAGap(t *testing.T) {
	const term = time.Minute
	f := start(t, nil)
	lasts := func(d string) string { return intent("train", 4, "  schedule: {duration: "+d+"}\n") }
	f.Put("vision", "train", lasts(term.String()))
	name := f.Contract("vision", "train", "Active")
	f.answered(name, accepted, "", 4)
	end := f.written("vision", name).Spec.Term.End
	if end.IsZero() {
		t.Fatal("the term has no end")
	}
	watched := f.steady(name, 4)
	f.Eventually("both sides show it as Active", func() error {
		p, r := &crd.ProviderInstruction{}, &crd.ReservationInstruction{}
		err := errors.Join(f.paris.Get(f.ctx, client.ObjectKey{Name: name}, p), f.rome.Get(f.ctx, client.ObjectKey{Name: name}, r))
		if err == nil && (p.Status.Phase != "Active" || r.Status.Phase != "Active") {
			err = fmt.Errorf("it is shown as %s and %s", p.Status.Phase, r.Status.Phase)
		}
		return err
	})
	f.Put("vision", "train", lasts("2h"))
	f.Eventually("the provider knows of the new end", func() error {
		p := &crd.ProviderInstruction{}
		if err := f.paris.Get(f.ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}
		if at := p.Spec.ExpiresAt; at == nil || at.Sub(end.Time) < time.Hour {
			return fmt.Errorf("it expires at %v, it did at %s", at, end)
		}
		return nil
	})
	f.Eventually("both sides tell that it was renewed", func() error {
		for _, cluster := range []string{"paris", "rome"} {
			out, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, "get", "events.events.k8s.io", "-n", "default", "-o", "custom-columns=REASON:.reason,NAME:.regarding.name,NOTE:.note", "--no-headers")
			if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "Renewed "+name+" its term ends at ") {
				return errors.Join(err, fmt.Errorf("%s tells\n%s", cluster, out))
			}
		}
		return nil
	})
	if time.Now().After(end.Time) {
		t.Fatalf("the machine is too slow: the first term was over at %s", end)
	}
	select {
	case <-time.After(time.Until(end.Time.Add(3 * time.Second))):
	case <-f.ctx.Done():
		t.Fatal(f.ctx.Err())
	}
	// What happens after the old end happens within a moment; another contract's
	// way through all parts is longer than that.
	f.Put("vision", "other", intent("other", 1))
	f.Contract("vision", "other", "Active")
	f.answered(name, accepted, "", 4)
	watched.held(t)
	if got := f.Phases("vision", "train"); len(got) != 1 || got[name] != "Active" {
		t.Errorf("its contracts are %v", got)
	}
	out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "log", "--format=%B", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if to, left := strings.CutPrefix(strings.TrimSpace(line), "Contract: "+name+" Active -> "); left && to != "Active" {
			t.Errorf("the contract went from Active to %s\n%s", to, out)
		}
	}
	f.Put("vision", "huge", intent("huge", 400, ""))
	f.Eventually("the consumer tells that an intent waits", func() error {
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "events.events.k8s.io", "-n", "default", "-o", "custom-columns=REASON:.reason,KIND:.regarding.kind,NAME:.regarding.name,NOTE:.note", "--no-headers")
		if told := strings.Join(strings.Fields(out), " "); err != nil || !strings.Contains(told, "Queued ResourceIntent vision.huge vision/huge is queued: ") {
			return errors.Join(err, fmt.Errorf("rome tells\n%s", out))
		}
		return nil
	})
	f.Sound()
}

// What a contract grew by is refused when the provider's own pods came first:
// it keeps its old size, with the reason on the ledger, and moves once that is
// allowed.
func TestGrowthWithoutRoomIsRefused(t *testing.T) {
	f := prepare(t, func(o *rig.Options) {
		second(o)
		o.Inputs["fleet.yaml"] = fleetFile("  defaults: {gracePeriod: 5s}\n")
	})
	p := startProxy(t, f.daemon.Agents)
	f.agent("paris", &rig.Daemon{Agents: p.address})
	f.agent("milan", f.daemon)
	f.ready()
	f.sells("milan", "8")
	only := "  placement: {providers: {allow: [paris]}}\n"
	f.Put("vision", "train", intent("train", 4, only))
	name := f.Contract("vision", "train", "Active")
	f.answered(name, accepted, "", 4)

	// The agent knows of its pods before it hears of the growth, the broker only
	// afterwards.
	p.set(true)
	other := f.elsewhere(name)
	f.ownPod("first", map[string]string{"paris-1": "paris-2", "paris-2": "paris-1"}[other], "4")
	f.ownPod("second", other, "8")
	f.Eventually("the agent knows of its pods", func() error {
		a := &crd.Advertisement{}
		if err := f.paris.Get(f.ctx, client.ObjectKey{Name: "h100"}, a); err != nil || a.Status.Used["gpu"] != "12" {
			return errors.Join(err, fmt.Errorf("it shows %+v", a.Status))
		}
		return nil
	})
	f.Put("vision", "train", intent("train", 8, only))
	f.Eventually("the contract grew", func() error {
		if n := f.written("vision", name).Spec.Resources["nvidia.com/gpu"].Int64(); n != 8 {
			return fmt.Errorf("it has %d GPUs", n)
		}
		return nil
	})
	p.set(false)
	p.drop()
	f.Eventually("the growth is refused", func() error { return f.shownAs(name, "Degraded", "NodeShrunk") })
	f.answered(name, accepted, "", 4)
	f.Eventually("the ledger says why, and that it waits", func() error {
		c := f.written("vision", name)
		if c.Status.Phase != v1alpha1.PhaseDegraded || !strings.Contains(c.Status.Message, "4 of 8 gpu are left there") {
			return fmt.Errorf("it is %s: %s", c.Status.Phase, c.Status.Why())
		}
		return nil
	})
	f.Put("vision", "train", intent("train", 8))
	f.on("train", "milan")
	f.Eventually("the old contract has ended", func() error {
		if phase := f.Phases("vision", "train")[name]; phase != "Failed" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	f.Sound()
}

// A warm slice that an intent takes over stays granted all the time, though its
// name is not that of the contract; the provider shows whose it is now.
func TestAWarmSliceIsClaimed(t *testing.T) {
	f := start(t, func(o *rig.Options) {
		o.Inputs["fleet.yaml"] = fleetFile("  warmPools: [{name: h100-warm, consumer: rome, count: 1, resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", ephemeral-storage: 10Gi, gpu: \"H100:2\"}}]\n")
	})
	warm := ""
	f.Eventually("the pool is warm", func() error {
		for name, phase := range f.History().Held {
			if strings.HasPrefix(name, "fleetbroker-h100-warm-") && phase == "Active" {
				warm = name
				return nil
			}
		}
		return errors.New("no contract of the pool is Active")
	})
	f.answered(warm, accepted, "", 2)
	watched := f.steady(warm, 2)
	f.Put("vision", "train", intent("train", 2))
	name := f.Contract("vision", "train", "Active")
	if slice := f.written("vision", name).Spec.Slice; slice != warm {
		t.Fatalf("its slice is %s, the warm one is %s", slice, warm)
	}
	f.Eventually("the provider shows whose the slice is", func() error {
		s, err := f.copyOf(warm)
		if err != nil {
			return err
		}
		p := &crd.ProviderInstruction{}
		if err := f.paris.Get(f.ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}
		if s.Status.NodeLabels["granted.fleetbroker.io/contract"] != name || !p.Status.Enforced || p.Status.Slice != "Accepted" {
			return fmt.Errorf("labels are %v, the promise is %+v", s.Status.NodeLabels, p.Status)
		}
		return nil
	})
	watched.held(t)
	watched.stop()
	f.Remove("vision", "train")
	f.Eventually("it is Released", func() error {
		if phase := f.Phases("vision", "train")[name]; phase != "Released" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	f.Eventually("its slice is gone", func() error { _, err := f.copyOf(warm); return gone(err) })
	f.Sound()
}

// One node of two is cordoned under live contracts: nothing new is sold at
// once, what still fits stays, what does not is moved only after its grace, and
// the node that comes back is sold again. Then the cluster, in its own file.
func TestANodeAndAClusterAreCordoned(t *testing.T) {
	const grace = 12 * time.Second
	f := start(t, func(o *rig.Options) {
		second(o)
		o.Providers["milan"] = append(o.Providers["milan"], env.GPUNode{Name: "milan-2", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}})
		o.Inputs["fleet.yaml"] = fleetFile("  defaults: {gracePeriod: " + grace.String() + "}\n")
	})
	f.agent("milan", f.daemon)
	f.sells("milan", "16")
	f.Put("vision", "serve", intent("serve", 2, cheapest))
	serve := f.on("serve", "paris")
	f.answered(serve, accepted, "", 2)
	f.Put("vision", "train", intent("train", 10, cheapest))
	train := f.on("train", "paris")
	f.answered(train, accepted, "", 10)
	f.Contract("vision", "train", "Active")

	// The node that one of them does not share with the other.
	node := f.elsewhere(serve)
	f.kubectl("paris", "cordon", node)
	f.sells("paris", "8")
	f.Put("vision", "late", intent("late", 1, cheapest))
	f.on("late", "milan")
	f.Eventually("the contract that fits no longer is Degraded", func() error { return f.shownAs(train, "Degraded", "NodeShrunk") })
	f.answered(train, accepted, "", 10)
	if next := f.on("train", "milan"); next == train {
		t.Error("a contract changed its provider")
	}
	c := f.written("vision", train)
	if from, to := entered(c, v1alpha1.PhaseDegraded), entered(c, v1alpha1.PhaseReleasing); from.IsZero() || to.Sub(from) < grace {
		t.Errorf("Degraded at %s, moved at %s, before its grace of %s was over", from, to, grace)
	}
	f.answered(serve, accepted, "", 2)
	if phase := f.Phases("vision", "serve")[serve]; phase != "Active" {
		t.Errorf("the contract that fits is %s", phase)
	}
	f.Eventually("the one that was moved has ended", func() error {
		if phase := f.Phases("vision", "train")[train]; phase != "Failed" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	f.kubectl("paris", "uncordon", node)
	f.sells("paris", "16")

	paris := func(more string) {
		t.Helper()
		if _, err := f.Platform.CommitAndPush(f.ctx, "Say what becomes of paris", map[string]string{"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec:\n  roles: [provider]\n" +
			"  defaultPrice: {currency: EUR, perHour: {gpu: \"2.80\", cpu: \"0.02\", memoryGi: \"0.003\"}}\n" + more}); err != nil {
			t.Fatal(err)
		}
	}
	paris("  cordon: true\n")
	f.Put("vision", "later", intent("later", 1, cheapest))
	f.on("later", "milan")
	f.answered(serve, accepted, "", 2)
	paris("  drain: " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + "\n")
	f.on("serve", "milan")
	f.Eventually("the one that was drained is Released", func() error {
		if phase := f.Phases("vision", "serve")[serve]; phase != "Released" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	f.Sound()
}
