package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

// baseline places one row after the other, in order of arrival, each where a
// score is highest among the sites that hold it. Rows that fit nowhere wait
// and let others pass.
type baseline struct {
	sites []site
	// score of a size on a site that holds it, and the card for a part of one (-1: the fullest that holds it).
	score func(s *site, z size) (score float64, card int)
	// pick, when set, chooses among the sites that hold a row, instead of score.
	pick func(n int) int
	// tie, when set, chooses among equal scores; else the first site by name is taken.
	tie    func(n int) int
	shapes map[shapeKey]*shapeCache
	// freed counts the rounds in which something ended: what fits nowhere is not tried again before.
	freed int
}

// cell is what is known of a shape on a site at one of its versions.
type cell struct {
	version uint32
	known   bool
	suits   bool
	fits    bool
	card    int32
	score   float64
	size    size
}

// shapeCache is what is known of one shape on all sites.
type shapeCache struct {
	cells []cell
	// nowhere is the count of freed at which it fitted nowhere, -1 for never.
	nowhere int
}

// Baselines are the policies beside the planner, by name.
var Baselines = []string{"cheapest-first", "best-fit", "random", "fgd"}

// newBaseline makes a policy; random draws from the seed.
func newBaseline(name string, sites []site, types []taskType, seed uint64) *baseline {
	b := &baseline{sites: sites, shapes: map[shapeKey]*shapeCache{}}
	draw := rand.New(rand.NewPCG(seed, 0x72616e646f6d)) //nolint:gosec // a simulation, not a secret
	switch name {
	case "cheapest-first":
		// What price-aware brokers do, such as SkyPilot: the cheapest that holds it, unpriced last.
		b.score = func(s *site, z size) (float64, int) {
			if !s.priced {
				return math.Inf(-1), -1
			}
			return -float64(s.hourly(z)), -1
		}
	case "best-fit":
		b.score = bestFit
	case "random":
		b.pick = draw.IntN
		b.score = func(s *site, z size) (float64, int) { return 0, randomCard(s, z, draw) }
	case "fgd":
		b.score = newFragments(types).descent
		b.tie = draw.IntN
	}
	return b
}

// Largest node of the trace that best-fit was published with, by which it
// weighs what is left: milli-cores and thousandths of GPUs.
const (
	largestCPU = 128_000
	largestGPU = 8_000
)

// bestFit prefers what leaves least: ½·cpu + ½·gpu, each as a part of the
// largest node, as in the published comparison.
func bestFit(s *site, z size) (float64, int) {
	cpu := float64(s.cpu-z.cpu) / largestCPU
	gpu := float64(s.idle()-s.milli(z.units)) / largestGPU
	return -(cpu + gpu) / 2, -1
}

func randomCard(s *site, z size, draw *rand.Rand) int {
	if z.units == 0 || z.units >= s.units {
		return -1
	}
	var cards []int
	for i, free := range s.cards {
		if free >= z.units {
			cards = append(cards, i)
		}
	}
	if len(cards) == 0 {
		return -1
	}
	return cards[draw.IntN(len(cards))]
}

func (b *baseline) step(_ int64, ended, waiting []*job) (stepResult, error) {
	if len(ended) > 0 {
		b.freed++
	}
	var out stepResult
	for _, j := range waiting {
		if p, ok := b.place(j.demand); ok {
			p.job = j
			if err := b.sites[p.site].take(p.size, p.on); err != nil {
				return out, err
			}
			out.placed = append(out.placed, p)
		}
	}
	return out, nil
}

func (b *baseline) place(d *market.Demand) (placement, bool) {
	c := b.shapes[shapeOf(d)]
	if c == nil {
		c = &shapeCache{cells: make([]cell, len(b.sites)), nowhere: -1}
		b.shapes[shapeOf(d)] = c
	}
	if c.nowhere == b.freed {
		return placement{}, false
	}
	best, holding, ties := -1, 0, 0
	for i := range b.sites {
		x := &c.cells[i]
		if !x.known || x.version != b.sites[i].version {
			b.look(d, &b.sites[i], x)
		}
		if !x.fits {
			continue
		}
		holding++
		switch {
		case best < 0 || (b.pick == nil && x.score > c.cells[best].score):
			best, ties = i, 1
		case b.pick != nil:
			// Each of those seen so far is equally likely to be kept.
			if b.pick(holding) == 0 {
				best = i
			}
		case b.tie != nil && x.score == c.cells[best].score:
			if ties++; b.tie(ties) == 0 {
				best = i
			}
		}
	}
	if best < 0 {
		c.nowhere = b.freed
		return placement{}, false
	}
	s, x := &b.sites[best], c.cells[best]
	if b.pick != nil {
		_, card := b.score(s, x.size)
		x.card = int32(card) //nolint:gosec // a node has few cards
	}
	return placement{site: best, size: x.size, on: s.deal(x.size.units, int(x.card)), hourly: s.hourly(x.size), milli: s.milli(x.size.units)}, true
}

// look brings a cell up to date.
func (b *baseline) look(d *market.Demand, s *site, x *cell) {
	if !x.known {
		x.known, x.suits, x.size = true, s.accepts(d), s.sizeFor(d)
		if d.MaxHourly != nil && s.priced && s.hourly(x.size) > d.MaxHourly.Micro() {
			x.suits = false
		}
	}
	x.version = s.version
	if x.fits = x.suits && s.fits(x.size); x.fits && b.pick == nil {
		score, card := b.score(s, x.size)
		x.score, x.card = score, int32(card) //nolint:gosec // a node has few cards
	}
}
