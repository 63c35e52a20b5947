package formulate

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// deal is what places of a kind have in common that take and cost the same. A problem keeps
// it, as classes may be evicted before all kinds are known.
type deal struct {
	size    quantity.Vector
	peak    quantity.Micro
	perCard int64
}

// What places charge to accounts: money an hour and this month, thousandths of cards,
// cores, bytes and contracts.
const charged = 6

// charges are what a place of a deal costs a tenant.
func (b *Problem) charges(c *deal) [charged]int64 {
	units, per := c.size.At(quantity.GPU)*1000, max(c.perCard, 1)
	return [charged]int64{int64(c.peak), int64(c.peak.ForSeconds(b.seconds)), (units + per - 1) / per, c.size.At(quantity.CPU), c.size.At(quantity.Memory), 1}
}

// rowOf is the row of an offer, below 0 where nobody can be sent to.
func (b *Problem) rowOf(o *inventory.Offer, plain bool) int32 {
	was := &b.asked[o.Index]
	switch {
	case *was != 0:
	case unusable(o, plain):
		*was = -1
	default:
		*was = b.index(o) + 1
	}
	return max(*was-1, -1)
}

// unusable reports whether nobody can be sent to an offer.
func unusable(o *inventory.Offer, plain bool) bool {
	return plain && (o.Cards() != nil || o.Nodes() != nil) || o.Overdrawn() >= 0
}

// index is an offer among the rows, with its mates.
func (b *Problem) index(o *inventory.Offer) int32 {
	if n := b.rows[o.Index]; n > 0 {
		return n - 1
	}
	at := int32(len(b.offers)) //nolint:gosec // their number
	b.rows[o.Index] = at + 1
	b.offers, b.Rows = append(b.offers, o), append(b.Rows, batch.Row{})
	for _, m := range o.PoolPeers {
		mate := b.index(m)
		b.Rows[at].Mates = append(b.Rows[at].Mates, mate)
	}
	return at
}

// countOf numbers the resources that a size takes.
func (b *Problem) countOf(size quantity.Vector) {
	for r, n := range size {
		if n > 0 && !slices.Contains(b.counts, r) {
			b.counts = append(b.counts, r)
		}
	}
}

// nodesSeen is of how many nodes of an offer a problem sees what is free of each.
const nodesSeen = 256

// onNodes reports whether a problem sees an offer's nodes. Of cards that are shared it sees
// the cards, each of which is on one node.
func onNodes(o *inventory.Offer) bool {
	return o.Nodes() != nil && o.Nodes().Len() <= nodesSeen && o.Capacity.At(quantity.GPU) > 0 && (o.Cards() == nil || match.IsCut(o.Flavor.Spec.GPU))
}

// unitsOf are the units that a contract has on cards of its offer, and of its nodes.
func unitsOf(p *place.Placer, c *v1alpha1.Contract) (on []batch.Units) {
	o := p.OfferOf(c)
	if o == nil || onNodes(o) {
		return nodesOf(p, c)
	}
	for _, u := range inventory.CardsOf(c) {
		if o.Cards() != nil && o.Cards().At(u) >= 0 {
			on = append(on, batch.Units{Card: int32(o.Cards().At(u)), N: u.Units}) //nolint:gosec // a flavor has few cards
		}
	}
	return on
}

// nodesOf are the GPUs that a contract has of its offer's nodes.
func nodesOf(p *place.Placer, c *v1alpha1.Contract) (on []batch.Units) {
	o := p.OfferOf(c)
	if o == nil || !onNodes(o) {
		return nil
	}
	for _, part := range layout.PartsOf(p.Names, o, c) {
		if n := part.Size.At(quantity.GPU); n > 0 && o.Nodes().Has(part.Node) {
			on = append(on, batch.Units{Card: o.Nodes().Number(part.Node), N: n})
		}
	}
	return on
}

// loose reports whether the units of a request may lie on any cards of an offer.
func loose(w *match.Request, o *inventory.Offer) bool {
	if w.GPU == nil || onNodes(o) {
		return w.GPU == nil || w.SinglePods()
	}
	return o.Cards() != nil && w.GPU.Loose(o.Flavor.Spec.GPU)
}
