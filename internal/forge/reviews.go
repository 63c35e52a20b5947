package forge

import (
	"cmp"
	"maps"
	"slices"
)

// SortReviews are the newest reviews of each person, by login.
func SortReviews(newest map[string]Review) []Review {
	return slices.SortedFunc(maps.Values(newest), func(a, b Review) int { return cmp.Compare(a.Author, b.Author) })
}
