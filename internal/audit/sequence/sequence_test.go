package sequence_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
)

func TestNumber_FallsAfterItsTime(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	var n sequence.Number
	for i, c := range []struct {
		is, round, made int
		falls           bool
	}{
		{0, 0, 0, false},
		{2, 1, 1, false},
		{3, 2, 2, false},
		{2, 1, 4, false},   // its round began before 3 was there
		{2, 12, 12, false}, // within the slack
		{2, 13, 13, true},
		{0, 20, 20, true},
		{3, 21, 21, false},
		{4, 22, 22, false},
	} {
		if most, since, falls := n.Falls(c.is, at(c.round), at(c.made), 10*time.Minute); falls != c.falls || falls && (most != 3 || !since.Equal(at(2))) {
			t.Errorf("%d: falls %t from %d since %s, want %t", i, falls, most, since, c.falls)
		}
	}
}

func TestSpans(t *testing.T) {
	for want, list := range map[string][]uint64{
		"": nil, "number 7": {7}, "numbers 1 to 3": {3, 1, 2}, "number 1, numbers 4 to 5": {5, 1, 4, 4},
	} {
		if got := sequence.Spans(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}
