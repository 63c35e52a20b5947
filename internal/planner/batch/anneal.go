package batch

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A batch of seats that have nothing to do with each other but room is annealed (Dueck,
// Scheuer: Threshold accepting, 1990): a result is continued from when it costs little more than the one
// before it, ever less. That ends in one of several near optima; it is done twice, from where
// the batch began, with large ruins and with small ones, and the cheaper end is kept.

const (
	// mostAnnealed is how many seats a batch has at most that is annealed: with more, one such
	// search finds no more than the turns do in the same time.
	mostAnnealed = 300
	// fewAnnealed is up to how many seats each search has the first of annealedTurns of ruins; with
	// more, the second.
	fewAnnealed = 100
	// halvings is how often what is forgiven is halved until the end of the search, from
	// annealedForgiven thousandths of what a seat costs on average.
	halvings, annealedForgiven = 10, 1000
)

// annealedTurns are how many turns of ruins each search of a small and of a large batch has.
var annealedTurns = [...]int{4, 6}

// annealedRuins are how many seats at most lose their places before no more are added, in each
// search.
var annealedRuins = [...]int{mostRuined, 30}

// plain reports whether all that seats have in common is room.
func plain(x *ruins) bool {
	return len(x.Rules) == 0 && len(x.groups) == 0 && x.freed == nil && !slices.Contains(x.bounded, true)
}

// anneal searches from the start as often as there are annealedRuins, and reports whether the
// best is cheaper than the start.
func anneal(x *ruins) bool {
	start, first := slices.Clone(x.seats), x.cost
	best, cost := start, first
	forgives, times := x.prices.part(annealedForgiven, 1, 1), annealedTurns[0]*timesOf(x)
	if len(x.seats) > fewAnnealed {
		times = annealedTurns[1] * timesOf(x)
	}
	x.regrets = true
	for _, most := range annealedRuins {
		x.become(start)
		x.mostOut = most
		x.search(times, func(n int, before, _ quantity.Micro) quantity.Micro { return before + cooled(forgives, n, times) })
		if x.cost < cost {
			cost, best = x.cost, slices.Clone(x.seats)
		}
	}
	x.become(best)
	return cost < first
}

// cooled is what is forgiven in the n-th of so many ruins: half as much after each of
// halvings, in a straight line between.
func cooled(first quantity.Micro, n, times int) quantity.Micro {
	step := times/halvings + 1
	now := first >> (n / step)
	return now - now/2*quantity.Micro(n%step)/quantity.Micro(step)
}
