package match

import "cmp"

// ranking keeps the candidates of a class that fit so that the best of them are
// at hand: a binary heap of their places in Class.Candidates. A placement moves one
// candidate, which costs the logarithm of their number; looking at the first
// few costs nothing that grows with it.
type ranking struct {
	// thrifty: the price goes before the score.
	thrifty bool
	heap    []int32
	// at is each candidate's place in heap, -1 for those that do not fit.
	at []int32
	// open is the front of a walk, kept to be used again.
	open []int32
}

// newRanking orders the candidates that fit at the moment.
func newRanking(cands []Candidate, thrifty bool) *ranking {
	k := &ranking{thrifty: thrifty, at: make([]int32, len(cands))}
	for i := range cands {
		k.at[i] = -1
		if cands[i].Fails == "" {
			k.at[i] = int32(len(k.heap))
			k.heap = append(k.heap, int32(i))
		}
	}
	for i := len(k.heap)/2 - 1; i >= 0; i-- {
		k.down(cands, i)
	}
	return k
}

// update puts a candidate where it belongs after it changed.
func (k *ranking) update(cands []Candidate, i int32) {
	at := k.at[i]
	switch fits := cands[i].Fails == ""; {
	case at < 0 && !fits:
	case at < 0:
		k.at[i] = int32(len(k.heap))
		k.heap = append(k.heap, i)
		k.up(cands, len(k.heap)-1)
	case !fits:
		last := len(k.heap) - 1
		k.swap(int(at), last)
		k.heap = k.heap[:last]
		k.at[i] = -1
		if int(at) < last {
			k.down(cands, int(at))
			k.up(cands, int(at))
		}
	default:
		k.down(cands, int(at))
		k.up(cands, int(k.at[i]))
	}
}

func (k *ranking) swap(a, b int) {
	k.heap[a], k.heap[b] = k.heap[b], k.heap[a]
	k.at[k.heap[a]], k.at[k.heap[b]] = int32(a), int32(b)
}

func (k *ranking) less(cands []Candidate, a, b int) bool {
	x, y := k.heap[a], k.heap[b]
	if c := compareCandidates(&cands[x], &cands[y], k.thrifty); c != 0 {
		return c < 0
	}
	return x < y // they are ordered by reference
}

func (k *ranking) up(cands []Candidate, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !k.less(cands, i, parent) {
			return
		}
		k.swap(i, parent)
		i = parent
	}
}

func (k *ranking) down(cands []Candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(k.heap) {
			return
		}
		if child+1 < len(k.heap) && k.less(cands, child+1, child) {
			child++
		}
		if !k.less(cands, child, i) {
			return
		}
		k.swap(i, child)
		i = child
	}
}

// walk calls f with the candidates that fit, the best first, until it returns
// false. The candidates must not change meanwhile, and walks of one ranking do
// not nest.
func (k *ranking) walk(cands []Candidate, f func(*Candidate) bool) {
	if len(k.heap) == 0 {
		return
	}
	// open is a heap too, of places in k.heap whose parents have been visited.
	open := append(k.open[:0], 0)
	for len(open) > 0 {
		at := int(open[0])
		if !f(&cands[k.heap[at]]) {
			break
		}
		last := len(open) - 1
		open[0] = open[last]
		open = open[:last]
		k.sink(cands, open)
		for child := 2*at + 1; child <= 2*at+2 && child < len(k.heap); child++ {
			open = append(open, int32(child))
			for i := len(open) - 1; i > 0 && k.less(cands, int(open[i]), int(open[(i-1)/2])); i = (i - 1) / 2 {
				open[i], open[(i-1)/2] = open[(i-1)/2], open[i]
			}
		}
	}
	k.open = open[:0]
}

// sink restores the order of a walk's front after its first was replaced.
func (k *ranking) sink(cands []Candidate, open []int32) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(open) {
			return
		}
		if child+1 < len(open) && k.less(cands, int(open[child+1]), int(open[child])) {
			child++
		}
		if !k.less(cands, int(open[child]), int(open[i])) {
			return
		}
		open[i], open[child] = open[child], open[i]
		i = child
	}
}

// Before is the order of candidates that fit: the higher score, then the lower
// price, then what strands less of cards sold in parts, then the reference; for
// thrift the price goes first. One that is not known is the highest. Offers that would have to grow come last,
// and after them those with accelerators that are not asked for.
func Before(a, b *Candidate, thrifty bool) bool { return Compare(a, b, thrifty) < 0 }

// Compare is the order of Before as a number; 0 is one candidate.
func Compare(a, b *Candidate, thrifty bool) int {
	if c := compareCandidates(a, b, thrifty); c != 0 {
		return c
	}
	return cmp.Compare(a.Offer.Index, b.Offer.Index)
}

// compareCandidates is the order of Before without the reference.
func compareCandidates(a, b *Candidate, thrifty bool) int {
	switch same := a.Pricing == b.Pricing; {
	case a.Unasked != b.Unasked:
		return first(b.Unasked)
	case a.Scales != b.Scales:
		return first(b.Scales)
	case thrifty && a.Vague != b.Vague:
		return first(b.Vague)
	case thrifty && !same && a.Quote.Most() != b.Quote.Most():
		return first(a.Quote.Most() < b.Quote.Most())
	case a.Score != b.Score:
		return first(a.Score > b.Score)
	case !same && a.Vague != b.Vague:
		return first(b.Vague)
	case !same && a.Quote.Current() != b.Quote.Current():
		return first(a.Quote.Current() < b.Quote.Current())
	}
	return cmp.Compare(b.Fills, a.Fills)
}

// first is the sign of what goes first, or after.
func first(goes bool) int {
	if goes {
		return -1
	}
	return 1
}
