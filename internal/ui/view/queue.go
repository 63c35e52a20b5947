package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// QueueRow is an intent that waits.
type QueueRow struct {
	IntentRow

	// Position in the queue, from 1; 0 when it has none.
	Position int `json:"position,omitempty"`
	// Waits since, and until when it gives up.
	Waits   v1alpha1.Time `json:"waits,omitzero"`
	GivesUp v1alpha1.Time `json:"givesUp,omitzero"`
	// Expected is when it is expected to be served by what is known to end; absent when
	// that is unknown (Unknown), or nobody has estimated it.
	Expected v1alpha1.Time `json:"expected,omitzero"`
	Unknown  bool          `json:"unknown,omitempty"`
	// Why is the decision's sentence.
	Why      string  `json:"why,omitempty"`
	Rejected []Count `json:"rejected,omitempty"`
	// BlockedBy are the tenants that hold what it waits for, who holds most first; none
	// where nothing that is large enough is too full.
	BlockedBy []Holder `json:"blockedBy,omitempty"`
	// Near are offers that fail one requirement, Try changes that place the intent.
	Near []string `json:"near,omitempty"`
	Try  []string `json:"try,omitempty"`
}

func (m *Model) queueRows() []QueueRow {
	var out []QueueRow
	for i := range m.intents {
		r := &m.intents[i]
		d := m.decisions[[2]string{r.Tenant, r.Name}]
		waits := r.State == string(v1alpha1.IntentQueued)
		if d != nil {
			waits = d.Action == planner.Queued
		}
		if !waits {
			continue
		}
		q := QueueRow{IntentRow: *r, Waits: r.Since, Why: r.Message}
		if d != nil {
			q.Position, q.GivesUp, q.Expected, q.Unknown = d.Position, d.GivesUp, d.Expected, d.Estimated && d.Expected.IsZero()
			q.Why, q.Rejected, q.Near, q.Try = CurrencyOr(joined(d.Reason, d.Also), q.Why), Counts(d.Rejected), d.Near, d.Try
			if !d.Since.IsZero() {
				q.Waits = d.Since
			}
		}
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b QueueRow) int {
		return cmp.Or(cmp.Compare(positionOf(&a), positionOf(&b)), cmp.Compare(b.Priority, a.Priority), a.Waits.Compare(b.Waits.Time), strings.Compare(a.Tenant+"/"+a.Name, b.Tenant+"/"+b.Name))
	})
	return out
}

func positionOf(r *QueueRow) int {
	if r.Position == 0 {
		return 1 << 30
	}
	return r.Position
}

// Queue is a page of the intents that wait and are seen.
func (m *Model) Queue(s Sight, q Query) List[QueueRow] {
	text := strings.ToLower(q.Text)
	l := listOf(m.queue, q, func(r *QueueRow) bool {
		return s.Of(r.Tenant) && (q.Tenant == "" || q.Tenant == r.Tenant) && has(text, r.Tenant+"/"+r.Name, r.Why, r.Reason, r.GPU)
	})
	m.blocked(s, l.Items)
	return l
}
