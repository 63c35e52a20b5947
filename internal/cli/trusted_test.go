package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// TestTrusted_CountsAlarms: alarms that a daemon does not show, to a reader or because there
// are many, are counted and said.
func TestTrusted_CountsAlarms(t *testing.T) {
	two := wire.Trust{Root: "acme", Alarms: []string{"refs/x is in the way", "main is at abc"}}
	for name, tt := range map[string]struct {
		of    wire.Trust
		lines []string
		head  string
	}{
		"none":     {wire.Trust{Root: "acme"}, nil, "daemon with root acme"},
		"operator": {two.Showing(2), []string{"ALARM: refs/x is in the way", "ALARM: main is at abc"}, "daemon with root acme, 2 alarms"},
		"many":     {two.Showing(1), []string{"ALARM: refs/x is in the way", "ALARM: 1 alarm not shown: see the daemon's log, or show an operator's certificate"}, "daemon with root acme, 2 alarms"},
		"reader":   {two.Showing(0), []string{"ALARM: 2 alarms not shown: see the daemon's log, or show an operator's certificate"}, "daemon with root acme, 2 alarms"},
	} {
		got := trusted{Daemon: &tt.of}
		lines := slices.DeleteFunc(got.lines(), func(l string) bool { return !strings.HasPrefix(l, "ALARM") })
		if !slices.Equal(lines, tt.lines) || got.head() != tt.head {
			t.Errorf("%s: got %q and %q, want %q and %q", name, lines, got.head(), tt.lines, tt.head)
		}
	}
}
