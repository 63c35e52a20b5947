package view

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// breach is how a contract breaks its intent's sla at present; both "" where it does not.
func (m *Model) breach(r *ContractRow) (kind, why string) {
	it, c := m.Fleet.Intent(r.Tenant, r.Intent), m.Ledger.Contract(r.Name)
	if it == nil || it.Spec.SLA == nil || c == nil {
		return "", ""
	}
	var seen *v1alpha1.PhaseChange
	if r.Phase != c.Status.Phase && !r.Since.IsZero() {
		seen = &v1alpha1.PhaseChange{Phase: r.Phase, At: r.Since}
	}
	return ledger.Breach(c, it.Spec.SLA, seen, m.Now)
}

// breaches counts the contracts that break their intent's sla at present, by kind.
func (m *Model) breaches() map[string]int {
	out := map[string]int{ledger.BreachLate: 0, ledger.BreachAvailability: 0}
	for i := range m.contracts {
		if kind, _ := m.breach(&m.contracts[i]); kind != "" {
			out[kind]++
		}
	}
	return out
}
