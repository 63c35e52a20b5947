package reconciler

import (
	"context"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A request that is refused is taken out of the round; one beside it that only
// asks again for what stands on the ledger, and is told so once the remote was
// asked, keeps what it has.
func TestRefusedBesideARetry(t *testing.T) {
	s := newDesk(t)
	first := s.reserve("rome", "first", wants("4", "16Gi", "4"))
	if first.err != nil {
		t.Fatal(first.err)
	}
	s.rest()
	again := s.ask(context.Background(), "rome", "first", wants("4", "16Gi", "4"))
	tooMuch := s.ask(context.Background(), "rome", "much", wants("4", "16Gi", "8"))
	fits := s.ask(context.Background(), "rome", "fits", wants("4", "16Gi", "2"))
	if o := s.decide(fits); o.err != nil {
		t.Errorf("what fits is answered %v", o.err)
	}
	if r := s.decide(tooMuch).refusal(t); r.Body.Reason == "" {
		t.Errorf("too much is answered %+v", r)
	}
	if o := s.decide(again); o.err != nil || o.reservation.ID != first.reservation.ID {
		t.Errorf("the retry is answered %+v, %v", o.reservation, o.err)
	}
	for _, c := range s.r.View().Contracts.ByIntent("vision", first.reservation.ID) {
		if c.Status.Phase != v1alpha1.PhaseReserved && c.Status.Phase != v1alpha1.PhasePeering {
			t.Errorf("what was reserved first is %s: %s", c.Status.Phase, c.Status.Reason)
		}
	}
}
