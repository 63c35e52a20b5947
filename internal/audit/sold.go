package audit

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/axis"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// sold judges invariant 2 for what the commit places or enlarges, from the
// figures that contracts record and from what the ledger itself holds:
//
//   - what a contract takes fits what its own figures leave;
//   - its figures hold no less than the other contracts of the flavor did before
//     the round, which is several commits where the server refused part of it;
//   - after the commit, everything held of the flavor fits its capacity beside
//     the provider's own use;
//   - so does what is held and booked of it at every instant of the contract's term at
//     which a booking begins (package axis).
func (v *verifier) sold(at v1alpha1.Time, d *delta) {
	was := v.before(d)
	for _, p := range d.contracts {
		c := p.After
		if c == nil {
			continue
		}
		for _, fault := range axis.Faults(at, p.Before, c, v.held[flavorOf(c)], v.booked[flavorOf(c)]) {
			v.fault(p.path, "oversold", "%s", fault)
		}
		if !c.Status.Phase.Held() || p.Before != nil && p.Before.Status.Phase != v1alpha1.PhaseBooked && axis.Within(axis.Offered(c, c), axis.Offered(p.Before, c)) {
			continue
		}
		size, o := axis.Offered(c, c), c.Decision.Offer
		if from := v.claims(d, c); from != nil { // what it takes over was held already
			o.Held = o.Held.Clone()
			for name, n := range axis.Offered(from, c) {
				o.Held[name] = o.Held[name].Sub(n)
			}
		}
		if name, ok := ledger.Fits(ledger.Sellable(o), size); !ok {
			v.fault(p.path, "oversold", "takes %s %s of %s, of which its own figures leave %s (capacity %s, used %s, held %s)", size[name].Canonical(name), name,
				flavorOf(c), ledger.Sellable(o)[name].Canonical(name), o.Capacity[name].Canonical(name), o.Used[name].Canonical(name), o.Held[name].Canonical(name))
		}
		v.beside(p, c, was)
		v.together(p, c)
	}
}

// round is what commits of one round have changed: contracts as they were before
// it, nil those that came with it.
type round struct {
	id  string
	was map[string]*v1alpha1.Contract
}

// before is what the commit's round has changed so far.
func (v *verifier) before(d *delta) map[string]*v1alpha1.Contract {
	if id := v.c.Trailer("Round"); id == "" || id != v.came.id {
		v.came = round{id, map[string]*v1alpha1.Contract{}}
	}
	for _, p := range d.contracts {
		if p.After == nil {
			continue
		}
		if _, known := v.came.was[p.After.Metadata.Name]; !known {
			v.came.was[p.After.Metadata.Name] = p.Before
		}
	}
	return v.came.was
}

// claims is the warm contract whose slice another takes over in this commit, as
// it was before; nil when it takes none.
func (v *verifier) claims(d *delta, c *v1alpha1.Contract) *v1alpha1.Contract {
	for _, p := range d.contracts {
		if p.Before != nil && p.After != nil && p.Before.Spec.Slice == c.Spec.Slice && p.After != c && p.Before.Status.Phase.Held() && !p.After.Status.Phase.Held() {
			return p.Before
		}
	}
	return nil
}

// beside compares the figures with what the other contracts certainly held when
// they were taken: the less of before the round and now.
func (v *verifier) beside(p pair, c *v1alpha1.Contract, was map[string]*v1alpha1.Contract) {
	least := v1alpha1.Resources{}
	for name, other := range v.held[flavorOf(c)] {
		if name == c.Metadata.Name {
			continue
		}
		before, changed := was[name]
		if !changed {
			before = other
		}
		if before == nil || !before.Status.Phase.Held() { // came with this round, perhaps later
			continue
		}
		a, b := axis.Offered(before, c), axis.Offered(other, c)
		for r := range b {
			if a[r].Less(b[r]) {
				b[r] = a[r]
			}
			least[r] = least[r].Add(b[r])
		}
	}
	for _, r := range least.Names() {
		if told := c.Decision.Offer.Held[r]; told.Less(least[r]) {
			v.fault(p.path, "oversold", "its figures say that others hold %s %s of %s, the ledger says %s", told.Canonical(r), r, flavorOf(c), least[r].Canonical(r))
			return
		}
	}
}

// together adds up everything held of the flavor after the commit.
func (v *verifier) together(p pair, c *v1alpha1.Contract) {
	o := c.Decision.Offer
	o.Held, o.Pool = v1alpha1.Resources{}, nil
	for _, other := range v.held[flavorOf(c)] {
		for r, amount := range axis.Offered(other, c) {
			o.Held[r] = o.Held[r].Add(amount)
		}
	}
	left := ledger.Sellable(o)
	for _, r := range axis.Offered(c, c).Names() {
		if left[r].Less(v1alpha1.Amount{}) {
			v.fault(p.path, "oversold", "%s of %s: contracts hold %s, the provider uses %s, capacity is %s", r, flavorOf(c),
				o.Held[r].Canonical(r), o.Used[r].Canonical(r), o.Capacity[r].Canonical(r))
			return
		}
	}
}
