package planning

import (
	"iter"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// steps times the steps of one plan. A step that is begun more than once counts
// in sum.
type steps struct {
	now   func() time.Time
	at    planner.Step
	since time.Time // zero: no plan is made
	took  [planner.Steps]time.Duration
}

func (s *steps) begin(next planner.Step) {
	now := s.now()
	if !s.since.IsZero() {
		s.took[s.at] += max(now.Sub(s.since), 0)
	}
	s.at, s.since = next, now
}

// end is what each step took, in their order.
func (s *steps) end() iter.Seq2[planner.Step, time.Duration] {
	s.begin(s.at)
	took := s.took
	s.since, s.took = time.Time{}, [planner.Steps]time.Duration{}
	return func(yield func(planner.Step, time.Duration) bool) {
		for step, d := range took {
			if !yield(planner.Step(step), d) {
				return
			}
		}
	}
}
