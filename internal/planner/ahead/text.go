package ahead

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// isRoom reports whether an offer fails a requirement for want of capacity.
func isRoom(req string) bool {
	return strings.HasPrefix(req, match.ReqCapacity) || req == match.ReqBookedShare || req == match.ReqBookedMany
}

// nearText is what an offer is missing during the term, and when.
func (x *search) nearText(c *found) string {
	name, is := strings.CutPrefix(c.Fails, match.ReqCapacity)
	if !is || c.Fails == match.ReqNode {
		return c.Offer.Ref + " " + match.Words(c.Fails)
	}
	i := x.Names.Of(name)
	least, at := x.views.of(c.Offer).Least(x.from, x.to, c.Size)
	have := v1alpha1.AmountOf(max(least.At(i), 0)).Canonical(name)
	return fmt.Sprintf("%s has %s of %s %s free at %s", c.Offer.Ref, have, v1alpha1.AmountOf(c.Size.At(i)).Canonical(name), name, draft.Stamp(at))
}

// suggest finds another start at which the job's term would fit somewhere, the soonest.
func (x *search) suggest(near []found) {
	j := x.job
	if len(x.hints.try) >= tryShown {
		return
	}
	last := v1alpha1.TimeOf(x.Now.Add(x.Fleet.Bookings.Ahead()))
	var best v1alpha1.Time
	var where string
	for i := range near {
		c := &near[i]
		if !strings.HasPrefix(c.Fails, match.ReqCapacity) || c.Fails == match.ReqNode {
			continue
		}
		p := x.views.of(c.Offer)
		if !x.looks.Spare(int64(p.Tries())) {
			continue
		}
		at, ok := p.From(x.from, last, j.Seconds, c.Size)
		if ok && (best.IsZero() || at.Before(best.Time)) {
			best, where = at, c.Offer.Ref
		}
	}
	if best.IsZero() {
		return
	}
	if x.By(draft.RulesBookedWhole) {
		x.hints.starts = append(x.hints.starts, start{best, where})
		return
	}
	x.hints.offer(startText(best, where))
}

// bookedText is what a booking of a job comes to, in words.
func bookedText(j *draft.Job, from, to v1alpha1.Time) string {
	n := len(j.Booked)
	what := "1 replica"
	if n != 1 {
		what = strconv.Itoa(n) + " replicas"
	}
	return fmt.Sprintf("%s booked from %s to %s", what, draft.Stamp(from), draft.Stamp(to))
}
