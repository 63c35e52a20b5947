//go:build e2e && full

package enforce

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// kubectl runs a command in a cluster.
func (f *fleet) kubectl(cluster string, args ...string) string {
	f.t.Helper()
	out, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// on waits until an intent's newest live contract is on a provider, and names
// it.
func (f *fleet) on(intent, provider string) string {
	f.t.Helper()
	found := ""
	f.Eventually(intent+" is on "+provider, func() error {
		out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "grep", "-l", "^  provider: "+provider+"$", rig.Ledger, "--", "contracts/vision/")
		for name, phase := range f.Phases("vision", intent) {
			if phase != "Releasing" && phase != "Failed" && phase != "Released" && strings.Contains(out, name) {
				found = name
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("contracts on %s: %s\nof the intent: %v", provider, out, f.Phases("vision", intent)))
	})
	return found
}

// What an administrator of a provider says with kubectl is followed: a flavor
// that is cordoned sells nothing new and keeps what it sold, one that is drained
// is left in time, and a contract that is refused goes elsewhere with his words.
func TestSaidWithKubectl(t *testing.T) {
	f := start(t, second)
	f.agent("milan", f.daemon)
	f.Eventually("milan sells", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && !strings.Contains(market, "namespace: milan") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	f.Put("vision", "train", intent("train", 2, cheapest))
	f.Put("vision", "serve", intent("serve", 1, cheapest))
	train, serve := f.on("train", "paris"), f.on("serve", "paris")
	f.answered(train, accepted, "", 2)
	f.answered(serve, accepted, "", 1)

	f.Eventually("the promise is shown", func() error {
		_, err := f.Clusters["paris"].Kubectl(f.ctx, f.Dir, "get", "providerinstructions.fleetbroker.io", serve)
		return err
	})
	f.kubectl("paris", "annotate", "providerinstructions.fleetbroker.io", serve, "fleetbroker.io/refuse=the rack is being rebuilt")
	f.on("serve", "milan")
	out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "grep", "-h", "-C", "2", "the rack is being rebuilt", rig.Ledger, "--", "contracts/vision/")
	if err != nil || !strings.Contains(out, "ProviderRefused") {
		t.Errorf("the ledger does not say why: %v\n%s", err, out)
	}

	f.kubectl("paris", "annotate", "nodes", "paris-1", "fleetbroker.io/cordon=true")
	f.Eventually("paris is shown as cordoned", func() error {
		if out := f.kubectl("paris", "get", "advertisements.fleetbroker.io", "h100", "-o", "jsonpath={.spec.cordon}"); out != "true" {
			return fmt.Errorf("cordon is %q", out)
		}
		return nil
	})
	f.Put("vision", "late", intent("late", 1, cheapest))
	f.on("late", "milan")
	f.answered(train, accepted, "", 2)

	f.kubectl("paris", "annotate", "nodes", "paris-1", "fleetbroker.io/drain="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	f.on("train", "milan")
	f.Sound()
}
