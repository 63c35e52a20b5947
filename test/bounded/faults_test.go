package bounded

import (
	"os/exec"
	"testing"
	"time"
)

// TestTime: what the machine's page faults cost beyond the usual is left out, and nothing else.
func TestTime(t *testing.T) {
	if f := fault(); f <= 0 || f > time.Millisecond {
		t.Errorf("the first touch of a page costs %s", f)
	}
	// 64 MiB are touched: 16,384 pages of 4 KiB.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "head -c 67108864 /dev/zero | tail -c 67108864 | wc -c")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch got := Time(cmd.ProcessState); {
	case got <= 0 || got > spent:
		t.Errorf("%s of %s", got, spent)
	case fault() <= usualFault && got != spent:
		t.Errorf("%s of %s are left, where a page costs %s", got, spent, fault())
	case fault() > 2*usualFault && spent-got < 16384*usualFault:
		t.Errorf("%s of %s are left, where a page costs %s", got, spent, fault())
	}
}
