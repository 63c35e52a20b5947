package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

func (r *round) noteRefusal(c *v1alpha1.Contract) {
	if rec, denied := r.RefusalOf(c); denied {
		r.refusals[c.Metadata.Name] = rec
	}
}

// readMappings goes through the ledger again, because consumers have other ids.
func (r *round) readMappings() {
	r.Mapped = draft.Mappings{}
	for c := range r.W.Ledger.Contracts() {
		r.Mapped.Add(r.W.Clusters, c, 1)
	}
}

// readLedger goes through the ledger once, for all that a round asks of its
// contracts; updated rounds keep it up to date (ledgerChanged).
func (r *round) readLedger() {
	r.Tally, r.refusals, r.Mapped = draft.NewTally(), map[string]draft.RefusalRecord{}, draft.Mappings{}
	for c := range r.W.Ledger.Contracts() {
		r.Tally.Add(&r.Moment, c)
		r.noteRefusal(c)
		r.Mapped.Add(r.W.Clusters, c, 1)
	}
}

// readContracts takes from the tally what the round will change.
func (r *round) readContracts() {
	for _, c := range draft.ByName(r.Displaced) {
		by := c.Status.Displaced.By
		r.Notices[by] = append(r.Notices[by], c)
	}
	if !r.Next.After(r.Now.Time) && !r.Next.IsZero() {
		r.retire = true
		for _, leaves := range r.Leave {
			r.Due(leaves)
		}
	}
	r.Due(r.Next)
}

// listOrphans finds what the ledger holds or remembers of intents that are no
// more.
func (r *round) listOrphans() {
	r.orphans = map[[2]string]bool{}
	i := 0 // both are in order: walk them side by side
	for s := range r.W.Ledger.States() {
		order := -1
		for ; i < len(r.Intents); i++ {
			m := &r.Intents[i].Metadata
			if order = draft.CompareNames(m.Namespace, m.Name, s.Metadata.Namespace, s.Metadata.Name); order >= 0 {
				break
			}
		}
		if order != 0 {
			r.orphans[[2]string{s.Metadata.Namespace, s.Metadata.Name}] = true
		}
	}
	for c := range r.W.Ledger.Contracts() {
		tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
		if c.Status.Phase.Held() && r.W.Ledger.State(tenant, name) == nil && r.Find(tenant, name) == nil {
			r.orphans[[2]string{tenant, name}] = true
		}
	}
}

// noteOrphan looks at one intent alone.
func (r *round) noteOrphan(k [2]string) {
	delete(r.orphans, k)
	if r.Find(k[0], k[1]) != nil {
		return
	}
	if r.W.Ledger.State(k[0], k[1]) != nil || len(r.HeldOf(k)) > 0 {
		r.orphans[k] = true
	}
}
