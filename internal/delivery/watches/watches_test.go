package watches_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/delivery/watches"
)

// store is a cache as an informer shows it.
type store struct {
	synced  bool
	version string
}

func (s *store) HasSynced() bool                 { return s.synced }
func (s *store) LastSyncResourceVersion() string { return s.version }

// A cluster that never sends the end of a list is named after minutes: until then there is
// nothing to say.
func TestStale_WhatIsNeverReadWhole(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s, c := &watches.State{}, &store{}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, watches.Reading}, {2 * time.Minute, watches.Reading}, {2 * time.Minute, "not sent all that is there since 2026-11-20T12:00:00Z"}} {
		now = now.Add(step.after)
		if why := s.Stale("nodes", c, now); !strings.Contains(why, step.want) {
			t.Errorf("at %s: %q, want %q", now, why, step.want)
		}
	}
	c.synced = true
	if why := s.Stale("nodes", c, now); why != "" {
		t.Errorf("read whole: %s", why)
	}
}

// A watch that broke counts when it does not come back in time, from when it broke first; at
// once where nothing was read by it. What comes back shows another version.
func TestStale_ABrokenWatch(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s, c := &watches.State{}, &store{synced: true, version: "7"}
	for range 3 { // each try breaks
		s.Broke("nodes", "7", errors.New("connection refused"), now)
		if why := s.Stale("nodes", c, now); why != "" {
			t.Errorf("at %s: %s", now, why)
		}
		now = now.Add(watches.Patience / 2)
	}
	if why := s.Stale("nodes", c, now); why != "list and watch nodes: connection refused" {
		t.Errorf("after %s: %q", 3*watches.Patience/2, why)
	}
	if why := s.Stale("pods", c, now); why != "" {
		t.Errorf("another watch: %s", why)
	}
	c.version = "8"
	if why := s.Stale("nodes", c, now); why != "" {
		t.Errorf("it came back: %s", why)
	}
	unread := &store{}
	s.Broke("pods", "", errors.New("forbidden"), now)
	if why := s.Stale("pods", unread, now); why != "list and watch pods: forbidden" {
		t.Errorf("nothing was read: %q", why)
	}
}
