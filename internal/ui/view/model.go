package view

import (
	"fmt"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Model is the rows of all lists of one snapshot. Making it looks at each contract once;
// a page then only picks from it.
type Model struct {
	*Facts
	snap *Snapshot

	contracts []ContractRow
	states    map[string]*wire.ContractState
	intents   []IntentRow
	decisions map[[2]string]*planner.Decision
	flavors   []FlavorRow
	providers []ProviderRow
	tenants   []TenantRow
	queue     []QueueRow

	used map[[2]string]map[string]v1alpha1.Resources // of slices, by offer, as providers' agents report it

	costs   func() []costLine // what each contract cost by month, made once it is asked for
	offered func() []stock    // what is open to new contracts, made once the queue is asked for
}

// Make computes the model of a snapshot as of a time.
func Make(s *Snapshot, now time.Time) (*Model, error) {
	books, err := ledger.BooksOf(s.Fleet.Policy)
	if err != nil {
		return nil, fmt.Errorf("read the fleet's currency and timezone: %w", err)
	}
	return of(s, books, now), nil
}

// Clusters are the rows of a fleet's clusters, those that need a look first; books are the
// fleet's.
func Clusters(s *Snapshot, books ledger.Books, now time.Time) []ProviderRow {
	return of(s, books, now).providers
}

func of(s *Snapshot, books ledger.Books, now time.Time) *Model {
	m := &Model{snap: s, Facts: New(s.Fleet, s.Contracts, books, s.World.Offers, v1alpha1.TimeOf(now)), states: map[string]*wire.ContractState{}, decisions: map[[2]string]*planner.Decision{}}
	m.costs, m.offered = sync.OnceValue(m.costLines), sync.OnceValue(m.stocks)
	for i := range s.States {
		m.states[s.States[i].Name] = &s.States[i]
	}
	for _, d := range s.Plan.Intents {
		m.decisions[[2]string{d.Tenant, d.Name}] = d
	}
	m.used = m.reportedUse()
	m.contracts = m.contractRows()
	m.intents = m.intentRows()
	m.flavors = m.flavorRows()
	m.providers = m.providerRows()
	m.tenants = m.tenantRows()
	m.queue = m.queueRows()
	return m
}

// Snapshot that the model was made from.
func (m *Model) Snapshot() *Snapshot { return m.snap }

// Currency of all sums.
func (m *Model) Currency() string { return m.Fleet.Policy.Currency }

// Head is what all pages and answers have in common.
type Head struct {
	// Fleet is its name.
	Fleet string `json:"fleet"`
	// Version of what is shown: another one after each round that changed something.
	Version string `json:"version"`
	// At is the time that ages and costs are counted to.
	At v1alpha1.Time `json:"at"`
	// Inputs and Ledger are the commits that were read.
	Inputs string `json:"inputs,omitempty"`
	Ledger string `json:"ledger,omitempty"`
	// Currency of all sums.
	Currency string   `json:"currency"`
	Notices  []Notice `json:"notices,omitempty"`
	// Tenants are those whose rows are shown; absent when all are.
	Tenants []string `json:"tenants,omitempty"`
	// TotalsOnly: no tenant's rows are shown, because no tenant lists a group of the
	// viewer.
	TotalsOnly bool `json:"totalsOnly,omitempty"`
}

// Head for who looks.
func (m *Model) Head(s Sight) Head {
	h := Head{
		Fleet: m.Fleet.Name, Version: m.snap.Version, At: m.Now, Currency: m.Currency(),
		Notices: m.snap.Notices, Tenants: s.Tenants(), TotalsOnly: s.None(),
	}
	if !m.snap.Inputs.IsZero() {
		h.Inputs = m.snap.Inputs.String()
	}
	if !m.snap.Ledger.IsZero() {
		h.Ledger = m.snap.Ledger.String()
	}
	if !s.All() { // notices name files and tenants
		h.Notices = nil
		for _, n := range m.snap.Notices {
			h.Notices = append(h.Notices, Notice{Level: n.Level, Text: publicNotice(n.Level)})
		}
	}
	return h
}

func publicNotice(level string) string {
	if level == "error" {
		return "The daemon cannot act at present; its operators are shown why."
	}
	return "The daemon acts with restrictions at present; its operators are shown why."
}
