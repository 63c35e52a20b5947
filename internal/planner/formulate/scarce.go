package formulate

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// few is up to how many seats a problem counts what places are worth to others (package
// scarcity): more are a mix of their own, for which the search leaves what is scarce.
const few = 64

// extrasFor is what places count for beside their prices, as if no seat of the batch had its
// own.
func extrasFor(p *place.Placer, seats []*place.Seat) func(*match.Class) func(*match.Candidate) quantity.Micro {
	nothing := func(*match.Candidate) quantity.Micro { return 0 }
	if p.Scarce == nil || len(seats) > few {
		return func(*match.Class) func(*match.Candidate) quantity.Micro { return nothing }
	}
	return func(of *match.Class) func(*match.Candidate) quantity.Micro {
		found := map[*match.Candidate]quantity.Micro{}
		m := p.Mark()
		defer p.Rollback(m)
		for _, s := range seats {
			for _, c := range s.Held() {
				p.Put(c, nil)
			}
		}
		for _, i := range of.ByPrice() {
			c := &of.Candidates[i]
			found[c] = p.Scarce.For(of.Request).Extra(c)
		}
		return func(c *match.Candidate) quantity.Micro { return found[c] }
	}
}
