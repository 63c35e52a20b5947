package batch

import "slices"

// mayEnd are the accounts that may come to an end: those whose seats could cost more than is
// left, each in its most expensive place. The others need not be asked.
func (p *Problem) mayEnd() []bool {
	out := make([]bool, len(p.Accounts))
	if len(p.Accounts) == 0 {
		return out
	}
	left := make([][]int64, len(p.Accounts))
	for a := range left {
		left[a] = append(left[a], p.Accounts[a]...)
	}
	dearest := make([][]int64, len(p.Kinds))
	now := make([]int64, len(p.Accounts[0]))
	for i := range p.Seats {
		s := &p.Seats[i]
		if s.Account < 0 {
			continue
		}
		if dearest[s.Kind] == nil {
			dearest[s.Kind] = p.dearest(&p.Kinds[s.Kind], len(now))
		}
		clear(now)
		k := &p.Kinds[s.Kind]
		if s.At >= 0 {
			add(now, p.charges(k, s.At))
		}
		for _, part := range s.Parts {
			add(now, k.Split.deal(part.Row).charges(part.Units, len(now)))
		}
		for n, most := range dearest[s.Kind] { // no sum is made that could exceed its type
			if more := max(most-now[n], 0); more > left[s.Account][n] {
				out[s.Account] = true
			} else {
				left[s.Account][n] -= more
			}
		}
	}
	return out
}

// dearest is the most that one of a kind is charged, number by number.
func (p *Problem) dearest(k *Kind, numbers int) []int64 {
	most := make([]int64, numbers)
	for n, charge := range k.Charges {
		most[n%numbers] = max(most[n%numbers], charge)
	}
	if k.Split == nil {
		return most
	}
	parts := make([]int64, numbers)
	for i := range k.Split.Deals {
		for n, charge := range k.Split.Deals[i].Charges {
			parts[n%numbers] = max(parts[n%numbers], charge)
		}
	}
	for n := range most {
		most[n] = max(most[n], parts[n]*int64(k.Split.Most))
	}
	return most
}

// alikeOf is what one of a kind takes wherever it is; nil where that differs.
func (p *Problem) alikeOf(k *Kind) []int64 {
	n := len(p.Pooled)
	if len(k.Sizes) < n {
		return nil
	}
	first := k.Sizes[:n:n]
	for at := n; at < len(k.Sizes); at += n {
		if !slices.Equal(k.Sizes[at:][:n], first) {
			return nil
		}
	}
	return first
}

// cheapest is the least that one of a kind is charged in a place, number by number.
func (p *Problem) cheapest(k *Kind) (least []int64) {
	if len(p.Accounts) == 0 || len(k.Charges) == 0 {
		return nil
	}
	numbers := len(p.Accounts[0])
	least = slices.Clone(k.Charges[:numbers])
	for n, charge := range k.Charges {
		least[n%numbers] = min(least[n%numbers], charge)
	}
	return least
}

// exceeds reports whether a charge is more than what is left, in any number.
func exceeds(charge, left []int64) bool {
	for n, c := range charge {
		if c > left[n] {
			return true
		}
	}
	return false
}

// fewestOf is how many units one of a kind takes at least.
func (p *Problem) fewestOf(k *Kind) int64 {
	n := len(p.Pooled)
	if len(k.Sizes) < n {
		return 0
	}
	least := k.Sizes[0]
	for at := n; at < len(k.Sizes); at += n {
		least = min(least, k.Sizes[at])
	}
	return least
}
