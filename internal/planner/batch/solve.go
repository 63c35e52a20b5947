package batch

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// forgiven is how much more expensive than the cheapest yet a result may be at the
// start of each turn, in thousandths of what a seat costs on average; at its end
// nothing. No one figure is the best for all batches that were measured.
var forgiven = [...]int64{1000, 400, 200, 100, 20}

// weighed is how many times more places of scarce accounts count in turns of their own,
// before all others (scarce.go), weighedForgiven what is forgiven there.
var weighed = [...]quantity.Micro{10, 2}

const weighedForgiven = 400

// mostInVain is after how many turns in a row that found nothing cheaper the search ends.
const mostInVain = 3

// Answer is where seats are best.
type Answer struct {
	// At are their places, seat by seat; Nowhere for none.
	At []int32
	// On is where their units lie, Parts what those are put together from that are InParts.
	On    [][]Units
	Parts [][]Part
	// Cheaper: that costs less than what was given; else it is what was given.
	Cheaper bool
	// Looks that are left.
	Looks int
}

// Solve looks for places that cost less in total, with so many looks at places.
func Solve(p *Problem, looks int) Answer {
	out := Answer{Looks: looks, At: make([]int32, len(p.Seats)), On: make([][]Units, len(p.Seats)), Parts: make([][]Part, len(p.Seats))}
	for i := range p.Seats {
		out.At[i], out.On[i], out.Parts[i] = p.Seats[i].At, p.Seats[i].On, p.Seats[i].Parts
	}
	if len(p.Seats) < 2 || looks <= 0 {
		return out
	}
	ranked, rankedParts, near := p.shadowPrices(&out.Looks)
	if near {
		return out
	}
	x := p.begin(ranked, rankedParts, out.Looks)
	if p.Annealed && len(x.seats) <= mostAnnealed && plain(x) {
		out.Cheaper = anneal(x)
	} else {
		out.Cheaper = takeTurns(x)
	}
	for i := range x.seats {
		out.At[i], out.On[i], out.Parts[i] = x.seats[i].at, x.seats[i].on(), x.seats[i].parts()
	}
	out.Looks = x.looks
	return out
}

// takeTurns searches with ever less forgiven, each time from the cheapest yet, and reports
// whether that is cheaper than the start.
func takeTurns(x *ruins) (cheaper bool) {
	x.mostOut = mostRuined
	for _, times := range weighed {
		if x.weigh(times) {
			cheaper = descend(x, weighedForgiven) || cheaper
		}
	}
	x.weigh(0)
	for turn, inVain := 0, 0; turn < len(forgiven) && inVain < mostInVain; turn++ {
		if x.firstIdle = firstIdle; inVain > 0 {
			x.firstIdle = firstIdle / 2 // what is left to be found is mostly who else could have a place
		}
		if inVain++; descend(x, forgiven[turn]) {
			cheaper, inVain = true, 0
		}
	}
	return cheaper
}

// descend searches from the cheapest yet, with so many thousandths of what a seat costs forgiven
// at first.
func descend(x *ruins, part int64) bool {
	times := timesOf(x)
	return x.search(times, func(n int, before, least quantity.Micro) quantity.Micro {
		return max(least+x.prices.part(part, times-n, times), before-1)
	})
}
