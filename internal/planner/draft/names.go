package draft

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// KeyOf is an intent as "<tenant>/<name>".
func KeyOf(tenant, name string) string { return tenant + "/" + name }

// CompareNames orders by tenant, then name.
func CompareNames(tenant, name, otherTenant, otherName string) int {
	if c := strings.Compare(tenant, otherTenant); c != 0 {
		return c
	}
	return strings.Compare(name, otherName)
}

// SortedNames are the keys of a map, in order.
func SortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// SortedByCount lists requirements by count, the most frequent first, then by
// name.
func SortedByCount(counts map[string]int) []string {
	out := make([]string, 0, len(counts))
	for k := range counts {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return out
}
