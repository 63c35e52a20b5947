package wire

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseGeneration(t *testing.T) {
	for _, bad := range []string{"", "1", "1.", ".1", "0.1", "1.0", "-1.1", "1.-1", "1.2.3", "a.b", "1.1 ", "99999999999999999999.1"} {
		if g, err := ParseGeneration(bad); err == nil {
			t.Errorf("%q was read as %v", bad, g)
		}
	}
}

func TestGenerationsComeBackAndAreOrdered(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Generation {
		return Generation{rapid.Uint64Range(1, 4).Draw(t, "epoch"), rapid.Uint64Range(1, 1<<62).Draw(t, "n")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if got, err := ParseGeneration(a.String()); err != nil || got != a {
			t.Fatalf("%v came back as %v, %v", a, got, err)
		}
		if a.Cmp(b) != -b.Cmp(a) || (a.Cmp(b) == 0) != (a == b) {
			t.Fatalf("%v and %v are not ordered", a, b)
		}
	})
}
