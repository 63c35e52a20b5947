package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answers, refuses, hangs = 0, 1, 2
		var server atomic.Int32
		s := &sight{log: quiet, ask: func(ctx context.Context) error {
			switch server.Load() {
			case refuses:
				return errors.New("connection refused")
			case hangs:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var changes atomic.Int32
		done := make(chan struct{})
		go func() { defer close(done); s.watch(ctx, func() { changes.Add(1) }) }()
		steps := []struct {
			what    string
			server  int32
			ticks   int
			blind   bool
			changes int32
		}{
			{"it answers", answers, 3, false, 0},
			{"one miss", refuses, 1, false, 0},
			{"an answer between", answers, 1, false, 0},
			{"a miss again", refuses, 1, false, 0},
			{"two misses", refuses, 1, true, 1},
			{"many misses", refuses, 5, true, 1},
			{"it answers again", answers, 1, false, 2},
			{"it hangs", hangs, 3, true, 3},
		}
		for _, step := range steps {
			server.Store(step.server)
			for range step.ticks {
				pass(sightInterval)
			}
			if s.lost() != step.blind || changes.Load() != step.changes {
				t.Errorf("%s: blind %v after %d changes, want %v after %d", step.what, s.lost(), changes.Load(), step.blind, step.changes)
			}
		}
		cancel()
		<-done
	})
}
