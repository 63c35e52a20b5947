package tree

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLookupFindsWhatAWalkFinds: names around "/" (".", "-", "0") sort apart for
// files and directories.
func TestLookupFindsWhatAWalkFinds(t *testing.T) {
	name := rapid.StringMatching(`[ab.\-/0]{1,4}`).Filter(func(s string) bool {
		for _, r := range s {
			if r == '/' {
				return false
			}
		}
		return true
	})
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		seen := map[string]bool{}
		for _, n := range rapid.SliceOfN(name, 0, 40).Draw(t, "names") {
			if !seen[n] {
				seen[n] = true
				entries = append(entries, Entry{Name: n, Kind: rapid.SampledFrom([]Kind{File, Dir, Symlink, Submodule}).Draw(t, "kind")})
			}
		}
		Sort(entries)
		for _, n := range append(rapid.SliceOfN(name, 0, 20).Draw(t, "others"), "a", "b") {
			if _, known := seen[n]; !known {
				seen[n] = false
			}
		}
		for n, there := range seen {
			got, ok := lookup(entries, n)
			if ok != there || ok && got.Name != n {
				t.Fatalf("%q among %v: found %v, %v", n, entries, got, ok)
			}
		}
	})
}
