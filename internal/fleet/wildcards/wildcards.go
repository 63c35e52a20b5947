// Package wildcards tells which patterns of names have a name in common. In a pattern *
// stands for any characters, none included; a name is a pattern without one.
//
// A fleet of a thousand tenants has a pattern for each at least, and each change of a file
// compares all of them: a Set looks only at those whose beginnings agree. Package fleet
// calls it. A Set never changes, so that any number of goroutines may use it.
package wildcards

import (
	"slices"
	"strings"
)

// Set is patterns by how they begin.
type Set struct {
	patterns []string
	// begins are the patterns' beginnings, each once, in order; at are the patterns that
	// begin so, by their index.
	begins []string
	at     map[string][]int
}

// NewSet makes a Set of patterns, which keep their indices.
func NewSet(patterns []string) *Set {
	s := &Set{patterns: patterns, at: map[string][]int{}}
	for i, p := range patterns {
		begin := beginning(p)
		if s.at[begin] == nil {
			s.begins = append(s.begins, begin)
		}
		s.at[begin] = append(s.at[begin], i)
	}
	slices.Sort(s.begins)
	return s
}

// Meeting are the indices of the patterns that have a name in common with p, in order.
func (s *Set) Meeting(p string) []int {
	if s == nil {
		return nil
	}
	var out []int
	take := func(begin string) {
		for _, i := range s.at[begin] {
			if Meet(s.patterns[i], p) {
				out = append(out, i)
			}
		}
	}
	begin := beginning(p)
	for n := range len(begin) {
		take(begin[:n])
	}
	from, _ := slices.BinarySearch(s.begins, begin)
	for _, b := range s.begins[from:] {
		if !strings.HasPrefix(b, begin) {
			break
		}
		take(b)
	}
	slices.Sort(out)
	return out
}

// beginning is what each name of a pattern begins with.
func beginning(p string) string {
	begin, _, _ := strings.Cut(p, "*")
	return begin
}

// ending is what each name of a pattern ends with.
func ending(p string) string { return p[strings.LastIndexByte(p, '*')+1:] }

// Meet reports whether two patterns have a name in common. It takes as long as their
// lengths multiplied, where their beginnings and endings agree.
func Meet(a, b string) bool {
	x, y := beginning(a), beginning(b)
	if n := min(len(x), len(y)); x[:n] != y[:n] {
		return false
	}
	x, y = ending(a), ending(b)
	if n := min(len(x), len(y)); x[len(x)-n:] != y[len(y)-n:] {
		return false
	}
	row := make([]bool, len(b)+1)
	next := make([]bool, len(b)+1)
	// row[j]: a[i:] and b[j:] have a name in common, from the ends backwards.
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				next[j] = true
			case i < len(a) && a[i] == '*':
				next[j] = row[j] || j < len(b) && next[j+1]
			case j < len(b) && b[j] == '*':
				next[j] = next[j+1] || i < len(a) && row[j]
			default:
				next[j] = i < len(a) && j < len(b) && a[i] == b[j] && row[j+1]
			}
		}
		row, next = next, row
	}
	return row[0]
}
