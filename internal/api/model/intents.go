package model

import (
	"iter"
	"slices"
)

// Called is where those of a name stand among intents in order of tenant and name, from
// the first to before the second: none, one, or several where files disagree.
func Called(list []*Intent, tenant, name string) (from, to int) {
	from, _ = slices.BinarySearchFunc(list, name, func(it *Intent, name string) int { return it.Compare(tenant, name) })
	to = from
	for to < len(list) && list[to].Compare(tenant, name) == 0 {
		to++
	}
	return from, to
}

// Among are the intents of each of some names, in order of tenant and name where there are
// many names: they are then found in one pass, in place of being looked for each.
func Among[K comparable, V any](list []*Intent, names map[K]V, key func(*Intent) K, called func(K) []*Intent) iter.Seq2[K, []*Intent] {
	const few = 16 // names that are looked for in the time of passing so many intents
	return func(yield func(K, []*Intent) bool) {
		if few*len(names) < len(list) {
			for k := range names {
				if !yield(k, called(k)) {
					return
				}
			}
			return
		}
		for from := 0; from < len(list); {
			k, to := key(list[from]), from+1
			for to < len(list) && key(list[to]) == k {
				to++
			}
			if _, wanted := names[k]; wanted && !yield(k, list[from:to]) {
				return
			}
			from = to
		}
	}
}

// SameEnds is how many of two lists' first intents, and then of their last, are
// the very same values.
func SameEnds(a, b []*Intent) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}
