package clock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Bound is how far this machine's clock may be from a server's.
	Bound = 30 * time.Second
	// lately is for how long a server's answer counts.
	lately = 15 * time.Minute
)

// Check compares clocks. Make it with New.
type Check struct {
	now  func() time.Time
	mono func() time.Duration

	mu     sync.Mutex
	heard  map[string]answer
	settle moment // when the clock was last known to run on without a jump
}

// moment is one instant on both clocks.
type moment struct {
	wall time.Time
	mono time.Duration
}

// answer is a server's date: by how much this clock was ahead, and when.
type answer struct {
	at    moment
	ahead time.Duration
}

// New makes a check of the clock now by a monotonic clock, nil for the
// process's own.
func New(now func() time.Time, mono func() time.Duration) *Check {
	if mono == nil {
		start := time.Now()
		mono = func() time.Duration { return time.Since(start) }
	}
	c := &Check{now: now, mono: mono, heard: map[string]answer{}}
	c.settle = c.moment()
	return c
}

// moment is now. The wall clock's reading is stripped of its monotonic part,
// which would hide a jump.
func (c *Check) moment() moment { return moment{c.now().Round(0), c.mono()} }

// jumped is by how much the wall clock ran ahead of the monotonic one since.
func (m moment) jumped(since moment) time.Duration {
	return m.wall.Sub(since.wall) - (m.mono - since.mono)
}

// Heard takes what a server says the time is, in an answer that took so long. A
// date has whole seconds, and was written at any time while the answer was
// waited for.
func (c *Check) Heard(server string, date time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.moment()
	a := answer{at: at}
	switch asked := at.wall.Add(-took); {
	case date.After(at.wall):
		a.ahead = at.wall.Sub(date)
	case date.Add(time.Second).Before(asked):
		a.ahead = asked.Sub(date.Add(time.Second))
	}
	c.heard[server] = a
	if a.ahead.Abs() <= Bound {
		c.settle = at
	}
}

// Err says that the clock is wrong, or nil.
func (c *Check) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err(c.moment())
}

func (c *Check) err(at moment) error {
	var against []string
	for _, server := range slices.Sorted(maps.Keys(c.heard)) {
		a := c.heard[server]
		if at.mono-a.at.mono > lately {
			continue
		}
		ahead := a.ahead + at.jumped(a.at)
		if ahead.Abs() <= Bound {
			return nil
		}
		side := "ahead of"
		if ahead < 0 {
			side = "behind"
		}
		against = append(against, fmt.Sprintf("%s %s the %s", ahead.Abs().Round(time.Second), side, server))
	}
	if len(against) == 0 {
		return nil
	}
	return fmt.Errorf("this machine's clock is %s, more than %s: nothing is planned, because terms and money follow from the time; set the clock (NTP)", strings.Join(against, " and "), Bound)
}

// Jump is by how much the clock has jumped since a server last confirmed it, or
// since the start; below Bound it is zero.
func (c *Check) Jump() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by := c.moment().jumped(c.settle); by.Abs() > Bound {
		return by
	}
	return 0
}
