package audit

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// ahead judges invariant 2 on the time axis, for a contract that the commit books, places,
// enlarges or extends: at each instant of its term at which a booking of its flavor begins,
// what is held and booked fits the capacity that its decision names, beside the provider's
// own use. What has no end counts as staying permanently. A booking's own figures are
// those of the instant at which most is held: they leave what it takes.
func (v *verifier) ahead(now v1alpha1.Time, p pair, c *v1alpha1.Contract) {
	isBooked := c.Status.Phase == v1alpha1.PhaseBooked
	if !isBooked && !c.Status.Phase.Charged() || p.Before != nil && !more(p.Before, c) {
		return
	}
	size, o := offered(c, c), c.Decision.Offer
	if isBooked {
		if name, ok := ledger.Fits(ledger.Available(o), size); !ok {
			v.fault(p.path, "oversold", "books %s %s of %s, of which its own figures for %s leave %s", size[name].Canonical(name), name, flavorOf(c),
				stamp(o.At.Time), ledger.Available(o)[name].Canonical(name))
		}
		if o.At.Before(c.Spec.Term.Start.Time) && !o.At.Equal(now.Time) || !o.At.Before(c.Spec.Term.End.Time) {
			v.fault(p.path, "oversold", "its figures are those of %s, which is outside of its term", stamp(o.At.Time))
		}
	}
	all := slices.Concat(slices.Collect(maps.Values(v.held[flavorOf(c)])), slices.Collect(maps.Values(v.booked[flavorOf(c)])))
	from := now
	if isBooked {
		from = ledger.From(c, now)
	}
	for _, at := range ledger.Starts(all, from, c.Spec.Term.End) {
		then := o
		then.Held, then.Pool, then.ScalableTo = v1alpha1.Resources{}, nil, o.ScalableTo
		for _, other := range all {
			if ledger.TakesAt(other, at) {
				for r, amount := range offered(other, c) {
					then.Held[r] = then.Held[r].Add(amount)
				}
			}
		}
		left := ledger.Sellable(then)
		for _, r := range size.Names() {
			if !size[r].IsZero() && left[r].Less(v1alpha1.Amount{}) {
				v.fault(p.path, "oversold", "%s of %s at %s: contracts hold and have booked %s, the provider uses %s, capacity is %s", r, flavorOf(c), stamp(at.Time),
					then.Held[r].Canonical(r), then.Used[r].Canonical(r), then.Capacity[r].Canonical(r))
				return
			}
		}
	}
}

// more reports whether a contract takes more than before, or for longer. A booking that
// begins takes what it had booked.
func more(before, after *v1alpha1.Contract) bool {
	if was, is := before.Spec.Term.End, after.Spec.Term.End; !was.IsZero() && (is.IsZero() || is.After(was.Time)) {
		return true
	}
	return !within(offered(after, after), offered(before, after))
}
