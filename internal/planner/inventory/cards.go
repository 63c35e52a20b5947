package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
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
// The cards of an offer that tells its nodes are numbered on each node: a pod has units of
// one node alone (nodes.go), and those of a share lie on one card of it.
//
// Units of which nobody reports on which card they lie (the provider's own pods,
// contracts of before there were such records) are taken to lie on as few as
// possible, next to those of which it is known: they are dealt out again whenever these
// change (draft.RulesAgainAll).

// CardMap is what is free of the cards behind an offer, in units.
type CardMap struct {
	// per is how many units make a card.
	per  int64
	free []int64
	// on are the nodes of an offer that tells them, by name; nil where it tells none.
	on []cardsOn
	// empty cards, and the most that is free on one that is not.
	empty, spare int64
	// changes grows with each change of the cards, or of what else is free next to them.
	changes uint64
	// unknown is dealt out again with each change; nil where it is not.
	unknown *unknownUnits
}

// unknownUnits are those of which nobody reports on which card they lie.
type unknownUnits struct {
	// fixed is what is free of each card without them.
	fixed []int64
	// on is how many lie on each node, by its place in CardMap.on, loose how many on any card.
	on    []int64
	loose int64
}

// cardsOn are the cards of one node: those from first to before end.
type cardsOn struct {
	node       string
	first, end int
}

// dealCards makes the map of an offer whose figures are known; nil for one that
// sells whole cards.
func (in *Inventory) dealCards(o *Offer) *CardMap {
	n := ledger.Cards(o.Flavor)
	if n == 0 {
		return nil
	}
	d := &CardMap{per: o.UnitsPerCard}
	if o.tellsNodes {
		in.dealOnNodes(d, o)
	} else {
		d.deal(o, n)
	}
	if d.redeal(); !in.facts.Again {
		d.unknown = nil
	}
	d.count()
	return d
}

// redeal deals out the units that lie nobody knows where, next to the others.
func (d *CardMap) redeal() {
	u := d.unknown
	if u == nil {
		return
	}
	copy(d.free, u.fixed)
	for i, n := range u.on {
		d.takeMostUsed(d.on[i].first, d.on[i].end, n)
	}
	d.takeMostUsed(0, len(d.free), u.loose)
}

// deal deals out n cards of an offer that tells no nodes.
func (d *CardMap) deal(o *Offer, n int64) {
	d.add(o.Capacity.At(quantity.GPU), n)
	known := int64(0)
	for _, c := range o.Contracts {
		for _, u := range CardsOf(c) {
			if i := d.At(u); i >= 0 {
				d.free[i] -= u.Units
				known += u.Units
			}
		}
	}
	d.unknown = &unknownUnits{fixed: slices.Clone(d.free), loose: o.Capacity.At(quantity.GPU) - o.free.At(quantity.GPU) - known}
}

// dealOnNodes deals out the cards of each node. What of a node is taken and not known by
// cards (the provider's own pods, what it reports) is taken of that node's, what lies nobody
// knows where of any.
func (in *Inventory) dealOnNodes(d *CardMap, o *Offer) {
	list := ledger.NodesOf(o.Flavor)
	unknown, loose := make(map[string]int64, len(list)), int64(0)
	for i := range list {
		n := &list[i]
		units := n.Shape[v1alpha1.GPU]
		at := cardsOn{n.Name, len(d.free), 0}
		d.add(units.Int64(), ledger.CardsOfNode(o.Flavor, units))
		at.end = len(d.free)
		d.on = append(d.on, at)
		unknown[n.Name] = units.Sub(n.Sellable[v1alpha1.GPU]).Int64()
	}
	in.eachHolding(o, func(c *v1alpha1.Contract, h nodes.Holding) {
		known := map[string]int64{}
		for _, u := range CardsOf(c) {
			if i := d.At(u); i >= 0 {
				d.free[i] -= u.Units
				known[u.Node] += u.Units
			}
		}
		for _, p := range h.Parts {
			unknown[p.Node] += max(p.Size.At(quantity.GPU)-known[p.Node], 0)
		}
		loose += h.Loose.At(quantity.GPU)
	})
	d.unknown = &unknownUnits{fixed: slices.Clone(d.free), loose: loose}
	for _, at := range d.on {
		d.unknown.on = append(d.unknown.on, unknown[at.node])
	}
}

// adjust counts what a contract has of an offer beyond what it has of known cards: what is
// back of it, what is taken.
func (d *CardMap) adjust(x *Delta) {
	if d == nil || d.unknown == nil {
		return
	}
	u, loose := d.unknown, x.On.Loose.At(quantity.GPU)-x.Off.Loose.At(quantity.GPU)
	if len(d.on) == 0 {
		loose = x.Size.At(quantity.GPU) - d.known(x.Taken, "") + d.known(x.Back, "")
	}
	u.loose += loose
	if more, less := d.beyond(x.On.Parts, x.Taken, 1), d.beyond(x.Off.Parts, x.Back, -1); loose != 0 || more || less {
		d.redeal()
		d.count()
	}
}

// beyond adds to what lies nobody knows where what parts have of nodes beyond cards, sign
// times, and reports whether that is anything.
func (d *CardMap) beyond(parts []nodes.Part, cards []v1alpha1.CardUnits, sign int64) (changes bool) {
	for _, p := range parts {
		n := max(p.Size.At(quantity.GPU)-d.known(cards, p.Node), 0)
		if i, is := d.place(p.Node); is && n != 0 {
			d.unknown.on[i] += sign * n
			changes = true
		}
	}
	return changes
}

// known is how many of some units lie on cards that there are, of a node.
func (d *CardMap) known(list []v1alpha1.CardUnits, node string) (n int64) {
	for _, u := range list {
		if u.Node == node && d.At(u) >= 0 {
			n += u.Units
		}
	}
	return n
}

// add adds n cards with so many units, the last perhaps with fewer than the others.
func (d *CardMap) add(units, n int64) {
	for range n {
		d.free = append(d.free, min(units, d.per))
		units -= d.per
	}
}

// place is where a node is in on.
func (d *CardMap) place(name string) (i int, known bool) {
	return slices.BinarySearchFunc(d.on, name, func(at cardsOn, name string) int { return strings.Compare(at.node, name) })
}

// node is where the cards of a node are among all; none where the offer does not tell it.
func (d *CardMap) node(name string) (first, end int) {
	i, known := d.place(name)
	if !known {
		return 0, 0
	}
	return d.on[i].first, d.on[i].end
}

// At is the number in Free of the card that units lie on, -1 where there is none: its node is
// gone, or it was numbered when the offer told no nodes.
func (d *CardMap) At(u v1alpha1.CardUnits) int {
	first, end := 0, len(d.free)
	if len(d.on) > 0 || u.Node != "" {
		first, end = d.node(u.Node)
	}
	if i := first + int(u.Card); u.Card >= 0 && i < end {
		return i
	}
	return -1
}

// Units are units of the card of a number in Free.
func (d *CardMap) Units(i int, n int64) v1alpha1.CardUnits {
	if len(d.on) > 0 {
		at, _ := slices.BinarySearchFunc(d.on, i+1, func(at cardsOn, end int) int { return cmp.Compare(at.end, end) })
		return v1alpha1.CardUnits{Node: d.on[at].node, Card: int32(i - d.on[at].first), Units: n} //nolint:gosec // a node has few cards
	}
	return v1alpha1.CardUnits{Card: int32(i), Units: n} //nolint:gosec // a flavor has few cards
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

// Times is how many pieces of so many units the cards of a node hold, each on whole cards
// and what is left of it on one.
func (d *CardMap) Times(node string, piece int64) (n int64) {
	first, end := d.node(node)
	whole, part := piece/d.per, piece%d.per
	var empty, parts int64
	for _, free := range d.free[first:end] {
		if free >= d.per {
			empty++
		} else if part > 0 {
			parts += max(free, 0) / part
		}
	}
	switch {
	case part == 0:
		return empty / max(whole, 1)
	case whole == 0:
		return parts + empty*(d.per/part)
	}
	for empty >= whole {
		if empty -= whole; parts == 0 {
			if empty == 0 {
				return n
			}
			empty, parts = empty-1, d.per/part
		}
		parts--
		n++
	}
	return n
}

// MostUsed is from which cards so many units come when each may lie anywhere: the
// fullest that have any.
func (d *CardMap) MostUsed(units int64) []v1alpha1.CardUnits {
	trial := CardMap{per: d.per, free: slices.Clone(d.free), on: d.on}
	return trial.takeMostUsed(0, len(d.free), units)
}

// On is on which cards of a node units of one contract lie: loose ones where MostUsed puts
// them, else as Choose does where the node's cards hold them so.
func (d *CardMap) On(node string, units int64, loose bool) []v1alpha1.CardUnits {
	first, end := d.node(node)
	if !loose && d.Times(node, units) > 0 {
		return d.choose(first, end, units, -1)
	}
	trial := CardMap{per: d.per, free: slices.Clone(d.free), on: d.on}
	return trial.takeMostUsed(first, end, units)
}

// takeMostUsed takes units from the fullest of some cards that have any, and returns from
// which.
func (d *CardMap) takeMostUsed(first, end int, units int64) (from []v1alpha1.CardUnits) {
	if units <= 0 {
		return nil
	}
	order := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		if d.free[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.free[a], d.free[b]) })
	for _, at := range order {
		n := min(units, d.free[at])
		d.free[at] -= n
		from = append(from, d.Units(at, n))
		if units -= n; units == 0 {
			break
		}
	}
	return from
}

// book takes units of cards, or (-1) gives them back.
func (d *CardMap) book(list []v1alpha1.CardUnits, sign int64) {
	if d == nil || len(list) == 0 {
		return
	}
	free := d.free
	if d.unknown != nil {
		free = d.unknown.fixed
	}
	for _, u := range list {
		if i := d.At(u); i >= 0 {
			free[i] -= sign * u.Units
		}
	}
	d.redeal()
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
func (d *CardMap) Choose(units int64, card int) []v1alpha1.CardUnits {
	return d.choose(0, len(d.free), units, card)
}

// choose is Choose among some of the cards.
func (d *CardMap) choose(first, end int, units int64, card int) (on []v1alpha1.CardUnits) {
	whole, part := units/d.per, units%d.per
	taken := map[int]bool{}
	for i := first; i < end && whole > 0; i++ {
		if d.free[i] >= d.per && i != card {
			on, taken[i] = append(on, d.Units(i, d.per)), true
			whole--
		}
	}
	if part == 0 {
		return on
	}
	for i, given := first, card >= 0; i < end && !given; i++ {
		if free := d.free[i]; free >= part && !taken[i] && (card < 0 || free < d.free[card]) {
			card = i
		}
	}
	if card >= 0 {
		on = append(on, d.Units(card, part))
	}
	return on
}
