package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Rolling back to a mark brings back everything, whatever was done since, alone
// and within other marks; and what is said to have changed since is the difference of
// what offers had free then and have now.
func TestRollbackIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newBooking(t)
		for range rapid.IntRange(2, 10).Draw(t, "events") {
			s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{1, 60, 3600}).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "planned") {
				s.Round()
			}
		}
		trial := planner.NewTrial(s.W)
		do := func() {
			trial.Do(rapid.SampledFrom(planner.Operations).Draw(t, "operation"), rapid.IntRange(0, 20).Draw(t, "of"))
		}
		var nest func(depth int)
		nest = func(depth int) {
			mark, was, free := trial.Mark(), trial.State(), trial.Free()
			for range rapid.IntRange(1, 4).Draw(t, "operations") {
				if depth > 0 && rapid.IntRange(0, 2).Draw(t, "nested") == 0 {
					nest(depth - 1)
					continue
				}
				do()
			}
			if why := trial.Unexplained(mark, free); why != "" {
				t.Fatalf("what changed since the mark is not what was taken: %s", why)
			}
			if rapid.IntRange(0, 3).Draw(t, "kept") == 0 {
				trial.Keep(mark)
				return
			}
			trial.Rollback(mark)
			if now := trial.State(); now != was {
				t.Fatalf("%s", difference(now, was))
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "for good") {
				do()
			} else {
				nest(3)
			}
		}
	})
}

// Rolling back takes as long as what changed since, however deep it lies.
func TestRollbackOfTenThousandNestedMarks(t *testing.T) {
	const depth = 10_000
	trial := planner.NewTrial(paris().W)
	was, marks := trial.State(), make([]draft.Mark, depth)
	for i := range marks {
		marks[i] = trial.Mark()
		trial.Do("shift", i)
	}
	before := processor(t)
	for i := depth - 1; i >= 0; i-- {
		trial.Rollback(marks[i])
	}
	if took := processor(t) - before; took > 1 {
		t.Errorf("taking back %d marks took %.2f s", depth, took)
	}
	if now := trial.State(); now != was {
		t.Error(difference(now, was))
	}
}

// difference is the first line in which two states differ.
func difference(now, was string) string {
	of := strings.Split(was, "\n")
	job := ""
	for i, line := range strings.Split(now, "\n") {
		if strings.HasPrefix(line, "job ") {
			job = line
		}
		if i >= len(of) || line != of[i] {
			return fmt.Sprintf("%s\n%s\nwas\n%s", job, line, of[min(i, len(of)-1)])
		}
	}
	return "lines are missing"
}
