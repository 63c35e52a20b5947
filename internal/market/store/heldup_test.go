package store_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// What a watch kept for a replica that was frozen is no report of now: it may be as old as
// the standstill. Whoever reports is heard from when what the replica writes since comes back.
func TestHeldUp_OldWordsAreNotOfNow(t *testing.T) {
	for name, looksFirst := range map[string]bool{"its watch delivers first": false, "it looks first": true} {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t, "a", "b")
			a, b := r.all[0], r.all[1]
			must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
			r.tick(12)
			if got := b.state("paris"); got != model.Fresh {
				t.Fatalf("at first paris is %s", got)
			}
			for range 20 { // b is frozen, a has reports of paris for a while and stops
				r.now = r.now.Add(time.Second)
				must(t, a.report("paris", 7, 1, nil))
				a.api.Deliver(0)
				a.store.Look(t.Context())
			}
			r.now = r.now.Add(5 * time.Minute)
			if looksFirst {
				b.store.Look(t.Context())
			}
			for b.api.Behind() > 1 { // its own Heartbeat is the newest
				b.api.Deliver(1)
			}
			if !b.market.Snapshot().Deaf([]string{"paris"}) {
				t.Error("what was kept for it counts as heard")
			}
			r.tick(3)
			if got := b.store.Status().Cut; got != "" {
				t.Errorf("b goes on hearing nobody: %s", got)
			}
			must(t, a.report("paris", 7, 1, nil))
			r.tick(12)
			if got := b.state("paris"); got != model.Fresh {
				t.Errorf("heard now, paris is %s", got)
			}
		})
	}
}
