package ahead

import (
	"testing"
	"time"
)

func TestClaims_SetBack(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := New()
	for _, s := range []struct {
		why    string
		at     time.Duration
		claims bool
		want   bool
	}{
		{"the first word", 0, true, false},
		{"it goes on", 90 * time.Second, true, false},
		{"and on", 3 * time.Minute, true, false},
		{"nearly long enough", SetBack - time.Second, true, false},
		{"long enough", SetBack, true, true},
		{"still", SetBack + time.Minute, true, true},
		{"it was found", SetBack + 2*time.Minute, false, false},
		{"a later one begins again", SetBack + 3*time.Minute, true, false},
		{"so does one that was silent", 2*SetBack + 3*time.Minute, true, false},
	} {
		if got := c.SetBack("rome", s.claims, begin.Add(s.at)); got != s.want {
			t.Errorf("%s: %t, want %t", s.why, got, s.want)
		}
		if c.SetBack("oslo", true, begin) {
			t.Errorf("%s: another cluster's claim counts", s.why)
		}
	}
	if c.SetBack("bonn", true, begin.Add(time.Hour)); len(c.open) != 1 {
		t.Errorf("%d claims are remembered, want 1", len(c.open))
	}
}
