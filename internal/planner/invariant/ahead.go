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
	booked := a.bookedOf(f, pool)
	from := now
	if c.Status.Phase == v1alpha1.PhaseBooked {
		from = ledger.From(c, now)
	}
	for _, at := range a.starts(f, booked, from, c.Spec.Term.End) {
		if at == now && c.Status.Phase != v1alpha1.PhaseBooked && !slices.ContainsFunc(booked, func(b *v1alpha1.Contract) bool { return b.Spec.Term.Start.Before(now.Time) }) {
			continue // as of now it is asked with all that is held
		}
		left := a.leftAt(f, pool, at)
		for _, name := range left.Names() {
			if have := left[name]; have.Less(v1alpha1.Amount{}) && !c.Spec.Resources[name].IsZero() {
				return fmt.Sprintf("%s would be oversold at %s: %s of %s too much", f.Ref(), at.UTC().Format("2006-01-02T15:04:05Z07:00"), v1alpha1.AmountOf(-have.Int64()).Canonical(name), name)
			}
		}
	}
	return ""
}

// bookedOf is what is booked of a flavor and its pool.
func (a *aftermath) bookedOf(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor) []*v1alpha1.Contract {
	list, known := a.calendar.booked[f]
	if known {
		return list
	}
	add := func(f *v1alpha1.Flavor) {
		for _, c := range a.all(f) {
			if c.Status.Phase == v1alpha1.PhaseBooked {
				list = append(list, c)
			}
		}
	}
	add(f)
	for _, m := range pool {
		if m != f {
			add(m)
		}
	}
	a.calendar.booked[f] = list
	return list
}

// starts are the instants of a term at which what is booked of a flavor and its pool begins.
func (a *aftermath) starts(f *v1alpha1.Flavor, booked []*v1alpha1.Contract, from, to v1alpha1.Time) []v1alpha1.Time {
	list, known := a.calendar.starts[term{f, from, to}]
	if !known {
		list = ledger.Starts(booked, from, to)
		a.calendar.starts[term{f, from, to}] = list
	}
	return list
}

// leftAt is what of a flavor may be sold at an instant.
func (a *aftermath) leftAt(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor, at v1alpha1.Time) v1alpha1.Resources {
	left, known := a.calendar.left[term{f: f, from: at}]
	if !known {
		of := ledger.At
		if a.later && at.After(a.plan.Now.Time) {
			of = ledger.Later
		}
		var members []ledger.Member
		for _, m := range pool {
			members = append(members, of(m, a.all(m), at))
		}
		left = ledger.Sellable(ledger.Figures(of(f, a.all(f), at), members, ""))
		a.calendar.left[term{f: f, from: at}] = left
	}
	return left
}

// all are the contracts that hold or have booked a flavor after the plan.
func (a *aftermath) all(f *v1alpha1.Flavor) []*v1alpha1.Contract {
	if list, known := a.calendar.lists[f]; known {
		return list
	}
	k := inventory.Key{Provider: f.Metadata.Namespace, Name: f.Metadata.Name}
	booked := slices.DeleteFunc(slices.Clone(a.before.BookedOn(k.Provider, k.Name)), func(c *v1alpha1.Contract) bool { return a.changed[c.Metadata.Name] })
	list := slices.Concat(a.memberOf(f).Held, booked, a.booked[k])
	a.calendar.lists[f] = list
	return list
}

// anyBooked reports whether a flavor, or one of its pool, is booked after the plan.
func (a *aftermath) anyBooked(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor) bool {
	is := func(f *v1alpha1.Flavor) bool {
		k := inventory.Key{Provider: f.Metadata.Namespace, Name: f.Metadata.Name}
		return len(a.booked[k]) > 0 || a.before.Booked() > 0 && len(a.before.BookedOn(k.Provider, k.Name)) > 0
	}
	return is(f) || slices.ContainsFunc(pool, is)
}
