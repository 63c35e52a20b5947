package ahead

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// What people are shown of replicas that find no places together. Every change that is
// suggested was tried: with it alone they would be booked.

// explain finds what is near, and what would do, for replicas that found no places by an
// alternative.
func (x *search) explain(alt int, replicas []int32, f *draft.Failure) {
	if !x.By(draft.RulesBookedWhole) || x.looks.Ended() {
		return
	}
	switch {
	case f.Code == lifecycle.CodeIntentBudget:
		x.explainMoney(alt, replicas)
	case f.Done > 0:
		x.explainRoom(alt, replicas, f.Done)
	default:
		x.explainStart(replicas)
	}
}

// startsTried bounds how many other starts are tried.
const startsTried = 3

// explainStart finds another start for replicas of which none has room: where there is room
// something else may keep them out then, a quota or a budget.
func (x *search) explainStart(replicas []int32) {
	list := x.hints.starts
	slices.SortStableFunc(list, func(a, b start) int { return a.at.Compare(b.at.Time) })
	list = slices.CompactFunc(list, func(a, b start) bool { return a.at == b.at })
	for _, s := range list[:min(len(list), startsTried)] {
		for alt := range x.job.Alternatives() {
			if x.would(alt, replicas, s.at, x.job, nil) {
				x.hints.offer(startText(s.at, s.where))
				return
			}
		}
	}
}

// would reports whether replicas would be booked by an alternative, from an instant on and
// for a job that may be another, then where it costs the least; it takes back what it tried.
// then looks at what they are.
func (x *search) would(alt int, replicas []int32, from v1alpha1.Time, j *draft.Job, then func(*search)) bool {
	// Of each replica its own start comes to those that the next one looks at, and what it
	// may share is tried more than once.
	paid := 3 * (x.looksAt(x.ClassFor(j, x.how, alt)) + 2) * int64(len(replicas)+1)
	if !x.looks.Spare(paid) {
		return false
	}
	m, was := x.Mark(), x.views.moment()
	defer x.views.takeBack(was, func() { x.Rollback(m) })
	y := *x
	y.job, y.from, y.hints = j, from, &hints{}
	if j != x.job {
		y.how, y.cheap = x.For(j, place.Request{}, len(replicas)), true
	}
	if y.to = x.to; !x.to.IsZero() {
		y.to = v1alpha1.TimeOf(from.Add(x.to.Sub(x.from.Time)))
	}
	if x.looks != nil {
		y.looks = &looks.Looks{Spent: map[string]int64{x.looks.Of: 0}, Of: x.looks.Of, Most: paid, Trial: true}
	}
	if y.by(alt, replicas) != nil {
		return false
	}
	if then != nil {
		then(&y)
	}
	return true
}

// explainRoom is for replicas of which so many fit.
func (x *search) explainRoom(alt int, replicas []int32, fit int) {
	n := len(replicas)
	s := x.ClassFor(x.job, x.how, alt)
	if !x.looks.Spare(x.looksAt(s)) {
		return
	}
	l := place.LimitsAhead(x.Placer, x.job, x.how, s, x.spentOn(x.beside), int64(n-1), 0, x.beside, x.views.limits(x.job.Tenant, x.from, x.to))
	type room struct {
		c     found
		times int
	}
	var list []room
	for i := range s.Candidates {
		if c := x.look(s, l, &s.Candidates[i]); c.Fails == "" {
			list = append(list, room{c, x.times(s, &c.Candidate, n)})
		}
	}
	slices.SortStableFunc(list, func(a, b room) int { return cmp.Compare(b.times, a.times) })
	for i := range list {
		x.hints.add(fmt.Sprintf("%s has room for %d of %d replicas during the term", list[i].c.Offer.Ref, list[i].times, n))
	}
	if x.would(alt, replicas[:fit], x.from, x.job, nil) {
		x.hints.offer(fmt.Sprintf("replicas: %d", len(x.beside)+fit))
	}
	last := v1alpha1.TimeOf(x.Now.Add(x.Fleet.Bookings.Ahead()))
	var soonest v1alpha1.Time
	var where string
	for i := range list {
		c := &list[i].c
		p := x.views.of(c.Offer)
		if !x.looks.Spare(int64(p.Tries())) {
			break
		}
		at, ok := p.From(x.from, last, x.job.Seconds, together(c.Size, n))
		if ok && (soonest.IsZero() || at.Before(soonest.Time)) {
			soonest, where = at, c.Offer.Ref
		}
	}
	if soonest.After(x.from.Time) && x.would(alt, replicas, soonest, x.job, nil) {
		x.hints.offer(startText(soonest, where))
	}
}

// together is n of a size.
func together(size quantity.Vector, n int) quantity.Vector {
	out := size.Clone()
	for i := range out {
		out[i] *= int64(n)
	}
	return out
}

// explainMoney is for replicas that cost more than the intent may: what they would cost is
// near, and a budget that allows it would do.
func (x *search) explainMoney(alt int, replicas []int32) {
	own := x.job.In.Spec.Budget
	if own == nil || own.Currency != "" && own.Currency != x.Books.Currency {
		return // what is in another currency is not ours to rewrite
	}
	spec := x.job.In.Spec
	spec.Budget = nil
	j := x.job.Copy(nil)
	j.In, j.Alts = x.job.Asking(spec), nil
	x.would(alt, replicas, x.from, j, func(y *search) {
		hourly, total := y.spent.Hourly, y.spent.Total
		x.hints.add(fmt.Sprintf("%s costs %s %s/h, %s in all", y.placed[0].Spec.Provider+"/"+y.placed[0].Spec.Flavor, hourly.Text(), x.Books.Currency, total.Text()))
		perGPU := quantity.Micro(0)
		for _, c := range y.placed {
			if n := quantity.Micro(gpusOf(c)); n > 0 {
				perGPU = max(perGPU, (x.Accounts.Money.Most(c)+n-1)/n)
			}
		}
		var change []string
		for _, b := range []struct {
			name string
			had  *v1alpha1.Decimal
			need quantity.Micro
		}{{"maxHourly", own.MaxHourly, hourly}, {"maxHourlyPerGPU", own.MaxHourlyPerGPU, perGPU}, {"maxTotal", own.MaxTotal, total}} {
			if b.had != nil && quantity.Micro(b.had.Micro()) < b.need {
				change = append(change, b.name+": \""+b.need.RoundedUp().Text()+"\"")
			}
		}
		switch len(change) {
		case 0:
		case 1:
			x.hints.offer("budget." + change[0])
		default:
			x.hints.offer("budget: {" + strings.Join(change, ", ") + "}")
		}
	})
}

// gpusOf are the whole GPUs that a contract books, 0 where it books none or parts.
func gpusOf(c *v1alpha1.Contract) int64 {
	if c.Spec.GPUs == nil {
		return 0
	}
	return c.Spec.GPUs.Count
}
