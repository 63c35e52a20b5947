package stranded

import (
	"cmp"
	"slices"
)

const (
	// requests are looked ahead.
	requests = 10
	// coresEach is how many times its part of the cores a card is counted with.
	coresEach = 3
	// maxLevels is in how many steps a card is counted at most.
	maxLevels = 100
)

// Kind is a kind of request and how often it comes.
type Kind struct {
	// Cores in milli-cores, for each card that is asked for.
	Cores int64
	// Units of one card: all of them where whole cards are asked for.
	Units int64
	// Often is its part of all requests for cards, those for other cards included.
	Often float64
}

// Mix is what is usually asked for of one kind of card.
type Mix struct {
	per, levels int64
	kinds       []Kind // by cores
	// used is what is used of a card by its level, in levels, with the first so many kinds;
	// nil until asked.
	used [][]float64
}

// New is a mix of kinds of request for cards of so many units.
func New(per int64, kinds []Kind) *Mix {
	m := &Mix{per: per, levels: min(per, maxLevels), kinds: slices.Clone(kinds)}
	slices.SortStableFunc(m.kinds, func(a, b Kind) int { return cmp.Compare(a.Cores, b.Cores) })
	m.used = make([][]float64, len(m.kinds)+1)
	return m
}

// Of is what is stranded of cards with so many free units each, while so many milli-cores
// are free next to them, in cards. Units below nothing count as none.
func (m *Mix) Of(cores int64, free []int64) float64 {
	var idle int64
	for _, n := range free {
		idle += max(n, 0)
	}
	if idle == 0 {
		return 0
	}
	sum := float64(idle) / float64(m.per)
	for _, n := range free {
		if n > 0 {
			each := min(float64(max(cores, 0)), float64(coresEach*float64(cores))*float64(n)/float64(idle))
			level := min(n, m.per) * m.levels / m.per
			sum -= m.fill(int64(each))[level] / float64(m.levels)
		}
	}
	return sum
}

// fill is what is used of a card by level with so many milli-cores.
func (m *Mix) fill(cores int64) []float64 {
	n, _ := slices.BinarySearchFunc(m.kinds, cores, func(k Kind, cores int64) int {
		if k.Cores <= cores {
			return -1
		}
		return 1
	})
	if m.used[n] == nil {
		m.used[n] = m.expect(m.kinds[:n])
	}
	return m.used[n]
}

// expect is what requests take of a card by level, in levels, where these kinds fit by their
// cores.
func (m *Mix) expect(kinds []Kind) []float64 {
	often := make([]float64, m.levels+1) // by level that is needed
	for _, k := range kinds {
		often[min(max((k.Units*m.levels+m.per-1)/m.per, 1), m.levels)] += k.Often
	}
	var needs []int
	for need, p := range often {
		if p > 0 {
			needs = append(needs, need)
		}
	}
	now, next := make([]float64, m.levels+1), make([]float64, m.levels+1)
	for range requests {
		for r := range next {
			sum, fits := 0.0, 0.0
			for _, need := range needs {
				if need > r {
					break
				}
				fits += often[need]
				sum += float64(often[need] * (float64(need) + now[r-need]))
			}
			next[r] = sum + float64((1-fits)*now[r])
		}
		now, next = next, now
	}
	return now
}
