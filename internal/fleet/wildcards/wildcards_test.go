package wildcards_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/fleet/wildcards"
)

// TestMeeting: a Set finds the patterns that any two have a name in common with, and no
// others, by trying all short names.
func TestMeeting(t *testing.T) {
	var names []string
	for n := range 6 {
		for bits := range 1 << n {
			names = append(names, strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%0*b", n, bits))[:n])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,3}`)
		list := rapid.SliceOfN(pattern, 0, 12).Draw(t, "patterns")
		p := pattern.Draw(t, "p")
		var want []int
		for i, q := range list {
			if slices.ContainsFunc(names, func(name string) bool { return matches(p, name) && matches(q, name) }) {
				want = append(want, i)
			}
		}
		if got := wildcards.NewSet(list).Meeting(p); !slices.Equal(got, want) {
			t.Fatalf("%q meets %v of %q, want %v", p, got, list, want)
		}
	})
}

// matches reports whether a name is one of a pattern's.
func matches(pattern, name string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(name)
}

// TestMeeting_OfMany: with ten times the patterns, of which none begins as another, each
// is compared with itself alone.
func TestMeeting_OfMany(t *testing.T) {
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf("team-%05d-*", i))
	}
	set := wildcards.NewSet(list)
	for i, p := range list {
		if got := set.Meeting(p); !slices.Equal(got, []int{i}) {
			t.Fatalf("%q meets %v", p, got)
		}
	}
}

// BenchmarkSet compares each of a thousand tenants' patterns with all.
func BenchmarkSet(b *testing.B) {
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprintf("team-%05d-*", i))
	}
	for b.Loop() {
		set := wildcards.NewSet(list)
		for _, p := range list {
			set.Meeting(p)
		}
	}
}
