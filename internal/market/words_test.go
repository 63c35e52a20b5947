package market

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Two reports are two when they are apart: one is told twice where another replica took
// it, and one may have been under way when the first came.
func TestHeardTwice(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := start
	m := New(Options{Now: func() time.Time { return now }})
	g := wire.Generation{Epoch: 1, N: 1}
	if !m.HeardTwice("paris").IsZero() {
		t.Error("nobody was heard, and somebody twice")
	}
	for _, step := range []struct {
		at   time.Duration
		late time.Duration
		want time.Duration // since the start, of the earlier of two; below zero: none
	}{
		{0, 0, -1},
		{4 * time.Second, 0, -1},
		{20 * time.Second, 0, 0},
		{23 * time.Second, 0, 0},
		{84 * time.Second, 45 * time.Second, 0}, // may have been given at 39 s
		{85 * time.Second, 0, 20 * time.Second},
		{150 * time.Second, 45 * time.Second, 85 * time.Second},
		{160 * time.Second, 45 * time.Second, 85 * time.Second}, // told again by a heartbeat
	} {
		now = start.Add(step.at)
		if err := m.Told("paris", g, nil, true, step.late); err != nil {
			t.Fatal(err)
		}
		got := m.HeardTwice("paris")
		if step.want < 0 && !got.IsZero() || step.want >= 0 && !got.Equal(start.Add(step.want)) {
			t.Errorf("at %s: heard twice since %s, want %s after the start", step.at, got, step.want)
		}
	}
	now = start.Add(100 * time.Second) // the clock went back by a minute
	m.Snapshot()
	if got := m.HeardTwice("paris"); got.After(now) {
		t.Errorf("heard twice in the future: %s", got)
	}
	m.Listen()
	if !m.HeardTwice("paris").IsZero() {
		t.Error("nobody was heard since the market listens again")
	}
}

// What an agent had carried out is of its newest list, and of agents alone.
func TestHonoured(t *testing.T) {
	m := New(Options{})
	m.SetHonoured("paris", 7)
	if got := m.Honoured("paris"); got != 0 {
		t.Errorf("of a provider that never reported: %d", got)
	}
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, nil, true); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{7, 9, 0} {
		if m.SetHonoured("paris", n); m.Honoured("paris") != n {
			t.Errorf("got %d, want %d", m.Honoured("paris"), n)
		}
	}
}
