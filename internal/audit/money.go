package audit

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// accrued judges what a contract has cost: price times time, written down when
// its price or phase changes.
func (v *verifier) accrued(s *state, at v1alpha1.Time, p pair) {
	is := p.After.Status
	if p.Before == nil {
		if is.Accrued != nil || len(is.Months) > 0 || is.AccruedAt != ledger.From(p.After, at) {
			v.fault(p.path, "spend", "a new contract has cost something already, or counts from %s and not from %s", stamp(is.AccruedAt.Time), stamp(at.Time))
		}
		return
	}
	want := p.Before
	moved := is.AccruedAt != p.Before.Status.AccruedAt
	due := ledger.From(p.After, at)
	switch {
	case p.Before.Status.Phase == v1alpha1.PhaseBooked && ledger.Ended(is.Phase):
		var err error
		costs := ledger.CancelCosts(&s.fleet.Policy.Bookings, p.Before, is.Reason, at)
		if want, err = s.books.Cancel(p.Before, is.Phase, ledger.ReasonOf(p.After), costs, at); err != nil {
			return // judged among its phases
		}
	case moved:
		if is.AccruedAt != due {
			v.fault(p.path, "spend", "is settled at %s, the round's time is %s", stamp(is.AccruedAt.Time), stamp(at.Time))
		}
		want = s.books.Settle(p.Before, is.AccruedAt)
	case is.AccruedAt != due && (p.Before.Status.Phase != is.Phase || p.Before.Spec.Price.Hourly.Cmp(p.After.Spec.Price.Hourly) != 0):
		v.fault(p.path, "spend", "phase or price changed, but what it had cost was not written down")
	}
	if was := begun(p.Before); is.Phase == v1alpha1.PhaseReleasing && was.Status.Phase.Charged() && ledger.CancelCosts(&s.fleet.Policy.Bookings, was, is.Reason, at) {
		want = s.books.ChargeTerm(want)
	}
	for _, month := range sortedKeys(union(want.Status.Months, is.Months)) {
		a, b := want.Status.Months[month], is.Months[month]
		if a.Amount.Cmp(b.Amount) != 0 || a.List.Cmp(b.List) != 0 {
			v.fault(p.path, "spend", "in %s it cost %s (list %s), the file says %s (list %s)", month, a.Amount, a.List, b.Amount, b.List)
		}
	}
	if a, b := amount(want.Status.Accrued), amount(is.Accrued); a.Cmp(b) != 0 {
		v.fault(p.path, "spend", "it cost %s, the file says %s", a, b)
	}
}

// begun is a contract as it was when its release was decided: a booking had begun in the same
// round, and what was wrong with it before was forgotten then.
func begun(c *v1alpha1.Contract) *v1alpha1.Contract {
	if c.Status.Phase == v1alpha1.PhaseBooked {
		next := *c
		next.Status.Phase, next.Status.Reason = v1alpha1.PhaseReserved, ""
		return &next
	}
	return c
}

func amount(d *v1alpha1.Decimal) v1alpha1.Decimal {
	if d == nil {
		return v1alpha1.Zero
	}
	return *d
}

func union[V any](a, b map[string]V) map[string]V {
	out := make(map[string]V, len(a)+len(b))
	for k, x := range a {
		out[k] = x
	}
	for k, x := range b {
		out[k] = x
	}
	return out
}

// retired judges what is left of contracts that leave the tree: their cost is
// carried into their tenant's spend and their intent's state, and nothing else
// changes either.
func (v *verifier) retired(s *state, d *delta) {
	want := map[string][]v1alpha1.SpendEntry{} // by path
	gone := map[string][]*v1alpha1.Contract{}  // by path of the state
	for _, p := range d.contracts {
		if p.After != nil {
			continue
		}
		c := p.Before
		gone[ledger.StatePath(c.Metadata.Namespace, c.Spec.Intent.Name)] = append(gone[ledger.StatePath(c.Metadata.Namespace, c.Spec.Intent.Name)], c)
		for _, month := range sortedKeys(c.Status.Months) {
			m := c.Status.Months[month]
			if m.Amount.IsZero() && m.List.IsZero() {
				continue
			}
			path := ledger.SpendPath(c.Metadata.Namespace, month)
			want[path] = append(want[path], v1alpha1.SpendEntry{
				Contract: c.Metadata.Name, Intent: c.Spec.Intent.Name, Provider: c.Spec.Provider, Amount: m.Amount, List: m.List, Currency: c.Spec.Price.Currency,
			})
		}
	}
	for path := range d.spends {
		want[path] = append(want[path], entries(d.spends[path][0])...)
	}
	for _, path := range sortedKeys(want) {
		if _, changed := d.spends[path]; !changed {
			v.fault(path, "spend", "contracts left the tree, and what they cost is not carried over")
			continue
		}
		v.carried(path, want[path], entries(d.spends[path][1]))
	}
	for _, path := range sortedKeys(d.states) {
		st := d.states[path]
		if st[0] == nil && st[1] != nil { // renamed: it goes on where the old name's ended
			if it := s.fleet.Intent(st[1].Metadata.Namespace, st[1].Metadata.Name); it != nil {
				st[0] = d.states[ledger.StatePath(st[1].Metadata.Namespace, it.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom])][0]
			}
		}
		v.spent(s, path, st, gone[path])
	}
	for _, path := range sortedKeys(gone) {
		if _, changed := d.states[path]; !changed {
			if st := v.states[path]; st != nil {
				v.spent(s, path, [2]*v1alpha1.IntentState{st, st}, gone[path])
			}
		}
	}
}

func entries(s *v1alpha1.Spend) []v1alpha1.SpendEntry {
	if s == nil {
		return nil
	}
	return s.Entries
}

// carried compares the entries of a spend file with what they must be.
func (v *verifier) carried(path string, want, is []v1alpha1.SpendEntry) {
	byName := func(a, b v1alpha1.SpendEntry) int { return strings.Compare(a.Contract, b.Contract) }
	want, is = slices.SortedStableFunc(slices.Values(want), byName), slices.SortedStableFunc(slices.Values(is), byName)
	for i := range max(len(want), len(is)) {
		switch {
		case i >= len(is) || i < len(want) && want[i].Contract < is[i].Contract:
			v.fault(path, "spend", "%s cost %s %s, which is missing", want[i].Contract, want[i].Amount, want[i].Currency)
			return
		case i >= len(want) || is[i].Contract < want[i].Contract:
			v.fault(path, "spend", "%s has an entry of %s %s, but did not leave the tree now", is[i].Contract, is[i].Amount, is[i].Currency)
			return
		}
		a, b := want[i], is[i]
		if a.Intent != b.Intent || a.Provider != b.Provider || a.Currency != b.Currency || a.Amount.Cmp(b.Amount) != 0 || a.List.Cmp(b.List) != 0 {
			v.fault(path, "spend", "%s: the entry says %s %s (list %s) for %s on %s, it was %s %s (list %s) for %s on %s", a.Contract,
				b.Amount, b.Currency, b.List, b.Intent, b.Provider, a.Amount, a.Currency, a.List, a.Intent, a.Provider)
		}
	}
}

// spent judges what an intent's state says of contracts that have left the tree.
func (v *verifier) spent(s *state, path string, st [2]*v1alpha1.IntentState, gone []*v1alpha1.Contract) {
	was, is := st[0], st[1]
	if is == nil {
		return
	}
	var sum v1alpha1.Decimal
	currency := is.Status.Currency
	if was != nil {
		sum = amount(was.Status.Spent)
		if was.Status.Currency != "" {
			currency = was.Status.Currency
		}
	}
	for _, c := range gone {
		sum = sum.Add(s.books.Into(amount(c.Status.Accrued), c.Spec.Price.Currency, currency, c.Status.Since))
	}
	if got := amount(is.Status.Spent); got.Cmp(sum) != 0 {
		v.fault(path, "spend", "contracts that left the tree cost %s %s, the state says %s %s", sum, currency, got, is.Status.Currency)
	}
}
