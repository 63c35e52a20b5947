package view

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Kinds of breaches of an intent's sla.
const (
	// Late: a contract is not usable yet and takes longer than maxTimeToActive.
	Late = "late"
	// Unavailable: a contract was usable for less of the time than availability asks for, an
	// outage that goes on counted to now.
	Unavailable = "availability"
)

// breach is how a contract breaks its intent's sla at present; both "" where it does not.
func (m *Model) breach(r *ContractRow) (kind, why string) {
	it := m.Fleet.Intent(r.Tenant, r.Intent)
	if !r.Phase.Charged() || it == nil || it.Spec.SLA == nil {
		return "", ""
	}
	c := m.Ledger.Contract(r.Name)
	if c == nil {
		return "", ""
	}
	var u ledger.Uptime
	whole := true
	for i := range c.Status.History {
		p := &c.Status.History[i]
		whole = whole && (i > 0 || p.At.Equal(c.Spec.Term.Start.Time)) // else its file has lost the beginning
		u.Step(p.Phase, p.At)
	}
	if len(c.Status.History) == 0 {
		whole = false
	} else if r.Phase != c.Status.Phase && !r.Since.IsZero() && !r.Since.Before(c.Status.Since.Time) { // seen, and not committed yet
		u.Step(r.Phase, r.Since)
	}
	sla := it.Spec.SLA
	if most := sla.MaxTimeToActive.Duration; most > 0 && u.Since.IsZero() && whole && r.Phase != v1alpha1.PhaseActive {
		if took := m.Now.Sub(c.Spec.Term.Start.Time); took > most {
			return Late, fmt.Sprintf("not usable within %s: it takes %s so far", most, took)
		}
	}
	if u.Step(r.Phase, m.Now); whole {
		if why := u.Short(sla); why != "" {
			return Unavailable, why
		}
	}
	return "", ""
}

// breaches counts the contracts that break their intent's sla at present, by kind.
func (m *Model) breaches() map[string]int {
	out := map[string]int{Late: 0, Unavailable: 0}
	for i := range m.contracts {
		if kind, _ := m.breach(&m.contracts[i]); kind != "" {
			out[kind]++
		}
	}
	return out
}
