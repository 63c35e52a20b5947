package formulate

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// few is up to how many seats a problem counts what places are worth to others (package
// scarcity): more are a mix of their own, for which the search leaves what is scarce.
const few = 64

// extras are what a class's places count for beside their prices, in the order of ByPrice, as
// if no seat of the batch had its own; nothing where that is not counted.
func extras(p *place.Placer, seats []*place.Seat, of *match.Class) []quantity.Micro {
	byPrice := of.ByPrice()
	out := make([]quantity.Micro, len(byPrice))
	if p.Scarce == nil || len(seats) > few {
		return out
	}
	m := p.Mark()
	defer p.Rollback(m)
	for _, s := range seats {
		for _, c := range s.Held() {
			p.Put(c, nil)
		}
	}
	for n, i := range byPrice {
		out[n] = p.Scarce.Extra(&of.Candidates[i])
	}
	return out
}
