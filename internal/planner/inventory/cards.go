package inventory

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A flavor that sells parts of cards sells units, of which unitsPerGPU make a
// card. A share of a card must lie on one card: four quarters that are free on
// four cards are no half. The ledger therefore numbers a flavor's cards and
// contracts record on which their units lie (ledger.Cards), for as long as they
// hold them.
//
//	share, and units of       whole cards of which nothing is taken, and the rest
//	mps or time-slicing       on one card
//	instances of MIG that     each by itself, wherever one is free
//	are counted
//
// Units of which nobody reports on which card they lie (the provider's own pods,
// contracts of before there were such records) are taken to lie on as few as
// possible.

// CardMap is what is free of the cards behind an offer, in units.
type CardMap struct {
	// per is how many units make a card.
	per  int64
	free []int64
	// empty cards, and the most that is free on one that is not.
	empty, spare int64
	// changes grows with each change of the cards, or of what else is free next to them.
	changes uint64
}

// dealCards makes the map of an offer whose figures are known; nil for one that
// sells whole cards.
func dealCards(o *Offer) *CardMap {
	n := ledger.Cards(o.Flavor)
	if n == 0 {
		return nil
	}
	d := &CardMap{per: o.UnitsPerCard, free: make([]int64, n)}
	left := o.Capacity.At(quantity.GPU)
	for i := range d.free {
		d.free[i] = min(left, d.per)
		left -= d.free[i]
	}
	known := int64(0)
	for _, c := range o.Contracts {
		for _, u := range CardsOf(c) {
			if int64(u.Card) < n {
				d.free[u.Card] -= u.Units
				known += u.Units
			}
		}
	}
	d.takeMostUsed(o.Capacity.At(quantity.GPU) - o.free.At(quantity.GPU) - known)
	d.count()
	return d
}

// CardsOf are the cards that a contract holds something of.
func CardsOf(c *v1alpha1.Contract) []v1alpha1.CardUnits {
	if c == nil || c.Spec.GPUs == nil || !c.Status.Phase.Held() {
		return nil
	}
	return c.Spec.GPUs.Cards
}

// PerCard is how many units make a card.
func (d *CardMap) PerCard() int64 { return d.per }

// Free are the units that are free of each card, by number: below nothing where it is
// overdrawn. It must not be modified.
func (d *CardMap) Free() []int64 { return d.free }

// Empty is how many cards are free as a whole.
func (d *CardMap) Empty() int64 { return d.empty }

// Spare is the most units that are free on a card that is not free as a whole.
func (d *CardMap) Spare() int64 { return d.spare }

// Changes is a number that grows whenever something else is free of the cards, or of
// the offer next to them.
func (d *CardMap) Changes() uint64 { return d.changes }

// Holds reports whether units fit on whole cards and what is left of them on one.
func (d *CardMap) Holds(units int64) bool {
	whole, part := units/d.per, units%d.per
	if part == 0 || d.spare >= part {
		return d.empty >= whole
	}
	return d.empty > whole
}

// Without calls f as if units of some cards were given back. nil is no cards.
func (d *CardMap) Without(list []v1alpha1.CardUnits, f func()) {
	d.book(list, -1)
	defer d.book(list, 1)
	f()
}

// MostUsed is from which cards so many units come when each may lie anywhere: the
// fullest that have any.
func (d *CardMap) MostUsed(units int64) []v1alpha1.CardUnits {
	trial := CardMap{per: d.per, free: slices.Clone(d.free)}
	return trial.takeMostUsed(units)
}

// takeMostUsed takes units from the fullest cards that have any, and returns from which.
func (d *CardMap) takeMostUsed(units int64) (from []v1alpha1.CardUnits) {
	for units > 0 {
		at := -1
		for i, free := range d.free {
			if free > 0 && (at < 0 || free < d.free[at]) {
				at = i
			}
		}
		if at < 0 {
			return from
		}
		n := min(units, d.free[at])
		d.free[at] -= n
		units -= n
		from = append(from, v1alpha1.CardUnits{Card: int32(at), Units: n}) //nolint:gosec // a flavor has few cards
	}
	return from
}

// book takes units of cards, or (-1) gives them back.
func (d *CardMap) book(list []v1alpha1.CardUnits, sign int64) {
	if d == nil || len(list) == 0 {
		return
	}
	for _, u := range list {
		if int(u.Card) < len(d.free) {
			d.free[u.Card] -= sign * u.Units
		}
	}
	d.count()
}

// stir notes that something else is free of an offer next to its cards.
func (o *Offer) stir() {
	if o.cards != nil {
		o.cards.changes++
	}
}

// count brings the sums up to date.
func (d *CardMap) count() {
	d.empty, d.spare = 0, 0
	d.changes++
	for _, free := range d.free {
		if free >= d.per {
			d.empty++
		} else {
			d.spare = max(d.spare, free)
		}
	}
}

// Choose is on which cards units lie, for the card chosen for a part of one
// (-1: the fullest that holds it).
func (d *CardMap) Choose(units int64, card int) (on []v1alpha1.CardUnits) {
	whole, part := units/d.per, units%d.per
	add := func(i int, n int64) {
		on = append(on, v1alpha1.CardUnits{Card: int32(i), Units: n}) //nolint:gosec // a flavor has few cards
	}
	for i := 0; i < len(d.free) && whole > 0; i++ {
		if d.free[i] >= d.per && i != card {
			add(i, d.per)
			whole--
		}
	}
	if part == 0 {
		return on
	}
	if card < 0 {
		for i, free := range d.free {
			taken := slices.ContainsFunc(on, func(u v1alpha1.CardUnits) bool { return int(u.Card) == i })
			if free >= part && !taken && (card < 0 || free < d.free[card]) {
				card = i
			}
		}
	}
	if card >= 0 {
		add(card, part)
	}
	return on
}
