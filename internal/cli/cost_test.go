package cli

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// What was saved against the dearest offer is unknown, and not nothing, where a
// contract does not say which that was.
func TestBelowTheDearestIsUnknownWithoutIt(t *testing.T) {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "c", Namespace: "vision"}, Spec: v1alpha1.ContractSpec{Price: v1alpha1.ContractPrice{Currency: "EUR"}}}
	cost := v1alpha1.MonthCost{Amount: v1alpha1.DecimalFromInt(3), List: v1alpha1.DecimalFromInt(4)}
	nine := v1alpha1.DecimalFromInt(9)
	key, err := costKey("tenant")
	if err != nil {
		t.Fatal(err)
	}
	rows := func(charges ...audit.Charge) costRow {
		t.Helper()
		out, err := costRows(charges, ledger.Books{Zone: time.UTC, Currency: "EUR"}, "EUR", key)
		if err != nil || len(out) != 1 {
			t.Fatal(out, err)
		}
		return out[0]
	}
	known := audit.Charge{Contract: c, Cost: cost, Dearest: &nine}
	if r := rows(known, known); r.BelowDearest == nil || r.BelowDearest.String() != "12" || r.Saved.String() != "2" {
		t.Errorf("known of all: %+v", r)
	}
	if r := rows(known, audit.Charge{Contract: c, Cost: cost}, known); r.BelowDearest != nil || r.Cost.String() != "9" {
		t.Errorf("unknown of one: %+v", r)
	}
}
