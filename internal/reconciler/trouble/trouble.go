// Package trouble logs why rounds fail: each reason once, and again after a while. A
// night without a git server is a page of the log and not all of it.
//
// Caller: reconciler, in the goroutine of Run. A Log is not safe for concurrent use.
package trouble

import (
	"context"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs"
)

// remindAfter is how long the same trouble is not logged again.
const remindAfter = 10 * time.Minute

// Log is where they are logged, by a clock.
type Log struct {
	To  *slog.Logger
	Now func() time.Time

	said string
	at   time.Time
}

// Failed logs that a round failed and when the next is tried; ctx is the round's.
func (t *Log) Failed(ctx context.Context, err error, wait time.Duration) {
	level, now := slog.LevelDebug, t.Now()
	if text := logs.Cause(err); text != t.said || now.Sub(t.at).Abs() >= remindAfter {
		level, t.said, t.at = slog.LevelError, text, now
	}
	t.To.Log(ctx, level, "round failed", "error", err, "retryIn", wait)
}

// Over logs that rounds succeed, after so many that did not.
func (t *Log) Over(failures int) {
	if failures > 0 && t.said != "" {
		t.To.Info("rounds succeed again", "failed", failures)
	}
	t.said = ""
}
