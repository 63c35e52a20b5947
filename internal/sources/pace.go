package sources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

const (
	// judging is Options.Judging by default; rest is how much longer than its head was
	// looked at a source is left alone.
	judging = 2 * time.Minute
	rest    = 4
	// warm is how much less often a replica reads that does not decide, glance how often it
	// looks whether it does.
	warm   = 10
	glance = 2 * time.Second
)

// limit is what the server of a source asked for.
type limit struct {
	until time.Time
	why   string
	// times is how often it asked since it answered otherwise.
	times int
}

// holds reports whether it is to be left alone.
func (l *limit) holds(now time.Time) bool { return now.Before(l.until) }

// err says so, nil when it is not.
func (l *limit) err(now time.Time) error {
	if !l.holds(now) {
		return nil
	}
	return fmt.Errorf("%s: it limits requests, and is not asked before %s; see what else asks with the same account", l.why, l.until.UTC().Format(time.RFC3339))
}

// answered takes over what the server of a source answered.
func (k *Keeper) answered(source string, answer *http.Response) {
	k.mu.Lock()
	s, now := k.all[source], k.opts.Now()
	if s == nil {
		k.mu.Unlock()
		return
	}
	times := s.limit.times
	k.mu.Unlock()
	until, why := pushbudget.Asked(answer, now, times) // it may wait for the body
	if until.IsZero() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.limit = limit{until, why, times + 1}
}

// reading is when a source was read, and how long its head was looked at.
type reading struct {
	began, ended time.Time
	judged       time.Duration
}

// follow reads one source again and again.
func (k *Keeper) follow(ctx context.Context, s *source) {
	for ctx.Err() == nil {
		r := reading{began: time.Now()}
		r.judged = k.read(ctx, s)
		r.ended = time.Now()
		k.await(ctx, s, r)
	}
}

// await waits until a source is to be read again.
func (k *Keeper) await(ctx context.Context, s *source, last reading) {
	woken := false
	for ctx.Err() == nil {
		wait := time.Until(k.next(last, woken))
		if wait <= 0 {
			return
		}
		t := time.NewTimer(min(wait, glance))
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-s.woken:
			woken = true
		}
		t.Stop()
	}
}

// next is when a source is to be read again, by what is known now. woken: somebody said
// that it has news.
func (k *Keeper) next(last reading, woken bool) time.Time {
	at, rested := last.ended.Add(k.opts.Every), last.ended.Add(rest*last.judged)
	switch {
	case !k.opts.Decides():
		at = last.ended.Add(warm * k.opts.Every)
	case woken:
		at = last.began.Add(k.opts.Every)
	}
	if rested.After(at) {
		return rested
	}
	return at
}
