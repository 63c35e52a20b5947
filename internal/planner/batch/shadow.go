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
	work              int
}

// shadowKind is the seats of one kind.
type shadowKind struct {
	*Kind
	count float64
	costs []float64 // reduced costs, of a step
	// most is how many of the kind fit a place if they are alone.
	most []float64
	heap []int32
}

// shadowPrices ranks the places of each kind by shadow prices, the best first. The
// batch costs at least the bound, which is -Inf where nothing is known, as for rows
// with mates. It costs looks.
func (p *Problem) shadowPrices(looks *int) (ranked [][]int32, bound float64) {
	s := p.shadows()
	upper, best, lambda, stale := float64(p.cost()), math.Inf(-1), 1.0, 0
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
	for i := range s.kinds {
		s.reduce(&s.kinds[i])
		ranked = append(ranked, s.kinds[i].rank())
	}
	if slices.ContainsFunc(p.Rows, func(r Row) bool { return len(r.Mates) > 0 }) {
		return ranked, math.Inf(-1)
	}
	return ranked, best
}

// shadows begin with prices of nothing.
func (p *Problem) shadows() *shadows {
	n := len(p.Pooled)
	s := &shadows{Problem: p, n: n, room: make([]float64, n*len(p.Rows)), kinds: make([]shadowKind, len(p.Kinds))}
	s.price, s.over = make([]float64, len(s.room)), make([]float64, len(s.room))
	for r := range p.Rows {
		for x, free := range p.Rows[r].Free {
			s.room[r*n+x] = float64(free)
		}
	}
	for i := range p.Seats {
		t := &p.Seats[i]
		s.kinds[t.Kind].count++
		if k := &p.Kinds[t.Kind]; t.At >= 0 {
			for x, takes := range p.size(k, t.At) {
				s.room[int(k.Places[t.At].Row)*n+x] += float64(takes)
			}
		}
	}
	for i := range s.room {
		s.room[i] = max(s.room[i], 0)
	}
	for i := range s.kinds {
		k := &s.kinds[i]
		k.Kind, k.costs, k.most = &p.Kinds[i], make([]float64, len(p.Kinds[i].Places)), make([]float64, len(p.Kinds[i].Places))
		for at := range k.Places {
			k.most[at] = math.Inf(1)
			for x, takes := range p.size(k.Kind, int32(at)) { //nolint:gosec // their number
				if takes > 0 {
					k.most[at] = min(k.most[at], math.Floor(s.room[int(k.Places[at].Row)*n+x]/float64(takes)))
				}
			}
		}
		s.work += 1 + len(k.Places)/placesALook
	}
	return s
}

// reduce brings a kind's reduced costs up to date, and returns the cheapest.
func (s *shadows) reduce(k *shadowKind) (cheapest int) {
	for i := range k.Places {
		cost := math.Inf(1) // nobody fits there
		if k.most[i] > 0 {
			cost = float64(k.Places[i].Price)
			price := s.price[int(k.Places[i].Row)*s.n:][:s.n]
			for x, takes := range k.Sizes[i*s.n:][:s.n] {
				cost += float64(price[x] * float64(takes)) // converted: no processor fuses two steps
			}
		}
		if k.costs[i] = cost; cost < k.costs[cheapest] {
			cheapest = i
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
	first, without := s.reduce(k), float64(k.Nowhere)
	if len(k.Places) == 0 || k.costs[first] >= without {
		return float64(k.count * without)
	}
	if k.most[first] >= k.count { // as it nearly always is
		return s.send(k, first, k.count)
	}
	less := func(a, b int32) bool { return k.costs[a] < k.costs[b] }
	k.heap = k.heap[:0]
	for i := range k.costs {
		k.heap = append(k.heap, int32(i)) //nolint:gosec // their number
	}
	for i := len(k.heap)/2 - 1; i >= 0; i-- {
		siftDown(k.heap, i, less)
	}
	left := k.count
	for left > 0 && len(k.heap) > 0 {
		i := k.heap[0]
		if k.costs[i] >= without {
			break
		}
		n := min(left, k.most[i])
		left -= n
		cost += s.send(k, int(i), n)
		last := len(k.heap) - 1
		k.heap[0] = k.heap[last]
		k.heap = k.heap[:last]
		siftDown(k.heap, 0, less)
	}
	return cost + float64(left*without)
}

// send has n of a kind ask for a place, and returns what that costs.
func (s *shadows) send(k *shadowKind, place int, n float64) float64 {
	over := s.over[int(k.Places[place].Row)*s.n:][:s.n]
	for x, takes := range k.Sizes[place*s.n:][:s.n] {
		over[x] += float64(n * float64(takes))
	}
	return float64(n * k.costs[place])
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

// rank is a kind's places, the best first.
func (k *shadowKind) rank() []int32 {
	ranked := make([]int32, len(k.costs))
	for i := range ranked {
		ranked[i] = int32(i) //nolint:gosec // their number
	}
	slices.SortStableFunc(ranked, func(a, b int32) int { return cmp.Compare(k.costs[a], k.costs[b]) })
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
