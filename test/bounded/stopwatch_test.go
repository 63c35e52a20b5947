package bounded

import (
	"testing"
	"time"
)

func TestStopwatch(t *testing.T) {
	for name, c := range map[string]struct {
		took, waited time.Duration
		late         bool
	}{
		"quick":                    {took: 900 * time.Millisecond},
		"slow, and nothing waited": {took: 2 * time.Second, late: true},
		"slow, and others ran":     {took: 2 * time.Second, waited: 1900 * time.Millisecond},
		"slow beyond what others":  {took: 4 * time.Second, waited: 2 * time.Second, late: true},
		"too slow for any machine": {took: 2 * time.Minute, waited: 2 * time.Minute, late: true},
	} {
		reads := []time.Duration{time.Hour, time.Hour + c.waited}
		s := startStopwatch(func() time.Duration {
			now := reads[0]
			reads = reads[1:]
			return now
		})
		s.began = s.began.Add(-c.took)
		if err := s.Late(time.Second, time.Minute); (err != nil) != c.late {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPressure(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"some avg10=87.47 avg60=94.52 avg300=96.12 total=40086999671\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 40086999671 * time.Microsecond,
		"": 0, "some": 0, "some total=x\n": 0, "full avg10=0.00 total=7\n": 0,
	} {
		if got := pressure(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
