package v1alpha1

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// TestAbsurdQuantitiesCostNothing: each of these kept the parser of Kubernetes
// busy for minutes or longer, or came close.
func TestAbsurdQuantitiesCostNothing(t *testing.T) {
	for _, text := range []string{
		"1e2147483647", "1E2147483647", "1e-2147483647", "1e+2147483647", "9e99999999", "1e99999999999999999999", "1e100", "1e99999999x",
		"1e5e99999999", "0." + strings.Repeat("0", 1<<20) + "1", strings.Repeat("9", 1<<20), "NaN", "Inf", "-Infinity", "１２", "1 ", "", "0x10",
	} {
		watch := bounded.StartStopwatch()
		for _, name := range []string{CPU, Memory, GPU} {
			if a, err := ParseAmount(name, text); err == nil || len(err.Error()) > 300 {
				t.Errorf("%s: %.40q was read as %v, %.400v", name, text, a, err)
			}
		}
		if err := watch.Late(time.Second, time.Minute); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for text, want := range map[string]int64{"1e3": 1000, "2E": 2e18, "1Ei": 1 << 60, "5e-1": 1} {
		if a, err := ParseAmount(Memory, text); err != nil || a.Int64() != want {
			t.Errorf("%q was read as %v, %v; want %d", text, a, err, want)
		}
	}
}

// What sums come to at the most is read back, by whoever it is reported to.
func TestLargestAmountsAreReadBack(t *testing.T) {
	most := AmountOf(math.MaxInt64).Add(AmountOf(math.MaxInt64))
	for _, name := range []string{CPU, Memory, GPU, "example.org/x"} {
		if got, err := ParseAmount(name, most.Canonical(name)); err != nil || got != most {
			t.Errorf("%s %s: %v, %v", name, most.Canonical(name), got, err)
		}
	}
}
