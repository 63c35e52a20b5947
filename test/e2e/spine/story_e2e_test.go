//go:build e2e

package spine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// The main job: an intent becomes a contract, manifests and a slice; an edit
// resizes it; its end gives everything back, on cluster and repo.
func TestIntentFromCommitToReleased(t *testing.T) {
	f := start(t, nil)
	f.up()
	f.put("train", intent("train", 4))
	f.eventually("the contract is Peering", func() error { return f.inPhase("train", 1, "Peering") })
	f.applied()
	if err := f.said("place vision/train on paris/h100 (4x nvidia-h100"); err != nil {
		t.Error(err)
	}
	out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "namespaceoffloadings.offloading.liqo.io", "-n", "vision", "offloading", "-o", "name")
	if err != nil || !strings.Contains(out, "offloading") {
		t.Errorf("the namespace is offloaded: %s %v", out, err)
	}
	f.quiet(3 * time.Second)

	before := f.phases("train")
	f.put("train", intent("train", 6))
	f.eventually("the same contract is resized", func() error {
		if err := f.said("resize vision/train on paris/h100 (6x nvidia-h100"); err != nil {
			return err
		}
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io", "-A", "-o", "jsonpath={.items[*].spec.resources.nvidia\\.com/gpu}")
		if err == nil && out != "6" {
			err = fmt.Errorf("the slice asks for %q GPUs", out)
		}
		return err
	})
	for name := range f.phases("train") {
		if before[name] == "" {
			t.Errorf("a resize made a new contract %s beside %v", name, before)
		}
	}

	f.remove("train")
	f.eventually("the contract is Released", func() error { return f.inPhase("train", 1, "Released") })
	f.applied()
	if out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "namespace", "vision", "-o", "name"); err != nil {
		t.Errorf("the team's namespace must stay: %s %v", out, err)
	}
	f.put("again", intent("again", 16))
	f.eventually("all sixteen GPUs are sold again", func() error { return f.inPhase("again", 1, "Peering") })
	f.sound()
}

// What does not fit in place is placed anew elsewhere, and the old contract is
// released.
func TestEditThatDoesNotFitIsReplaced(t *testing.T) {
	f := start(t, func(o *rig.Options) {
		o.Providers = map[string][]env.GPUNode{
			"paris": {h100("paris-1")},
			"milan": {h100("milan-1"), h100("milan-2")},
		}
		o.Inputs = map[string]string{
			"clusters/milan.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: milan}\nspec:\n  roles: [provider]\n" +
				"  defaultPrice: {currency: EUR, perHour: {gpu: \"9.00\"}}\n",
		}
	})
	f.up()
	budget := "  weights: {cost: 1}\n"
	f.put("train", intent("train", 6, budget))
	f.eventually("placed on the cheaper one", func() error { return f.said("place vision/train on paris/h100") })
	f.put("train", intent("train", 12, budget))
	f.eventually("moved to where twelve fit", func() error {
		if err := f.inPhase("train", 1, "Released"); err != nil {
			return err
		}
		return f.inPhase("train", 1, "Peering")
	})
	f.applied()
	f.sound()
}

// Two daemons on one repo, under load, never disagree about anything that is
// on the ledger.
func TestTwoDaemonsUnderContention(t *testing.T) {
	f := start(t, func(o *rig.Options) {
		o.Providers = map[string][]env.GPUNode{"paris": {h100("paris-1"), h100("paris-2"), h100("paris-3")}}
	})
	f.pair()
	const n = 30 // of 24 GPUs: some must queue
	for i := range n {
		f.put(fmt.Sprintf("job%d", i), intent(fmt.Sprintf("job%d", i), 1))
	}
	f.eventually("24 of 30 are placed", func() error {
		if held := len(f.check().Held); held != 24 {
			return fmt.Errorf("%d are held", held)
		}
		return nil
	})
	for i := range 12 {
		f.remove(fmt.Sprintf("job%d", i))
	}
	f.eventually("those that wait take what was given back", func() error {
		if held := len(f.check().Held); held != n-12 {
			return fmt.Errorf("%d are held", held)
		}
		return nil
	})
	f.applied()
	f.sound()
}
