package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// history is a fleet whose daemon has made so many commits: intents come, grow
// and go, contracts become active, end and leave the tree.
func history(t testing.TB, commits int) *fleet {
	s := &fleet{story.New(t, "ledger", nil, ""), t}
	for n := 0; ; n++ {
		switch name := fmt.Sprintf("job-%d", n); {
		case n%7 == 6:
			s.Ask(fmt.Sprintf("job-%d", n-1), 2, "")
		default:
			s.Ask(name, 1, "")
		}
		if n >= 9 {
			s.Push("Done", nil, fmt.Sprintf("intents/vision/job-%d.yaml", n-9-(n-9)%7/6))
		}
		s.Rest()
		if n%20 == 19 {
			log, err := s.Remote.Log("ledger")
			if err != nil {
				t.Fatal(err)
			}
			if len(log) >= commits {
				return s
			}
		}
	}
}

// BenchmarkVerify walks histories of the real daemon: 10,000 commits have to be
// verified within a minute.
func BenchmarkVerify(b *testing.B) {
	for _, commits := range []int{1_000, 3_000, 10_000} {
		b.Run(fmt.Sprintf("commits=%d", commits), func(b *testing.B) { benchmarkVerify(b, commits) })
	}
}

func benchmarkVerify(b *testing.B, commits int) {
	s := history(b, commits)
	b.ResetTimer()
	for b.Loop() {
		start := time.Now()
		rep, err := audit.Verify(b.Context(), s.Remote.Objects(), s.options())
		if err != nil {
			b.Fatal(err)
		}
		if len(rep.Violations) > 0 {
			b.Fatalf("%d violations, the first: %s", len(rep.Violations), rep.Violations[0])
		}
		b.ReportMetric(float64(rep.Commits), "commits")
		b.ReportMetric(time.Since(start).Seconds(), "s/history")
		b.ReportMetric(float64(rep.Contracts), "contracts")
	}
}

func TestALongHistory(t *testing.T) {
	s := history(t, 100)
	if rep := s.verify(); len(rep.Violations) > 0 || rep.Commits < 100 {
		t.Errorf("%d commits, violations: %v", rep.Commits, rep.Violations)
	}
}
