package reconciler

import (
	"net/http"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// A daemon that hears too few of the providers that hold contracts says so and
// that it may be asked again, writes nothing, and the retry finds nothing of
// the first try.
func TestReserveAtADeafDaemon(t *testing.T) {
	for name, queue := range map[string]string{"at once": "fail", "or in the queue": "wait"} {
		t.Run(name, func(t *testing.T) {
			s, busy, idle := newMarket(t)
			s.start() // knows the ledger, and has heard nobody
			before := s.remote.Head("ledger")
			q := wants("2", "2Gi", "1")
			q.Queue = &v1alpha1.Queue{Policy: queue}
			refused := s.reserve("rome", "k1", q).refusal(t)
			if refused.Status != http.StatusServiceUnavailable || refused.Body.Reason != wire.ReasonDeaf || refused.RetryAfter <= 0 {
				t.Errorf("answered %+v", refused)
			}
			if s.r.Ready() == nil {
				t.Error("it calls itself ready")
			}
			if now := s.remote.Head("ledger"); now != before {
				t.Errorf("the ledger moved from %s to %s", before.Short(), now.Short())
			}
			busy.report(nil)
			idle.report(nil)
			if o := s.reserve("rome", "k1", q); o.err != nil || o.reservation.Status.Phase != wire.PhaseReserved {
				t.Errorf("once it hears them: %+v, %v", o.reservation, o.err)
			}
			if files := s.files("requests"); len(files) != 1 {
				t.Errorf("requests/ holds %q", files)
			}
		})
	}
}
