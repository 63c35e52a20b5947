package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/seating"
)

// seatings are how many places of a whole gang that were found by counts (package seating) are
// tried in earnest.
const seatings = 4

// seatingOf is the search for a job's replicas, with what has room for any.
func (r *Placer) seatingOf(j *draft.Job, q Request, alt int, tasks []draft.Task, thrifty bool) *seating.Search {
	s := r.ClassFor(j, q, alt)
	l := r.LimitsFor(j, q, s, match.SpendLimits{}, int64(len(tasks)-1))
	rules := r.rulesFor(j, q, s, tasks[0].Replica, nil)
	x := seating.New(rules.Spread)
	rules.Spread, l.Rules = nil, rules // one that is too full now may not be, later
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Fails != "" || l.Rejects(c) != "" {
			continue
		}
		x.Add(c, thrifty, func(has int) int { return layout.RoomFor(r.Match, s.Request, c, len(tasks)-has, nil) })
	}
	x.Sort(thrifty)
	return x
}
