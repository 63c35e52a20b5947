package invariant

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// ahead is why a contract oversells its flavor at an instant of its term that has not
// come yet, "" where it does not: those at which bookings begin are all that have to be
// asked.
func ahead(a *aftermath, f *v1alpha1.Flavor, pool []*v1alpha1.Flavor, c *v1alpha1.Contract, now v1alpha1.Time) string {
	if !a.anyBooked(f, pool) {
		return ""
	}
	lists := map[*v1alpha1.Flavor][]*v1alpha1.Contract{f: a.all(f)}
	for _, m := range pool {
		lists[m] = a.all(m)
	}
	var booked []*v1alpha1.Contract
	for _, list := range lists {
		for _, other := range list {
			if other.Status.Phase == v1alpha1.PhaseBooked {
				booked = append(booked, other)
			}
		}
	}
	from := now
	if c.Status.Phase == v1alpha1.PhaseBooked {
		from = ledger.From(c, now)
	}
	for _, at := range ledger.Starts(booked, from, c.Spec.Term.End) {
		if at == now && c.Status.Phase != v1alpha1.PhaseBooked && !slices.ContainsFunc(booked, func(b *v1alpha1.Contract) bool { return b.Spec.Term.Start.Before(now.Time) }) {
			continue // as of now it is asked with all that is held
		}
		var members []ledger.Member
		for _, m := range pool {
			members = append(members, ledger.At(m, lists[m], at))
		}
		left := ledger.Sellable(ledger.Figures(ledger.At(f, lists[f], at), members, ""))
		for _, name := range left.Names() {
			if have := left[name]; have.Less(v1alpha1.Amount{}) && !c.Spec.Resources[name].IsZero() {
				return fmt.Sprintf("%s would be oversold at %s: %s of %s too much", f.Ref(), at.UTC().Format("2006-01-02T15:04:05Z07:00"), v1alpha1.AmountOf(-have.Int64()).Canonical(name), name)
			}
		}
	}
	return ""
}

// all are the contracts that hold or have booked a flavor after the plan.
func (a *aftermath) all(f *v1alpha1.Flavor) []*v1alpha1.Contract {
	k := inventory.Key{Provider: f.Metadata.Namespace, Name: f.Metadata.Name}
	booked := slices.DeleteFunc(slices.Clone(a.before.BookedOn(k.Provider, k.Name)), func(c *v1alpha1.Contract) bool { return a.changed[c.Metadata.Name] })
	return slices.Concat(a.memberOf(f).Held, booked, a.booked[k])
}

// anyBooked reports whether a flavor, or one of its pool, is booked after the plan.
func (a *aftermath) anyBooked(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor) bool {
	is := func(f *v1alpha1.Flavor) bool {
		k := inventory.Key{Provider: f.Metadata.Namespace, Name: f.Metadata.Name}
		return len(a.booked[k]) > 0 || a.before.Booked() > 0 && len(a.before.BookedOn(k.Provider, k.Name)) > 0
	}
	return is(f) || slices.ContainsFunc(pool, is)
}
