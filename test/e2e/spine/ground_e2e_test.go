//go:build e2e && full

package spine

import (
	"fmt"
	"path/filepath"
	"testing"
)

// What the fleet stands on is taken away by one commit each, and given back:
// no contract ends by that, nothing is pruned, and the daemon goes on.
func TestGroundTakenAway(t *testing.T) {
	f := start(t, nil)
	d := f.up()
	for i := range 3 {
		f.put(fmt.Sprintf("firm%d", i), intent(fmt.Sprintf("firm%d", i), 1))
	}
	f.eventually("placed", func() error { return f.placed("firm", 3) })
	f.applied()
	for i, path := range []string{"fleet.yaml", "tenants/vision.yaml", "clusters/paris.yaml", "clusters/rome.yaml"} {
		f.step(path, func(*testing.T) {
			content := f.read(filepath.Join(f.team.Dir, path))
			for _, text := range []*string{ptr("kind: ["), nil} {
				f.push("Take "+path+" away", map[string]*string{path: text})
				f.polled()
				f.standing()
				if err := d.Stop(); err != nil {
					f.t.Fatal(err)
				}
				if err := d.Restart(f.ctx); err != nil {
					f.t.Fatal(err)
				}
				f.polled()
				f.standing()
			}
			f.push("Give "+path+" back", map[string]*string{path: &content})
			name := fmt.Sprintf("after%d", i)
			f.put(name, intent(name, 1))
			f.eventually("placed afterwards", func() error { return f.inPhase(name, 1, "Peering") })
			f.eventually("ready", func() error { return f.ready(d) })
			f.applied()
		})
	}
	f.step("the ledger branch", func(*testing.T) { f.branchDeleted(d, f.ledger, "delete the ledger") })
	f.step("the branch of the inputs", func(*testing.T) { f.branchDeleted(d, "main", "delete main") })
	f.sound()
	f.step("another branch for the ledger", func(*testing.T) { f.otherLedger(d) })
	f.applied()
	f.sound()
}
