package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAmount: a quantity is refused, or between nothing and what can be added up;
// written out it is the same again.
func FuzzAmount(f *testing.F) {
	for _, s := range []string{"1", "500m", "16Gi", "1e30", "1e2147483647", "-1", "", "0.0000000001", "999999999999Ei", "NaN", "４", "1_000", "0x10", "+1", " 1", "1e-400", strings.Repeat("9", 70)} {
		for _, name := range []string{CPU, Memory, GPU, "rdma/hca"} {
			f.Add(name, s)
		}
	}
	f.Fuzz(func(t *testing.T, name, s string) {
		a, err := ParseAmount(name, s)
		if err != nil {
			return
		}
		if a.Int64() < 0 {
			t.Fatalf("%q of %s is %d", s, name, a.Int64())
		}
		again, err := ParseAmount(name, a.Canonical(name))
		if err != nil || again.Cmp(a) != 0 {
			t.Fatalf("%q of %s is %q, read as %d, %v, want %d", s, name, a.Canonical(name), again.Int64(), err, a.Int64())
		}
	})
}

// FuzzDecimal: money is refused, or comes out as it went in.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{`"1"`, `"12.50"`, `"-1"`, `"1e99"`, "1", "0.1", `"NaN"`, `"0.` + strings.Repeat("1", 40) + `"`, `""`, `"."`, `"1."`, `"+1"`, `"=1+1"`, `"00"`, "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, again Decimal
		if json.Unmarshal([]byte(s), &d) != nil {
			return
		}
		text, err := json.Marshal(d)
		if err != nil || json.Unmarshal(text, &again) != nil || again.Cmp(d) != 0 {
			t.Fatalf("%q is %s, %v", s, text, err)
		}
	})
}
