// Package axis judges invariant 2 on the time axis, from contracts and the figures that they
// record: what is held and booked of a flavor fits at every instant at which a booking
// begins.
//
// What has no end counts as staying permanently, and what is being released as gone. A
// booking that begins takes what it had booked.
//
// Package audit calls it for every contract that a commit changes. Pure functions of
// values, safe for concurrent use.
package axis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Faults are what is wrong with a contract that a commit at now books, places, enlarges or
// extends (before: as it was, nil where it is new): held and booked are all contracts of
// its flavor after the commit, by name. The provider's use and capacity are those that its
// decision names; a booking's own figures are those of the instant of its term at which
// most is held, and leave what it takes.
func Faults(now v1alpha1.Time, before, c *v1alpha1.Contract, held, booked map[string]*v1alpha1.Contract) (out []string) {
	isBooked := c.Status.Phase == v1alpha1.PhaseBooked
	if !isBooked && !c.Status.Phase.Charged() || before != nil && !more(before, c) {
		return nil
	}
	ref := c.Spec.Provider + "/" + c.Spec.Flavor
	size, o := Offered(c, c), c.Decision.Offer
	from := now
	if isBooked {
		from = ledger.From(c, now)
		if name, ok := ledger.Fits(ledger.Available(o), size); !ok {
			out = append(out, fmt.Sprintf("books %s %s of %s, of which its own figures for %s leave %s", size[name].Canonical(name), name, ref, stamp(o.At), ledger.Available(o)[name].Canonical(name)))
		}
		if o.At.Before(from.Time) || !o.At.Before(c.Spec.Term.End.Time) {
			out = append(out, fmt.Sprintf("its figures are those of %s, which is outside of its term", stamp(o.At)))
		}
	}
	out = append(out, nodeFaults(c, from, held, booked)...)
	all := slices.Concat(slices.Collect(maps.Values(held)), slices.Collect(maps.Values(booked)))
	for _, at := range ledger.Starts(all, from, c.Spec.Term.End) {
		then := o
		then.Held, then.Pool = v1alpha1.Resources{}, nil
		for _, other := range all {
			if ledger.TakesAt(other, at) {
				for r, amount := range Offered(other, c) {
					then.Held[r] = then.Held[r].Add(amount)
				}
			}
		}
		left := ledger.Sellable(then)
		for _, r := range size.Names() {
			if !size[r].IsZero() && left[r].Less(v1alpha1.Amount{}) {
				return append(out, fmt.Sprintf("%s of %s at %s: contracts hold and have booked %s, the provider uses %s, capacity is %s", r, ref, stamp(at),
					then.Held[r].Canonical(r), then.Used[r].Canonical(r), then.Capacity[r].Canonical(r)))
			}
		}
	}
	return out
}

func stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }

// more reports whether a contract takes more than before, or for longer.
func more(before, after *v1alpha1.Contract) bool {
	if was, is := before.Spec.Term.End, after.Spec.Term.End; !was.IsZero() && (is.IsZero() || is.After(was.Time)) {
		return true
	}
	return !Within(Offered(after, after), Offered(before, after))
}

// Offered is a contract's resources in its flavor's own names, as a contract of
// that flavor calls them on its slice.
func Offered(c, like *v1alpha1.Contract) v1alpha1.Resources {
	name := ledger.DefaultGPUResource
	for _, g := range []*v1alpha1.ContractGPU{c.Spec.GPUs, like.Spec.GPUs} {
		if g != nil && g.ResourceName != "" {
			name = g.ResourceName
			break
		}
	}
	out := c.Spec.Resources.Clone()
	if n, ok := out[name]; ok {
		delete(out, name)
		out[v1alpha1.GPU] = out[v1alpha1.GPU].Add(n)
	}
	return out
}

// Within reports a ≤ b for every resource of a.
func Within(a, b v1alpha1.Resources) bool {
	for name, n := range a {
		if b[name].Less(n) {
			return false
		}
	}
	return true
}
