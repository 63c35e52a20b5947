package cli

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// A tenant's spend is what its contracts have cost, those that have left the
// tree too; savings are what it is below list price.
func TestSums(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "vision-train-0-a", Namespace: "vision"}}
	c.Spec.Intent.Name = "train"
	c.Spec.Price = v1alpha1.ContractPrice{Hourly: v1alpha1.MustDecimal("2"), List: v1alpha1.MustDecimal("3"), Currency: "EUR", Class: v1alpha1.Spot}
	c.Spec.Term.Start = v1alpha1.TimeOf(start)
	c.Status = v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive, Since: v1alpha1.TimeOf(start), AccruedAt: v1alpha1.TimeOf(start)}
	gone := &v1alpha1.Spend{
		Metadata: v1alpha1.Metadata{Name: "2026-10", Namespace: "vision"},
		Entries:  []v1alpha1.SpendEntry{{Contract: "x", Amount: v1alpha1.MustDecimal("5"), List: v1alpha1.MustDecimal("5.5"), Currency: "EUR"}},
	}
	l := ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: c}}, Spends: []*v1alpha1.Spend{gone}})
	books, err := ledger.BooksOf(&v1alpha1.FleetSpec{Currency: "EUR", Timezone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	spend, savings := sums(l, books, v1alpha1.TimeOf(start.Add(90*time.Minute)))
	if len(spend) != 1 || spend[0].Tenant != "vision" || spend[0].Amount.String() != "8" {
		t.Errorf("spend: got %+v, want 3 for an hour and a half and 5 of October", spend)
	}
	if len(savings) != 1 || savings[0].Amount.String() != "2" {
		t.Errorf("savings: got %+v, want 1.5 and 0.5", savings)
	}
}

// What metrics say of terms is the ledger's: a contract in the last tenth of its term is
// expiring, and a tenant that could have some, and has none, is told as 0.
func TestExpiring(t *testing.T) {
	b := plantest.New().Consumer("rome").Provider("paris").
		Tenant("vision", "rome").
		Tenant("nlp", "rome").
		Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("2")).
		Intent("vision/train", plantest.Wants(4, "H100"), plantest.For(10*time.Hour)).
		Intent("nlp/serve", plantest.Wants(1, "H100"))
	b.Round()
	if got := expiring(b.W.Ledger, b.W.Now); len(got) != 2 || got["vision"] != 0 || got["nlp"] != 0 {
		t.Errorf("just begun: %v", got)
	}
	b.Tick(9*time.Hour + 30*time.Minute)
	if got := expiring(b.W.Ledger, b.W.Now); got["vision"] != 1 || got["nlp"] != 0 {
		t.Errorf("half an hour before its end: %v", got)
	}
}
