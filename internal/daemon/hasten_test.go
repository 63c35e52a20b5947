package daemon

import (
	"context"
	"math"
	"runtime/debug"
	"testing"
)

// percent is GOGC as it is now.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestHasten(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	before := debug.SetGCPercent(120)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(before)
	})
	t.Setenv("GOGC", "")
	during := func(ctx context.Context) (most int) {
		looks := 0
		Hasten(ctx, func() bool {
			most = max(most, percent())
			looks++
			return looks > 2
		})
		if now := percent(); now != 120 {
			t.Errorf("GOGC is %d afterwards, want 120", now)
		}
		return most
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if got := during(t.Context()); got != 0 {
		t.Errorf("without a limit of memory the start was waited for, with GOGC %d", got)
	}
	debug.SetMemoryLimit(4 << 30)
	if got := during(t.Context()); got != hastyPercent {
		t.Errorf("with a limit of memory GOGC was %d, want %d", got, hastyPercent)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	Hasten(ended, func() bool { return false }) // it ends
	t.Setenv("GOGC", "120")
	if got := during(t.Context()); got != 0 {
		t.Errorf("GOGC is given, and was %d", got)
	}
}
