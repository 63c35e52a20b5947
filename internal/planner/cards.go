package planner

import (
	"fmt"
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
// Units of which nobody says on which card they lie (the provider's own pods,
// contracts of before there were such records) are taken to lie on as few as
// possible.

// deck is what is free of the cards behind an offer, in units.
type deck struct {
	// per is how many units make a card.
	per  int64
	free []int64
	// empty cards, and the most that is free on one that is not.
	empty, spare int64
	// frags is what fragments counted last, valid while counted is true.
	frags   float64
	counted bool
}

// deal opens the deck of an offer whose figures are known; none for one that
// sells whole cards.
func (r *round) deal(o *offer) {
	n := ledger.Cards(o.Flavor)
	if n == 0 {
		return
	}
	d := &deck{per: o.unitsPer, free: make([]int64, n)}
	left := o.capacity.At(quantity.GPU)
	for i := range d.free {
		d.free[i] = min(left, d.per)
		left -= d.free[i]
	}
	known := int64(0)
	for _, c := range o.contracts {
		for _, u := range laidOn(c) {
			if int64(u.Card) < n {
				d.free[u.Card] -= u.Units
				known += u.Units
			}
		}
	}
	d.pour(o.capacity.At(quantity.GPU) - o.free.At(quantity.GPU) - known)
	d.count()
	o.deck = d
}

// laidOn are the cards that a contract holds something of.
func laidOn(c *v1alpha1.Contract) []v1alpha1.CardUnits {
	if c == nil || c.Spec.GPUs == nil || !c.Status.Phase.Held() {
		return nil
	}
	return c.Spec.GPUs.Cards
}

// pour takes units from the fullest cards that have any, and says from which.
func (d *deck) pour(units int64) (from []v1alpha1.CardUnits) {
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

// book takes what a contract holds of the cards, or (-1) gives it back.
func (d *deck) book(list []v1alpha1.CardUnits, sign int64) {
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

// stir forgets what was counted of an offer's cards: its cores are part of it.
func (o *offer) stir() {
	if o.deck != nil {
		o.deck.counted = false
	}
}

// count brings the deck's sums up to date.
func (d *deck) count() {
	d.empty, d.spare, d.counted = 0, 0, false
	for _, free := range d.free {
		if free >= d.per {
			d.empty++
		} else {
			d.spare = max(d.spare, free)
		}
	}
}

// loose reports whether the units that a wish comes to may lie on any cards.
func (g *gpuWish) loose(have *v1alpha1.FlavorGPU) bool {
	return g.share == 0 && (have.Profile != "" || have.Sharing == "mig")
}

// hosts reports whether an offer's cards hold a size as the wish wants it laid.
func (o *offer) hosts(g *gpuWish, size quantity.Vector) bool {
	units := size.At(quantity.GPU)
	if o.deck == nil || units == 0 || g == nil || g.loose(o.Flavor.Spec.GPU) {
		return true
	}
	whole, part := units/o.deck.per, units%o.deck.per
	if part == 0 || o.deck.spare >= part {
		return o.deck.empty >= whole
	}
	return o.deck.empty > whole
}

// hostsInstead is hosts as if a contract were not there.
func (o *offer) hostsInstead(g *gpuWish, size quantity.Vector, c *v1alpha1.Contract) bool {
	o.deck.book(laidOn(c), -1)
	defer o.deck.book(laidOn(c), 1)
	return o.hosts(g, size)
}

// lacks is what an offer has too little of for a size of a wish: a resource, or
// a card that has so much free.
func (r *round) lacks(w *wish, o *offer, size quantity.Vector) string {
	if req := r.short(o, size); req != "" {
		return req
	}
	if !o.hosts(w.gpu, size) {
		return ReqCard
	}
	return ""
}

// fewestOnCard is the best of the units that together free so much of one card.
func (r *round) fewestOnCard(o *offer, units []unit, need int64) (best []unit) {
	for i, free := range o.deck.free {
		lack := quantity.Vector(nil).Set(quantity.GPU, need-free)
		var there []unit
		for _, u := range units {
			var relief int64
			for _, c := range u.contracts {
				if r.offerOf(c) != o {
					continue
				}
				for _, on := range laidOn(c) {
					if int(on.Card) == i {
						relief += on.Units
					}
				}
			}
			if relief > 0 {
				u.relief = quantity.Vector(nil).Set(quantity.GPU, relief)
				there = append(there, u)
			}
		}
		if pick := fewest(there, lack); pick != nil && (best == nil || costOf(pick, lack).before(costOf(best, lack))) {
			best = pick
		}
	}
	return best
}

// detailCard says how an offer's cards do not hold a size.
func (o *offer) detailCard(size quantity.Vector) string {
	whole, part := size.At(quantity.GPU)/o.deck.per, size.At(quantity.GPU)%o.deck.per
	if part == 0 || whole > o.deck.empty {
		return fmt.Sprintf("%d of %d cards are whole; the %s GPUs free lie on several", o.deck.empty, whole, o.partText(o.free.At(quantity.GPU)))
	}
	return fmt.Sprintf("no card has %s free: at most %s; the %s GPUs free lie on several", o.partText(part), o.partText(o.deck.spare), o.partText(o.free.At(quantity.GPU)))
}

// partText is so many units in cards.
func (o *offer) partText(units int64) string {
	return v1alpha1.DecimalFromInt(units).DivInt(o.deck.per, 3).String()
}

// relaxCard asks for no more of a card than the emptiest has.
func relaxCard(spec *v1alpha1.IntentSpec, c *candidate) (text, said string) {
	d := c.offer.deck
	if spec.Resources.GPU == nil || spec.Resources.GPU.Share == nil || d.spare == 0 {
		return "", ""
	}
	g := *spec.Resources.GPU
	share := v1alpha1.DecimalFromInt(d.spare*1000/d.per).DivInt(1000, 3)
	if share.Sign() <= 0 {
		return "", ""
	}
	g.Share = &share
	spec.Resources.GPU = &g
	return "resources.gpu.share: \"" + share.String() + "\"", "has " + share.String() + " of a GPU free on one card"
}

// seat says on which cards units lie, for the card chosen for a part of one
// (-1: the fullest that holds it).
func (d *deck) seat(units int64, card int) (on []v1alpha1.CardUnits) {
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

// layOut chooses the cards of a contract of a size, which had others before: it
// stays on its card where that has the room.
func (r *round) layOut(w *wish, o *offer, size quantity.Vector, had []v1alpha1.CardUnits) []v1alpha1.CardUnits {
	d, units := o.deck, size.At(quantity.GPU)
	if d == nil || units == 0 {
		return nil
	}
	sum := int64(0)
	for _, u := range had {
		sum += u.Units
	}
	if sum == units {
		return had
	}
	d.book(had, -1)
	defer d.book(had, 1)
	if w.gpu == nil || w.gpu.loose(o.Flavor.Spec.GPU) { // nil: a size of the offer brings them, unasked for
		free := slices.Clone(d.free)
		on := d.pour(units)
		d.free = free
		return on
	}
	if len(had) == 1 && units < d.per && d.free[had[0].Card] >= units {
		return d.seat(units, int(had[0].Card))
	}
	_, card := r.packing(o, size)
	return d.seat(units, card)
}
