package celenv

import "testing"

// FuzzCompile: an expression is refused, or has a worst case within the bound.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`flavor.gpu.model == "h100"`, `[1,2].all(a, [1,2].all(b, a == b))`, `1`, `((((`, `flavor.name.matches("(a+)+$")`, `"a" + "b" == ""`, `1/0 == 1`, "\xff", ``, `true // x`,
		`flavor.name.split("").map(x, x + x).size() > 0`, `{"a": 1}.exists(k, k == "a")`, `dyn([[]]).map(x, [x, x]).size() > 0`, `quantity("1e2147483647").isGreaterThan(quantity("1"))`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Compile(source)
		if err == nil && (p.Cost() < 0 || p.Cost() > MaxCost) {
			t.Fatalf("%q costs %d", source, p.Cost())
		}
	})
}
