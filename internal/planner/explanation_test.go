package planner_test

import (
	"maps"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// explained is the explanation of an intent, of which the counts add up.
func explained(t *testing.T, b *Builder, tenant, name string) *planner.Explanation {
	t.Helper()
	e, err := planner.Explain(b.W, tenant, name)
	if err != nil {
		t.Fatal(err)
	}
	sum := e.Decision.Fitting
	for _, n := range e.Decision.Rejected {
		sum += n
	}
	if sum != e.Decision.Considered || sum != len(e.Offers) {
		t.Errorf("%s/%s: of %d offers %d are considered, %d fit, rejected are %v", tenant, name, len(e.Offers), e.Decision.Considered, e.Decision.Fitting, e.Decision.Rejected)
	}
	return e
}

// The last replica of a gang fails where the first one fits.
func TestExplain_CountsAddUp(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("2")).
		Offer("lyon/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("2.5")).
		Intent("vision/gang", Wants(4), Times(3))
	if e := explained(t, b, "vision", "gang"); e.Decision.Fitting != 2 || len(e.Decision.Rejected) > 0 {
		t.Errorf("%d of 2 fit one replica, rejected are %v", e.Decision.Fitting, e.Decision.Rejected)
	}
	b.Intent("vision/gang", Wants(5))
	if e := explained(t, b, "vision", "gang"); e.Decision.Fitting != 0 || !maps.Equal(e.Decision.Rejected, map[string]int{"capacity.gpu": 2}) {
		t.Errorf("%d of 0 fit one replica, rejected are %v", e.Decision.Fitting, e.Decision.Rejected)
	}
}

// What is placed by borrowing is explained by the turn in which it may.
func TestExplain_OfWhatIsBorrowed(t *testing.T) {
	b := lenders().Intent("ada/a", Wants(4))
	b.Round()
	b.Tick(time.Minute).Intent("ada/b", Wants(2))
	for i, when := range []string{"before it is placed", "once it is placed"} {
		e := explained(t, b, "ada", "b")
		if e.Decision.Fitting != 1 || !e.Offers[0].Fits || !e.Offers[0].Chosen {
			t.Errorf("%s: %d fit: %+v", when, e.Decision.Fitting, e.Offers[0])
		}
		if p := b.Round(); i == 0 && len(Of(p, "ada/b").Contracts) != 1 {
			t.Fatal(describe(p))
		}
	}
	// What may not be borrowed does not fit.
	b.Tick(time.Minute).Intent("ada/c", Wants(2))
	if e := explained(t, b, "ada", "c"); e.Decision.Fitting != 0 || e.Decision.Rejected["quota.gpu"] != 1 {
		t.Errorf("%d fit, rejected are %v", e.Decision.Fitting, e.Decision.Rejected)
	}
}
