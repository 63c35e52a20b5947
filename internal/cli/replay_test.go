package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Retention is blamed for a missing snapshot only once it is over.
func TestNotThere_BlamesRetentionOnlyOnceItIsOver(t *testing.T) {
	const day = 24 * time.Hour
	decided := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]string{2*day - time.Second: "another account deleted or replaced refs/fleetbroker/market/20261120", 2 * day: "its retention is over"} {
		if err := notThere(gitrepo.ErrPruned, decided, 2*day, decided.Add(age)); !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want %q", age, err, want)
		}
	}
}
