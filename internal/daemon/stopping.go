package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// How long what a daemon is made of has to end after it was told to stop: what only computes,
// and what waits for an answer of the git server, which may have taken a push already.
const (
	StopComputing = 2 * time.Second
	StopWaiting   = 15 * time.Second
)

// Stoppable is a part of a daemon that may compute for long without asking whether it is to
// stop: a plan, a reading of 100,000 files, a verification. Nothing of that is acted on
// before it is through, and then only by calls that refuse a context that has ended.
type Stoppable struct {
	// Name is for the log.
	Name string
	// Waits reports whether the part waits for another's answer just now; nil for never.
	Waits func() bool
	// Left is called, if set, when the part is left computing.
	Left func()
	Log  *slog.Logger
}

// Run runs a part to its end. After the context has ended it waits StopComputing for it, and
// StopWaiting while it waits for an answer; then it leaves the part computing and returns
// nil: the process is about to end. A panic of the part is one of the caller.
func (s Stoppable) Run(ctx context.Context, part func(context.Context) error) error {
	type end struct {
		err   error
		broke any
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			if why := recover(); why != nil {
				e.broke = fmt.Sprintf("%v\n%s", why, debug.Stack())
			}
			ended <- e
		}()
		e.err = part(ctx)
	}()
	is := func(e end) error {
		if e.broke != nil {
			panic(e.broke)
		}
		return e.err
	}
	select {
	case e := <-ended:
		return is(e)
	case <-ctx.Done():
	}
	told := time.Now()
	tick := time.NewTicker(StopComputing / 10)
	defer tick.Stop()
	for {
		select {
		case e := <-ended:
			return is(e)
		case <-tick.C:
		}
		if since := time.Since(told); since < StopComputing || since < StopWaiting && s.Waits != nil && s.Waits() {
			continue
		}
		if s.Left != nil {
			s.Left()
		}
		s.Log.Warn("stopping: what is computed is left unfinished", "part", s.Name)
		return nil
	}
}

// Close runs what ends a daemon, which has as long as a part that was told to stop.
func (s Stoppable) Close(end func()) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Run(over, func(context.Context) error { end(); return nil })
}
