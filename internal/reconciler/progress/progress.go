// Package progress says what a round is doing, and what takes too long: a round
// that fails says so at its end; one that hangs has no end yet.
//
// One goroutine makes rounds and notes (Doing, Answered); any may ask (Late,
// RemoteOut).
package progress

import (
	"fmt"
	"sync/atomic"
	"time"
)

// How long a step may take before it is late.
const (
	remoteLate = 30 * time.Second
	roundLate  = 2 * time.Minute
)

// Watch is what is known of the rounds. Make it with New.
type Watch struct {
	now  func() time.Time
	poll time.Duration

	step  atomic.Pointer[step] // what the round under way is doing
	ended atomic.Pointer[step] // since when none is
	// unanswered is since when the remote does not answer; nil while it does.
	unanswered atomic.Pointer[time.Time]
}

// step is what a round is doing, since when, and whether it waits for the remote.
type step struct {
	what   string
	since  time.Time
	remote bool
	outer  *step
}

// New watches rounds by a clock, of which there is one each poll at least. The
// remote counts as not answering until it has.
func New(now func() time.Time, poll time.Duration) *Watch {
	w := &Watch{now: now, poll: poll}
	start := now()
	w.unanswered.Store(&start)
	return w
}

// Doing notes what the round does, and whether it waits for the remote, until the
// function it returns is called.
func (w *Watch) Doing(what string, remote bool) (done func()) {
	before, began := w.step.Load(), w.now()
	w.step.Store(&step{what, began, remote, before})
	return func() {
		now := w.now()
		if before == nil {
			w.ended.Store(&step{since: now})
		} else if before.remote && !remote { // what passed is none of the remote's delay
			before = &step{before.what, before.since.Add(now.Sub(began)), true, before.outer}
		}
		w.step.Store(before)
	}
}

// Answered notes whether the remote answered what it was asked.
func (w *Watch) Answered(did bool) {
	switch {
	case did:
		w.unanswered.Store(nil)
	case w.unanswered.Load() == nil:
		now := w.now()
		w.unanswered.Store(&now)
	}
}

// RemoteOut is for how long the remote has not answered although it was asked;
// zero while it answers.
func (w *Watch) RemoteOut() time.Duration {
	now, out := w.now(), time.Duration(0)
	if since := w.unanswered.Load(); since != nil {
		out = now.Sub(*since)
	}
	if s := w.step.Load(); s != nil && s.remote {
		out = max(out, now.Sub(s.since))
	}
	return max(out, 0)
}

// Late says what takes too long, "" when nothing does.
func (w *Watch) Late() string {
	now := w.now()
	s := w.step.Load()
	if s == nil {
		if e := w.ended.Load(); e != nil && now.Sub(e.since) > w.poll+roundLate {
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
