package progress

import (
	"strings"
	"testing"
	"time"
)

// TestLine: a terminal has one line that is written over and cleared; elsewhere a line comes
// when it takes long.
func TestLine(t *testing.T) {
	for _, tt := range []struct {
		name     string
		terminal bool
		every    time.Duration
		want     string
	}{
		{"terminal", true, 100 * time.Millisecond, "\rread: 10 of 10 (100 %)\rread: 1 of 0 (100 %)  \r" + strings.Repeat(" ", 20) + "\r"},
		{"file", false, 10 * time.Second, "fleetbroker: read: 10 of 10 (100 %)\nfleetbroker: read: 1 of 0 (100 %)\n"},
		{"terminal, at once", true, 0, ""},
		{"file, soon", false, time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			now := time.Unix(0, 0)
			l := To(&b, tt.terminal, func() time.Time { return now })
			now = now.Add(tt.every)
			l.Show("read", 10, 10)
			l.Show("read", 11, 11) // at the same time
			now = now.Add(tt.every)
			l.Show("read", 1, 0)
			l.End()
			if b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}
