//go:build e2e && full

package spine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// What stands in a contract's way is reported once: the ledger comes to rest while there is
// trouble, and says so when it is over.
func TestTroubleIsToldOnce(t *testing.T) {
	f := start(t, nil)
	hidden := filepath.Join(f.Dir, "paris.hidden")
	key := filepath.Join(f.Dir, "kubeconfigs", "paris.kubeconfig")
	if err := os.Rename(key, hidden); err != nil {
		t.Fatal(err)
	}
	f.up()
	f.put("train", intent("train", 1))
	told := func(want bool) error {
		says, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "grep", "-h", "^  reason: ", f.ledger, "--", "contracts")
		if err == nil && strings.Contains(says, "PeeringFailed") != want {
			return fmt.Errorf("the contract says %s", says)
		}
		return err
	}
	f.eventually("it is reported that there is no peering", func() error { return told(true) })
	f.quiet(6 * time.Second)
	if err := os.Rename(hidden, key); err != nil {
		t.Fatal(err)
	}
	f.eventually("the trouble is over", func() error { return told(false) })
	f.applied()
	f.sound()
}
