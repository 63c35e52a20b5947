package contend

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// onNodes are the nodes of an offer as if contracts had left, one by one.
type onNodes struct {
	s     *victimSearch
	offer *inventory.Offer
	free  *nodes.Map
	// size and ask are what is to fit, lack what of the offer as a whole is missing.
	size, lack quantity.Vector
	ask        nodes.Ask
}

// fewestOnNodes is the best of the units whose leaving lets a candidate's pods find nodes:
// one alone, a pair, or else as many as it takes, without any that the others make
// needless.
func (s *victimSearch) fewestOnNodes(c *match.Candidate, units []unit, ask nodes.Ask, lack quantity.Vector) (best []unit) {
	x := &onNodes{s: s, offer: c.Offer, free: c.Offer.Nodes().Clone(), size: c.Size, lack: lack, ask: ask}
	better := func(set ...unit) {
		if x.enough(set...) && (best == nil || costOf(set, lack).before(costOf(best, lack))) {
			best = append([]unit(nil), set...)
		}
	}
	for i := range units {
		better(units[i])
	}
	if best == nil && len(units) <= pairUnits {
		for i := range units {
			for k := i + 1; k < len(units); k++ {
				better(units[i], units[k])
			}
		}
	}
	if best != nil {
		return best
	}
	for i := range units {
		if best = append(best, units[i]); x.enough(best...) {
			return x.pruned(best)
		}
	}
	return nil
}

// enough reports whether the pods fit without some units.
func (x *onNodes) enough(set ...unit) bool {
	var relief quantity.Vector
	for i := range set {
		relief = relief.Add(set[i].relief)
		x.book(&set[i], -1)
	}
	fits := x.lack.Within(relief) && x.free.Fits(x.size, x.ask)
	for i := range set {
		x.book(&set[i], 1)
	}
	return fits
}

// book takes (1) or gives back (-1) what a unit has of the offer's nodes.
func (x *onNodes) book(u *unit, sign int64) {
	for _, c := range u.contracts {
		at := x.s.OfferOf(c)
		if at == nil {
			continue
		}
		held := draft.HoldingOf(&x.s.Draft, at, c.Metadata.Name, c)
		if at != x.offer {
			if at.Flavor.Spec.Pool == "" || at.Provider != x.offer.Provider || at.Flavor.Spec.Pool != x.offer.Flavor.Spec.Pool {
				continue
			}
			held = held.Only(inventory.Shared)
		}
		x.free.Book(&held, sign)
	}
}

// pruned lets those off whom the others make needless, the most disturbing first.
func (x *onNodes) pruned(set []unit) []unit {
	for i := len(set) - 1; i >= 0; i-- {
		rest := append(append([]unit(nil), set[:i]...), set[i+1:]...)
		if x.enough(rest...) {
			set = rest
		}
	}
	return set
}
