package formulate

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// A batch of thousands of kinds on as many offers has pairs of both, of some 200 bytes each.
// From mostPairs on each kind has its cheapest places alone, fewestPlaces at the least, and
// those where its seats are.
const (
	mostPairs    = 2_000_000
	fewestPlaces = 256
)

// keptPlaces are the places that kinds have; nil is all.
type keptPlaces struct {
	most  int
	seats map[asked]map[*inventory.Offer]bool
}

// kept are those of one kind: the cheapest, of which there are no more than most, and where
// its seats are. Nothing at all keeps everything.
type kept struct {
	most  int
	seats map[*inventory.Offer]bool
}

func keptOf(p *place.Placer, seats []*place.Seat) *keptPlaces {
	offers := len(p.Inventory.Offers())
	if !p.By(draft.RulesPairsBounded) || len(seats)*offers <= mostPairs { // there are no more kinds than seats
		return nil
	}
	out := &keptPlaces{seats: map[asked]map[*inventory.Offer]bool{}}
	for _, s := range seats {
		kind := askedBy(p, s)
		if out.seats[kind] == nil {
			out.seats[kind] = map[*inventory.Offer]bool{}
		}
		if s.At != nil {
			out.seats[kind][s.At.Offer] = true
		}
	}
	if len(out.seats)*offers <= mostPairs {
		return nil
	}
	out.most = max(mostPairs/len(out.seats), fewestPlaces)
	return out
}

func (k *keptPlaces) of(kind asked) kept {
	if k == nil {
		return kept{}
	}
	return kept{k.most, k.seats[kind]}
}

// has reports whether a place is kept after n cheaper ones.
func (k kept) has(n int, o *inventory.Offer) bool { return k.most == 0 || n < k.most || k.seats[o] }
