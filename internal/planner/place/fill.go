package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Placer places what intents want.
type Placer struct {
	draft.Draft
	Learned

	// Seats are what may still be moved within its batch.
	Seats []*Seat
	// warm are the jobs of warm pools, found on first use.
	warm []*draft.Job
	// infeasibleUnits remembers units that fit nowhere, and at how many touched offers that was found.
	infeasibleUnits map[string]int
	// Made counts the contracts that it made, on trial too.
	Made int64
	// Void reports whether no claimant needs a contract to give way any more.
	Void func(*v1alpha1.Contract) bool
	// Looked is called for each class in which a job is looked for, with its limits.
	Looked func(*draft.Job, *match.Class, *Limits)
	// LookedAhead is the same of a booking, with what an offer is during its term, and why.
	LookedAhead func(j *draft.Job, s *match.Class, l *Limits, look func(*match.Candidate) (match.Candidate, string))
}

// Learned is what a placer leaves to the next round's.
type Learned struct {
	Match    *match.Matcher
	Defaults quantity.Vector // of replicas that leave them open
	// Relatives are the intents with together or apart.
	Relatives map[[2]string]bool
	// Related are the intents that are together or apart; made on first use.
	Related *relations
}

// New is one in which nothing has happened.
func New(d draft.Draft, base Learned) Placer {
	return Placer{Draft: d, Learned: base}
}

// LookOnly does what a job would do and takes it back, but for what is decided of it
// and what it would still need: stage find changes nothing.
func (r *Placer) LookOnly(j *draft.Job, q Request) {
	m := r.Mark()
	r.Fill(j, q)
	tried := *j
	r.RollbackButDue(m)
	r.EditJob(j)
	j.Dec, j.Tasks, j.Open, j.Started = tried.Dec, tried.Tasks, tried.Open, v1alpha1.Time{}
}

// Fill does what can be done of a job's tasks and leaves the others. It reports whether
// that got anywhere.
func (r *Placer) Fill(j *draft.Job, q Request) (progressed bool) {
	before := r.Advances
	r.EditJob(j)
	j.Open = nil
	if !r.fillUnit(j, q) {
		r.fillTasks(j, q)
	}
	return r.Advances != before
}

// fillTasks is Fill for a job that is placed by itself.
func (r *Placer) fillTasks(j *draft.Job, q Request) {
	if r.IsNothing(j.Tasks) {
		j.Tasks = r.fillNew(j, q, j.Tasks)
		return
	}
	if whole, done := fillWhole(r, j, q); !done {
		fillEach(r, j, whole)
	}
}

// fillEach does what can be done of each of a job's tasks.
func fillEach(r *Placer, j *draft.Job, q Request) {
	var left, news []draft.Task
	for _, t := range j.Tasks {
		if t.Of > 0 {
			if f := r.fillPart(j, q, &t); f != nil {
				j.Open, left = append(j.Open, *f), append(left, t)
			}
			continue
		}
		switch t.Kind {
		case draft.TaskFresh:
			news = append(news, t)
		case draft.TaskRemake:
			if f := r.remake(j, q, t); f != nil {
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskAdapt:
			if f := r.adapt(j, q, t); f != nil {
				if !q.DryRun && r.goesFirst(j, t) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskFailover:
			if f := r.failOver(j, q, t); f != nil {
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskMove:
			if f := r.move(j, q, t); f != nil {
				if !slices.Contains(j.Live, t.Old) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskLeave:
			if f := r.giveWay(j, q, t); f != nil {
				if !slices.Contains(j.Live, t.Old) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		}
	}
	if len(news) > 0 {
		left = append(left, r.fillNew(j, q, news)...)
	}
	j.Tasks = left
}

// fillNew places replicas that have nothing: all or none for a gang, else as
// many as fit, the lowest numbers first. It returns those that are left.
func (r *Placer) fillNew(j *draft.Job, q Request, news []draft.Task) []draft.Task {
	if j.Gang() && !q.Loose {
		if f := r.attempts(j, q, news, nil, 0, len(q.alternatives(j))); f != nil {
			j.Open = append(j.Open, *f)
			return news
		}
		return nil
	}
	if left, done := fillShared(r, j, q, news); done {
		return left
	}
	return fillOneByOne(r, j, q, news)
}

// fillOneByOne places as many replicas that have nothing as fit, and returns the others.
func fillOneByOne(r *Placer, j *draft.Job, q Request, news []draft.Task) []draft.Task {
	for i := range news {
		if f := r.attempts(j, q, news[i:i+1], nil, 0, len(q.alternatives(j))); f != nil {
			if n := j.Replicas(); n > 1 {
				f.Text = fmt.Sprintf("%d of %d replicas fit; %s", j.Served(), n, f.Text)
			}
			j.Open = append(j.Open, *f)
			return news[i:]
		}
	}
	return nil
}

// attempts tries an intent's alternatives from..to-1 in order, each by score and, where
// money is what binds, again with the cheapest first. old, when given, is
// released in exchange. nil is success.
func (r *Placer) attempts(j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, from, to int) *draft.Failure {
	var first *draft.Failure
	if from >= to {
		return noAlternative(tasks[0])
	}
	if old == nil || q.nextToOld {
		q = r.For(j, q, len(tasks))
	} else {
		q = r.For(j, q, len(tasks), old)
	}
	for alt := from; alt < to; alt++ {
		f := attemptBy(r, j, q, tasks, old, alt)
		if f == nil {
			r.EditJob(j)
			j.Dec.Alternative = alt
			return nil
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// attemptIn tries one alternative where a request allows it, by score and then by price.
func attemptIn(r *Placer, j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, alt int) (first *draft.Failure) {
	for _, thrifty := range [...]bool{false, true} {
		if thrifty && !q.spending.Money.Limited {
			continue
		}
		x := attempt{Placer: r, job: j, how: q, alt: alt, tasks: tasks, old: old, thrifty: thrifty}
		f := x.run()
		if f != nil && old == nil {
			f = r.seatAll(j, q, alt, tasks, thrifty, f)
		}
		if f == nil {
			return nil
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// PlacedLine is a new contract as the plan shows it.
func (r *Placer) PlacedLine(c *v1alpha1.Contract, s *match.Class, at *match.Candidate) draft.ContractLine {
	line := r.Line(c, draft.Place)
	if now := r.Books.HourlyAt(c.Spec.Price, r.Now); now.Cmp(line.Hourly) != 0 {
		line.HourlyNow = &now
	}
	line.Unpriced = r.Match.Unpriced(at.Offer, at.Quote.Class, at.Size)
	if asked := s.Request.Asked(at.Offer); !asked.Equal(at.Size) {
		line.Asked = inventory.Slice(r.Names, asked, at.Offer.Flavor)
	}
	return line
}

// LimitsFor are the limits of one more of a request's replicas, of which others follow
// and those before it spent so much.
func (r *Placer) LimitsFor(j *draft.Job, q Request, s *match.Class, spent match.SpendLimits, others int64) *Limits {
	l := r.LimitsOf(j.Tenant, q, j.Seconds)
	l.life = j.Seconds
	l.Only, l.avoid, l.bars, l.booked = q.Only, j.Avoid, r.BarsOf(j), untilBookedFor(r, j, q)
	axis(r).Narrow(&l.Limits, r.Now, j.End)
	reserve := quantity.Micro(0)
	if s.Cheapest < quantity.Unlimited {
		reserve = s.Cheapest * quantity.Micro(others)
	}
	take := func(limit, gone quantity.Micro) quantity.Micro {
		if limit >= quantity.Unlimited {
			return limit
		}
		return limit - gone
	}
	money := r.spending(j, q).Money
	l.own = match.SpendLimits{
		Hourly:     take(money.Hourly, spent.Hourly+reserve),
		HourlySpot: take(money.HourlySpot, spent.Hourly+reserve),
		Total:      take(money.Total, spent.Total+reserve.ForSeconds(j.Seconds)),
	}
	return l
}
