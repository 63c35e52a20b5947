package tree

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// A tree with files laid over it is the tree that holds all of them.
func TestOverlayEqualsBuild(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b/c", "b/d", "b/e/f", "g/h/i/j", "g/h/k"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) map[string][]byte {
			return rapid.MapOfN(names, rapid.Map(rapid.StringN(1, 4, 4), func(s string) []byte { return []byte(s) }), 0, 4).Draw(t, what)
		}
		below, above := draw("below"), draw("above")
		base := NewMemory().Build(below)
		got, err := Overlay(base, above)
		if err != nil {
			t.Fatal(err)
		}
		both := maps.Clone(below)
		maps.Copy(both, above)
		want := NewMemory().Build(both)
		if got.Root != want.Root {
			t.Fatalf("%v over %v is %s, want %s", above, below, got.Root, want.Root)
		}
		for name, content := range both {
			if b, err := got.ReadFile(name, 0); err != nil || string(b) != string(content) {
				t.Fatalf("%s reads %q, %v", name, b, err)
			}
		}
	})
}
