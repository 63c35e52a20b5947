package spread

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// What a cluster admits pods by is known to each replica, by whichever delivers there, and a
// change of it is a change of what is observed.
func TestSpread_AdmissionIsKnownToAll(t *testing.T) {
	w := newWorld(t, 6)
	w.serves = wire.AdmissionNone
	w.start("a", "b")
	w.pass(2 * time.Minute)
	known := func(want string) {
		t.Helper()
		for name, r := range w.replicas {
			got := r.spread.Admission()
			for cluster := range w.desired {
				if got[cluster] != want {
					t.Errorf("replica %s knows %q of %s, want %q", name, got[cluster], cluster, want)
				}
			}
		}
	}
	known(wire.AdmissionNone)
	_, before := w.replicas["a"].spread.Observe()
	if _, again := w.replicas["a"].spread.Observe(); again != before {
		t.Errorf("nothing changed, and what is observed went from %d to %d", before, again)
	}
	w.serves = "v1"
	w.pass(2 * time.Minute)
	known("v1")
	if _, after := w.replicas["a"].spread.Observe(); after <= before {
		t.Errorf("it serves another version, and what is observed stays at %d", after)
	}
}
