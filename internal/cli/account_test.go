package cli

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
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
	l := ledger.Empty().With(ledger.Changes{Contracts: []ledger.Change{{After: c}}, Spends: []*v1alpha1.Spend{gone}})
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
