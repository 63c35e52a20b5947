package planner

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// tally sorts the ledger's contracts by what a round asks of them. It can be
// brought up to date by what changed; all of it is as the ledger says, whatever
// the round has decided since.
type tally struct {
	// charged are the charged contracts by tenant.
	charged *account.Standing
	// displaced, releasing and borrowed are contracts of which that is so, by
	// name; ending those that are charged and have an end or notice.
	displaced, releasing, borrowed, ending map[string]*v1alpha1.Contract
	// givenUp are those of releasing that their tenant gave up, by tenant and name.
	givenUp map[string]map[string]*v1alpha1.Contract
	// leave is when contracts that have ended leave the tree; next the earliest.
	leave map[string]v1alpha1.Time
	next  v1alpha1.Time
}

func newTally() *tally {
	return &tally{
		charged:   account.NewStanding(),
		displaced: map[string]*v1alpha1.Contract{}, releasing: map[string]*v1alpha1.Contract{},
		givenUp: map[string]map[string]*v1alpha1.Contract{}, borrowed: map[string]*v1alpha1.Contract{}, ending: map[string]*v1alpha1.Contract{}, leave: map[string]v1alpha1.Time{},
	}
}

// readLedger goes through the ledger once, for all that a round asks of its
// contracts; resumed rounds keep it up to date (ledgerChanged).
func (r *round) readLedger() {
	r.tally, r.refusals, r.mapped = newTally(), map[string]refusalRecord{}, mappings{}
	for c := range r.w.Ledger.Contracts() {
		r.tally.add(r, c)
		r.noteRefusal(c)
		r.mapped.add(r.w.Clusters, c, 1)
	}
	r.marks = marksOf(r.refusals, r.w.Offers)
}

// add counts a contract in.
func (t *tally) add(r *round, c *v1alpha1.Contract) {
	m, name, tenant := r.money(), c.Metadata.Name, c.Metadata.Namespace
	if d := c.Status.Displaced; d != nil && d.By != "" {
		t.displaced[name] = c
	}
	switch {
	case c.Status.Phase == v1alpha1.PhaseReleasing:
		t.releasing[name] = c
		if gaveUp(c) {
			if t.givenUp[tenant] == nil {
				t.givenUp[tenant] = map[string]*v1alpha1.Contract{}
			}
			t.givenUp[tenant][name] = c
		}
	case c.Status.Phase.Charged():
		t.charged.Add(c, &m)
		if len(c.Spec.Borrowed) > 0 {
			t.borrowed[name] = c
		}
		if !c.Spec.Term.End.IsZero() || c.Status.Displaced != nil {
			t.ending[name] = c
		}
	case ledger.Ended(c.Status.Phase):
		keep := r.keepEnded(c)
		// One second past its retention, because then it is older.
		leaves := v1alpha1.TimeOf(c.Status.Since.Add(keep + time.Second))
		t.leave[name] = leaves
		t.next = lifecycle.Earlier(t.next, leaves)
	}
}

// remove counts a contract out that was counted in as it is.
func (t *tally) remove(r *round, c *v1alpha1.Contract) {
	name, tenant := c.Metadata.Name, c.Metadata.Namespace
	delete(t.displaced, name)
	delete(t.releasing, name)
	delete(t.givenUp[tenant], name)
	delete(t.borrowed, name)
	delete(t.ending, name)
	m := r.money()
	t.charged.Remove(c, &m)
	if leaves, ended := t.leave[name]; ended {
		delete(t.leave, name)
		if leaves == t.next {
			t.next = v1alpha1.Time{}
			for _, l := range t.leave {
				t.next = lifecycle.Earlier(t.next, l)
			}
		}
	}
}

// byName lists contracts by name.
func byName(m map[string]*v1alpha1.Contract) []*v1alpha1.Contract {
	out := slices.Collect(maps.Values(m))
	slices.SortFunc(out, func(a, b *v1alpha1.Contract) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// readContracts takes from the tally what the round will change.
func (r *round) readContracts() {
	for _, c := range byName(r.displaced) {
		by := c.Status.Displaced.By
		r.notices[by] = append(r.notices[by], c)
	}
	if !r.next.After(r.now.Time) && !r.next.IsZero() {
		r.retire = true
		for _, leaves := range r.leave {
			r.due(leaves)
		}
	}
	r.due(r.next)
}

// listOrphans finds what the ledger holds or remembers of intents that are no
// more.
func (r *round) listOrphans() {
	r.orphans = map[[2]string]bool{}
	i := 0 // both are in order: walk them side by side
	for s := range r.w.Ledger.States() {
		order := -1
		for ; i < len(r.intents); i++ {
			m := &r.intents[i].Metadata
			if order = compareNames(m.Namespace, m.Name, s.Metadata.Namespace, s.Metadata.Name); order >= 0 {
				break
			}
		}
		if order != 0 {
			r.orphans[[2]string{s.Metadata.Namespace, s.Metadata.Name}] = true
		}
	}
	for c := range r.w.Ledger.Contracts() {
		tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
		if c.Status.Phase.Held() && r.w.Ledger.State(tenant, name) == nil && r.find(tenant, name) == nil {
			r.orphans[[2]string{tenant, name}] = true
		}
	}
}

// noteOrphan looks at one intent alone.
func (r *round) noteOrphan(k [2]string) {
	delete(r.orphans, k)
	if r.find(k[0], k[1]) != nil {
		return
	}
	if r.w.Ledger.State(k[0], k[1]) != nil || len(r.heldOf(k)) > 0 {
		r.orphans[k] = true
	}
}

// heldOf are the contracts of an intent that keep capacity.
func (r *round) heldOf(k [2]string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	for _, c := range r.w.Ledger.ByIntent(k[0], k[1]) {
		if c.Status.Phase.Held() {
			out = append(out, c)
		}
	}
	return out
}
