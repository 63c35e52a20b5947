package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/daemon"
)

// TestStoppable: what computes on is left after a moment, what waits for an answer gets
// longer, and an end in time is the part's own.
func TestStoppable(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		takes   time.Duration // after the context has ended
		waits   bool
		err     error
		ends    time.Duration
		left    bool
		stopped bool // the context ends
	}{
		"ends by itself":           {err: failed},
		"ends in time":             {takes: time.Second, err: failed, ends: time.Second, stopped: true},
		"computes on":              {takes: time.Hour, ends: daemon.StopComputing, left: true, stopped: true},
		"waits, and is answered":   {takes: 6 * time.Second, waits: true, err: failed, ends: 6 * time.Second, stopped: true},
		"waits, and is not":        {takes: time.Hour, waits: true, ends: daemon.StopWaiting, left: true, stopped: true},
		"waits for nothing at all": {takes: 6 * time.Second, ends: daemon.StopComputing, left: true, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				begun := time.Now()
				if c.stopped {
					stop()
				}
				var left atomic.Bool
				over := make(chan struct{})
				var log strings.Builder
				s := daemon.Stoppable{Name: "rounds", Waits: func() bool { return c.waits }, Left: func() { left.Store(true) }, Log: slog.New(slog.NewTextHandler(&log, nil))}
				err := s.Run(ctx, func(context.Context) error {
					defer close(over)
					<-time.After(c.takes)
					return c.err
				})
				took := time.Since(begun)
				want := c.err
				if c.left {
					want = nil
				}
				if !errors.Is(err, want) || took < c.ends || took > c.ends+time.Second || left.Load() != c.left || strings.Contains(log.String(), "part=rounds") != c.left {
					t.Errorf("%v after %s, left: %v, log %q; want %v after %s, left: %v", err, took, left.Load(), log.String(), want, c.ends, c.left)
				}
				<-over
			})
		})
	}
}

// TestStoppable_Panics: who runs a part sees its panic.
func TestStoppable_Panics(t *testing.T) {
	defer func() {
		if why, _ := recover().(string); !strings.Contains(why, "broken") {
			t.Errorf("recovered %q", why)
		}
	}()
	_ = daemon.Stoppable{Log: slog.New(slog.DiscardHandler)}.Run(t.Context(), func(context.Context) error { panic("broken") })
}
