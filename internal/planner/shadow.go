package planner

import (
	"cmp"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"maps"
	"math"
	"slices"
)

// Shadow prices say what a batch would give for one more unit of an offer's
// cards, cores or memory. With them each replica can be asked alone where it
// should go: a cheap card whose cores others need is no longer cheap. They are
// the multipliers of the assignment problem's Lagrangian relaxation, found by
// subgradient steps after Polyak (Held, Wolfe, Crowder: Validation of
// subgradient optimization, 1974). They only guide: what is booked is exact.

// shadowSteps is how many steps are made at most: more changed nothing that was
// measured.
const shadowSteps = 300

// placesALook is how many places that are only compared count as one look.
const placesALook = 64

// priced are the resources that get shadow prices; others are seldom scarce.
var shadowed = [...]int{quantity.GPU, quantity.CPU, quantity.Memory}

// shadowRow is one offer of the batch.
type shadowRow struct {
	offer *offer
	room  [len(shadowed)]float64 // what the batch may use
	price [len(shadowed)]float64 // micro an hour for a unit
	over  [len(shadowed)]float64 // what is asked above the room, of a step
}

// shadowKind is the seats of one shape, which all want the same.
type shadowKind struct {
	shape *shape
	count float64
	// without is what one of them counts for when it gets no place.
	without float64
	places  []shadowPlace
	costs   []float64 // reduced costs, of a step
	heap    []int32
	// ranked and regret are as rank puts them down.
	ranked []int32
	regret float64
}

// shadowPlace is where one of a kind could go.
type shadowPlace struct {
	row, cand int32 // cand is its place in shape.cands
	cost      float64
	size      [len(shadowed)]float64
	// most is how many of the kind fit if they are alone.
	most float64
}

type shadows struct {
	rows  []shadowRow
	kinds []*shadowKind
	of    map[*shape]*shadowKind
	// bound is what the batch costs at least.
	bound float64
	// work is how much a step costs, in looks.
	work int
}

// shadowPrices finds the shadow prices of the batch. They do not depend on
// where its seats are, and are found once.
func (p *repairs) shadowPrices() *shadows {
	counts, upper := map[*shape]float64{}, 0.0
	for _, t := range p.seats {
		counts[t.shape]++
		upper += float64(priceOf(t.shape, t.at))
	}
	if s := p.shadows; s != nil && maps.EqualFunc(counts, s.of, func(n float64, k *shadowKind) bool { return n == k.count }) {
		return s
	}
	s := p.shadowKinds(counts)
	p.shadows = s
	best, lambda, stale := math.Inf(-1), 1.0, 0
	kept := make([][len(shadowed)]float64, len(s.rows))
	for range min(shadowSteps, p.looks/4/s.work) {
		p.looks -= s.work
		bound, norm := s.step()
		if bound > best {
			best, stale = bound, 0
			for i := range s.rows {
				kept[i] = s.rows[i].price
			}
		} else if stale++; stale == 10 {
			lambda, stale = lambda/2, 0
		}
		if norm <= 0 || upper <= bound {
			break
		}
		s.move(lambda * (upper - bound) / norm)
	}
	for i := range s.rows {
		s.rows[i].price = kept[i]
	}
	s.bound = best
	for _, k := range s.kinds {
		k.reduce(s.rows)
		k.rank()
	}
	return s
}

// shadowKinds are the kinds of seats, of which there are so many, with where
// they could go.
func (p *repairs) shadowKinds(counts map[*shape]float64) *shadows {
	s := &shadows{of: map[*shape]*shadowKind{}}
	index := map[*offer]int32{}
	for _, t := range p.seats {
		if s.of[t.shape] != nil {
			continue
		}
		k := &shadowKind{shape: t.shape, count: counts[t.shape], without: float64(penalty(t.shape))}
		s.of[t.shape] = k
		s.kinds = append(s.kinds, k)
		for _, i := range t.shape.byPrice() {
			c := &t.shape.cands[i]
			if c.vague || c.req != "" && c.req == c.money {
				continue
			}
			at, known := index[c.offer]
			if !known {
				at = int32(len(s.rows))
				index[c.offer] = at
				s.rows = append(s.rows, p.shadowRow(c.offer))
			}
			pl := shadowPlace{row: at, cand: i, cost: float64(c.quote.current()), most: s.rows[at].holds(c.size)}
			for x, r := range shadowed {
				pl.size[x] = float64(c.size.At(r))
			}
			if pl.most > 0 {
				k.places = append(k.places, pl)
			}
		}
		k.costs = make([]float64, len(k.places))
		s.work += 1 + len(k.places)/placesALook
	}
	return s
}

// shadowRow is an offer's row: what is free of it and what the batch has there.
func (p *repairs) shadowRow(o *offer) shadowRow {
	room := o.free.Clone()
	for _, t := range p.on[o] {
		room = room.Add(t.at.size)
	}
	row := shadowRow{offer: o}
	for i, r := range shadowed {
		row.room[i] = float64(max(room.At(r), 0))
	}
	return row
}

// holds is how many of a size fit when nothing else of the batch is there.
func (w *shadowRow) holds(size quantity.Vector) float64 {
	n := math.Inf(1)
	for x, r := range shadowed {
		if takes := size.At(r); takes > 0 {
			n = min(n, math.Floor(w.room[x]/float64(takes)))
		}
	}
	return n
}

// reduce brings a kind's reduced costs up to date, and returns the cheapest.
func (k *shadowKind) reduce(rows []shadowRow) (cheapest int) {
	for i := range k.places {
		pl := &k.places[i]
		price := &rows[pl.row].price
		// The conversions keep every processor from fusing two steps.
		cost := pl.cost + float64(price[0]*pl.size[0]) + float64(price[1]*pl.size[1]) + float64(price[2]*pl.size[2])
		if k.costs[i] = cost; cost < k.costs[cheapest] {
			cheapest = i
		}
	}
	return cheapest
}

// step asks every kind where it would go, and returns the bound that follows
// and the squared length of what is asked too much, in parts of the room.
func (s *shadows) step() (bound, norm float64) {
	for i := range s.rows {
		s.rows[i].over = [len(shadowed)]float64{}
		for x := range shadowed {
			s.rows[i].over[x] = -s.rows[i].room[x]
			bound -= float64(s.rows[i].price[x] * s.rows[i].room[x])
		}
	}
	for _, k := range s.kinds {
		bound += k.spread(s.rows)
	}
	for i := range s.rows {
		row := &s.rows[i]
		for x := range shadowed {
			if row.room[x] <= 0 || row.over[x] < 0 && row.price[x] <= 0 {
				row.over[x] = 0
				continue
			}
			part := min(max(row.over[x]/row.room[x], -1), 1)
			norm += float64(part * part)
		}
	}
	return bound, norm
}

// spread sends a kind's seats where they would go, no more to an offer than
// would fit if it were alone there, and returns what that costs.
func (k *shadowKind) spread(rows []shadowRow) (cost float64) {
	first := k.reduce(rows)
	if len(k.places) == 0 || k.costs[first] >= k.without {
		return float64(k.count * k.without)
	}
	if k.places[first].most >= k.count { // as it nearly always is
		return k.send(rows, first, k.count)
	}
	less := func(a, b int32) bool { return k.costs[a] < k.costs[b] }
	k.heap = k.heap[:0]
	for i := range k.costs {
		k.heap = append(k.heap, int32(i))
	}
	for i := len(k.heap)/2 - 1; i >= 0; i-- {
		siftDown(k.heap, i, less)
	}
	left := k.count
	for left > 0 && len(k.heap) > 0 {
		i := k.heap[0]
		if k.costs[i] >= k.without {
			break
		}
		n := min(left, k.places[i].most)
		left -= n
		cost += k.send(rows, int(i), n)
		last := len(k.heap) - 1
		k.heap[0] = k.heap[last]
		k.heap = k.heap[:last]
		siftDown(k.heap, 0, less)
	}
	return cost + float64(left*k.without)
}

// send has n of a kind ask for a place, and returns what that costs.
func (k *shadowKind) send(rows []shadowRow, place int, n float64) float64 {
	pl := &k.places[place]
	over := &rows[pl.row].over
	for x := range shadowed {
		over[x] += float64(n * pl.size[x])
	}
	return float64(n * k.costs[place])
}

// siftDown restores the order of a heap whose i-th is too far up.
func siftDown(heap []int32, i int, less func(a, b int32) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// move changes the prices by a step of a length.
func (s *shadows) move(length float64) {
	for i := range s.rows {
		row := &s.rows[i]
		for x := range shadowed {
			if row.over[x] != 0 {
				part := min(max(row.over[x]/row.room[x], -1), 1)
				row.price[x] = max(row.price[x]+float64(length*part)/row.room[x], 0)
			}
		}
	}
}

// rank puts down where a kind would go, the best first.
func (k *shadowKind) rank() {
	k.ranked = make([]int32, len(k.costs))
	for i := range k.ranked {
		k.ranked[i] = int32(i)
	}
	slices.SortStableFunc(k.ranked, func(a, b int32) int { return cmp.Compare(k.costs[a], k.costs[b]) })
	if len(k.ranked) > 1 {
		k.regret = k.costs[k.ranked[1]] - k.costs[k.ranked[0]]
	}
	for i, at := range k.ranked {
		k.ranked[i] = k.places[at].cand
	}
}

// The orders in which seats choose anew. None is always best: the one in which
// they were placed, the biggest first, and those first who would lose most if
// they had to take the second place.
type seatOrder uint8

const (
	asPlaced seatOrder = iota
	biggestFirst
	byRegret
	seatOrders
)

// reseat lets all seats of the batch choose again, by shadow prices. It reports
// whether all found a place.
func (p *repairs) reseat(s *shadows, by seatOrder) bool {
	from, lost := len(p.done), map[*job]bool{}
	list := slices.Clone(p.seats)
	for _, t := range list {
		p.leave(t)
	}
	switch by {
	case biggestFirst:
		slices.SortStableFunc(list, func(a, b *seat) int {
			x, y := a.shape.wish, b.shape.wish
			return cmp.Or(cmp.Compare(y.wanted(), x.wanted()), cmp.Compare(y.need.At(quantity.CPU), x.need.At(quantity.CPU)))
		})
	case byRegret:
		slices.SortStableFunc(list, func(a, b *seat) int { return cmp.Compare(s.of[b.shape].regret, s.of[a.shape].regret) })
	}
	for _, t := range list {
		if lost[t.job] {
			continue
		}
		for _, i := range s.of[t.shape].ranked {
			if p.take(t, &t.shape.cands[i], t.shape, t.alt) {
				break
			}
		}
		switch {
		case t.at != nil:
		case t.droppable():
		case t.first != nil:
			p.undo(from)
			return false
		case t.job.gang():
			lost[t.job] = true
		}
	}
	for _, t := range list {
		if lost[t.job] && t.at != nil {
			p.leave(t)
		}
	}
	return true
}

// wanted is how many units of cards are asked for.
func (w *wish) wanted() int64 {
	if w.gpu == nil {
		return 0
	}
	return w.gpu.count
}
