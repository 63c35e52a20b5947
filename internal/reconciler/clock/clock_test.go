package clock

import (
	"strings"
	"testing"
	"time"
)

// clocks are a wall clock and a monotonic one.
type clocks struct {
	wall time.Time
	mono time.Duration
}

func (c *clocks) pass(d time.Duration) { c.wall, c.mono = c.wall.Add(d), c.mono+d }

func newClocks() (*clocks, *Check) {
	c := &clocks{wall: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	return c, New(func() time.Time { return c.wall }, func() time.Duration { return c.mono })
}

func TestCheck_FindsJumpsOfADay(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour, 33 * time.Second, -33 * time.Second} {
		c, check := newClocks()
		truth := c.wall
		check.Heard("git server", truth, time.Second)
		check.Heard("API server", truth, time.Second)
		c.pass(time.Minute)
		if err := check.Err(); err != nil || check.Jump() != 0 {
			t.Errorf("before the jump: %v, %s", err, check.Jump())
		}
		c.wall = c.wall.Add(by)
		if err := check.Err(); err == nil || !strings.Contains(err.Error(), "API server and ") || check.Jump() != by {
			t.Errorf("jump by %s, before anybody answered: %v, %s", by, err, check.Jump())
		}
		check.Heard("git server", truth.Add(time.Minute), 0)
		if check.Err() == nil || check.Jump() != by {
			t.Errorf("jump by %s, a server contradicts: %v, %s", by, check.Err(), check.Jump())
		}
		c.wall = c.wall.Add(-by)
		if err := check.Err(); err != nil || check.Jump() != 0 {
			t.Errorf("set right again: %v, %s", err, check.Jump())
		}
	}
}

func TestCheck_OneServerThatAgreesIsEnough(t *testing.T) {
	c, check := newClocks()
	check.Heard("git server", c.wall.Add(-time.Hour), 0)
	if err := check.Err(); err == nil || !strings.Contains(err.Error(), "59m59s ahead of the git server") {
		t.Errorf("the only server: %v", err)
	}
	check.Heard("API server", c.wall.Add(2*time.Second), 0)
	if err := check.Err(); err != nil {
		t.Errorf("one agrees: %v", err)
	}
	c.pass(lately + time.Second)
	if err := check.Err(); err != nil {
		t.Errorf("answers of long ago: %v", err)
	}
}

func TestCheck_AJumpIsConfirmedByAServer(t *testing.T) {
	c, check := newClocks()
	c.wall = c.wall.Add(time.Hour) // NTP at the start, or a machine that was suspended
	if check.Err() != nil || check.Jump() != time.Hour {
		t.Errorf("nobody answered: %v, %s", check.Err(), check.Jump())
	}
	check.Heard("git server", c.wall.Add(-20*time.Second), 25*time.Second)
	if check.Err() != nil || check.Jump() != 0 {
		t.Errorf("confirmed: %v, %s", check.Err(), check.Jump())
	}
}
