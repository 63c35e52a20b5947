package trouble

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
)

// TestTroubleIsLoggedOnce: the same reason is logged once and after a while again,
// whatever port our end had; that it is over, too.
func TestTroubleIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	tr := Log{To: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }}
	for i := range 120 { // an hour
		tr.Failed(t.Context(), fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:443: reset", 40_000+i), 30*time.Second)
		now = now.Add(30 * time.Second)
	}
	logtest.Wants(t, log.String(), "FB1141")
	if n := strings.Count(log.String(), "round failed"); n != 6 {
		t.Errorf("an hour of one trouble is %d lines, want 6:\n%.2000s", n, log.String())
	}
	log.Reset()
	tr.Failed(t.Context(), errors.New("another"), time.Second)
	tr.Over(121)
	tr.Over(0)
	tr.Failed(t.Context(), errors.New("another"), time.Second)
	if got := log.String(); strings.Count(got, "another") != 2 || strings.Count(got, "rounds succeed again") != 1 {
		t.Errorf("got %s", got)
	}
}
