package batch

import (
	"cmp"
	"math"
	"slices"
)

// Shadow prices are what a batch would give for one more unit of a row's resource.
// With them each seat can be asked alone where it should go: a cheap card whose
// cores others need is no longer cheap.

const (
	// shadowSteps is how many steps are made at most: more changed nothing that was
	// measured.
	shadowSteps = 300
	// placesALook is how many places that are only compared count as one look.
	placesALook = 64
	// nearEnough is how far above what is known to be the least a batch may cost
	// for the search to be spared.
	nearEnough = 0.0002
)

// shadows are the shadow prices while they are found. Of resource x of row r all
// figures are at r*n+x.
type shadows struct {
	*Problem
	n int
	// room is what the batch may use, price of one unit in micro an hour, over what
	// is asked above the room, of a step.
	room, price, over []float64
	kinds             []shadowKind
	// costs are the reduced costs of the kind that is looked at.
	costs []float64
	// unit is what all prices are divided by: who scales them has the same quotients, and
	// so the same order of places that cost nearly the same.
	unit float64
	work int
}

// shadowKind is the seats of one kind.
type shadowKind struct {
	*Kind
	count float64
	// parts are how many of the kind make a seat: 1 but for what asks unit by unit.
	parts float64
}

// shadowPrices ranks the places of each kind by shadow prices, the best first. The
// batch is near where it hardly costs more than it must, as far as that is known, which it is
// not for rows with mates. It costs looks.
//
// A kind that may be in parts asks unit by unit; its rows for parts are rankedParts.
func (p *Problem) shadowPrices(looks *int) (ranked, rankedParts [][]int32, near bool) {
	s := p.shadows()
	upper, best, lambda, stale := float64(p.cost())/s.unit, math.Inf(-1), 1.0, 0
	kept := make([]float64, len(s.price))
	for range min(shadowSteps, *looks/4/s.work) {
		*looks -= s.work
		bound, norm := s.step()
		if bound > best {
			best, stale = bound, 0
			copy(kept, s.price)
		} else if stale++; stale == 10 {
			lambda, stale = lambda/2, 0
		}
		if norm <= 0 || upper <= bound {
			break
		}
		s.move(lambda * (upper - bound) / norm)
	}
	copy(s.price, kept)
	rankedParts = make([][]int32, len(s.kinds))
	divided := false
	for i := range s.kinds {
		k := &s.kinds[i]
		if s.reduce(k); p.Kinds[i].Split != nil {
			rankedParts[i], divided = s.rank(k), true
			k.Kind = &p.Kinds[i]
			s.reduce(k)
		}
		ranked = append(ranked, s.rank(k))
	}
	if divided || slices.ContainsFunc(p.Rows, func(r Row) bool { return len(r.Mates) > 0 }) {
		return ranked, rankedParts, false
	}
	return ranked, rankedParts, upper <= best*(1+nearEnough)
}

// shadows begin with prices of nothing.
func (p *Problem) shadows() *shadows {
	n := len(p.Pooled)
	s := &shadows{Problem: p, n: n, room: make([]float64, n*len(p.Rows)), kinds: make([]shadowKind, len(p.Kinds)), unit: 1}
	s.price, s.over = make([]float64, len(s.room)), make([]float64, len(s.room))
	for r := range p.Rows {
		for x, free := range p.Rows[r].Free {
			s.room[r*n+x] = float64(free)
		}
	}
	for i := range p.Seats {
		t := &p.Seats[i]
		s.kinds[t.Kind].count, s.kinds[t.Kind].parts = s.kinds[t.Kind].count+1, 1
		if k := &p.Kinds[t.Kind]; t.At >= 0 {
			for x, takes := range p.size(k, t.At) {
				s.room[int(k.Places[t.At].Row)*n+x] += float64(takes)
			}
		}
		for _, part := range t.Parts {
			sp := p.Kinds[t.Kind].Split
			for x, takes := range sp.deal(part.Row).size(part.Units, n) {
				s.room[int(sp.Rows[part.Row].Row)*n+x] += float64(takes)
			}
		}
	}
	for i := range s.room {
		s.room[i] = max(s.room[i], 0)
	}
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.Kind = &p.Kinds[i]; k.Split != nil {
			k.parts = float64(k.Split.Of / k.Split.Least)
			k.Kind = k.asUnits(n)
		}
		s.unit = max(s.unit, float64(k.Nowhere))
		k.count *= k.parts
		s.work += 1 + len(k.Places)/placesALook
	}
	return s
}

// asUnits is a kind that may be in parts as if the smallest parts were seats.
func (k *Kind) asUnits(n int) *Kind {
	sp := k.Split
	out := &Kind{Nowhere: k.Nowhere}
	for _, d := range sp.Deals {
		out.Sizes = append(out.Sizes, d.size(sp.Least, n)...)
	}
	for at, row := range sp.Rows {
		out.Places = append(out.Places, Place{Price: sp.deal(int32(at)).Prices[sp.Least], Row: row.Row}) //nolint:gosec // their number
		out.Deals = append(out.Deals, row.Deal)
	}
	return out
}

// most is how many of a kind fit a place if they are alone.
func (s *shadows) most(k *shadowKind, place int32) float64 {
	most := math.Inf(1)
	for x, takes := range s.size(k.Kind, place) {
		if takes > 0 {
			most = min(most, math.Floor(s.room[int(k.Places[place].Row)*s.n+x]/float64(takes)))
		}
	}
	return most
}

// reduce brings the reduced costs to a kind's, and returns the cheapest.
func (s *shadows) reduce(k *shadowKind) (cheapest int32) {
	s.costs = slices.Grow(s.costs[:0], len(k.Places))[:len(k.Places)]
places:
	for i := range k.Places {
		row, at := int(k.Places[i].Row)*s.n, int32(i) //nolint:gosec // their number
		room, price := s.room[row:][:s.n], s.price[row:][:s.n]
		cost := float64(k.Places[i].Price) / s.unit
		for x, takes := range s.size(k.Kind, at) {
			if takes > 0 && room[x] < float64(takes) {
				s.costs[i] = math.Inf(1) // nobody fits there
				continue places
			}
			cost += float64(price[x] * float64(takes)) // converted: no processor fuses two steps
		}
		if s.costs[i] = cost; cost < s.costs[cheapest] {
			cheapest = at
		}
	}
	return cheapest
}

// step asks every kind where it would go, and returns the bound that follows
// and the squared length of what is asked too much, in parts of the room.
func (s *shadows) step() (bound, norm float64) {
	for i, room := range s.room {
		s.over[i] = -room
		bound -= float64(s.price[i] * room)
	}
	for i := range s.kinds {
		bound += s.spread(&s.kinds[i])
	}
	for i, room := range s.room {
		if room <= 0 || s.over[i] < 0 && s.price[i] <= 0 {
			s.over[i] = 0
			continue
		}
		part := min(max(s.over[i]/room, -1), 1)
		norm += float64(part * part)
	}
	return bound, norm
}

// spread sends a kind's seats where they would go, no more to a row than would
// fit if they were alone there, and returns what that costs.
func (s *shadows) spread(k *shadowKind) (cost float64) {
	first, without := s.reduce(k), float64(k.Nowhere)/s.unit/k.parts
	if len(k.Places) == 0 || s.costs[first] >= without {
		return float64(k.count * without)
	}
	if s.most(k, first) >= k.count { // as it nearly always is
		return s.send(k, first, k.count)
	}
	less := func(a, b int32) bool { return s.costs[a] < s.costs[b] }
	heap := make([]int32, len(k.Places))
	for i := range heap {
		heap[i] = int32(i) //nolint:gosec // their number
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i, less)
	}
	left := k.count
	for left > 0 && len(heap) > 0 {
		i := heap[0]
		if s.costs[i] >= without {
			break
		}
		n := min(left, s.most(k, i))
		left -= n
		cost += s.send(k, i, n)
		last := len(heap) - 1
		heap[0] = heap[last]
		heap = heap[:last]
		siftDown(heap, 0, less)
	}
	return cost + float64(left*without)
}

// send has n of a kind ask for a place, and returns what that costs.
func (s *shadows) send(k *shadowKind, place int32, n float64) float64 {
	over := s.over[int(k.Places[place].Row)*s.n:][:s.n]
	for x, takes := range s.size(k.Kind, place) {
		over[x] += float64(n * float64(takes))
	}
	return float64(n * s.costs[place])
}

// move changes the prices by a step of a length.
func (s *shadows) move(length float64) {
	for i, room := range s.room {
		if s.over[i] != 0 {
			part := min(max(s.over[i]/room, -1), 1)
			s.price[i] = max(s.price[i]+float64(length*part)/room, 0)
		}
	}
}

// rank is a kind's places by its reduced costs, the best first.
func (s *shadows) rank(k *shadowKind) []int32 {
	ranked := make([]int32, len(k.Places))
	for i := range ranked {
		ranked[i] = int32(i) //nolint:gosec // their number
	}
	slices.SortStableFunc(ranked, func(a, b int32) int { return cmp.Compare(s.costs[a], s.costs[b]) })
	return ranked
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
