package reconciler

import (
	"fmt"
	"time"
)

// How long a round may take before the daemon says that it is not ready. A round
// that fails says so at its end; one that hangs has no end yet.
const (
	remoteLate = 30 * time.Second
	roundLate  = 2 * time.Minute
)

// step is what a round is doing, since when, and whether it waits for the remote.
type step struct {
	what   string
	since  time.Time
	remote bool
	outer  *step
}

// doing notes what the round does until the function it returns is called. Only
// the goroutine of Run calls it.
func (r *Reconciler) doing(what string, remote bool) (done func()) {
	before := r.step.Load()
	r.step.Store(&step{what, r.opts.Now(), remote, before})
	return func() {
		if before == nil {
			r.ended.Store(&step{since: r.opts.Now()})
		}
		r.step.Store(before)
	}
}

// late says what takes too long, "" when nothing does. Safe for any goroutine.
func (r *Reconciler) late() string {
	now := r.opts.Now()
	s := r.step.Load()
	if s == nil {
		if e := r.ended.Load(); e != nil && now.Sub(e.since) > r.opts.Poll+roundLate {
			return fmt.Sprintf("no round for %s", now.Sub(e.since).Round(time.Second))
		}
		return ""
	}
	if took := now.Sub(s.since); s.remote && took > remoteLate {
		return fmt.Sprintf("the remote has not answered for %s: %s", took.Round(time.Second), s.what)
	}
	whole := s
	for whole.outer != nil {
		whole = whole.outer
	}
	if took := now.Sub(whole.since); took > roundLate {
		return fmt.Sprintf("a round has been under way for %s: %s", took.Round(time.Second), s.what)
	}
	return ""
}
