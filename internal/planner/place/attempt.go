package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// attempt is one try to place tasks of a job by one alternative, all of them or none.
type attempt struct {
	*Placer
	job   *draft.Job
	how   Request
	alt   int
	tasks []draft.Task
	// old, when given, is released in exchange.
	old *v1alpha1.Contract
	// thrifty: the cheapest offer first, in place of that with the best score.
	thrifty bool
	// seats, when given, are the domains that each task must take (seating.go).
	seats [][]string

	// placed are the contracts so far; each has a line, and what it was placed by and
	// for. spent is what they cost.
	placed []*v1alpha1.Contract
	lines  []draft.ContractLine
	taken  []seated
	spent  match.SpendLimits
}

// seated is what a contract was placed by, nothing for a part of a replica, and for
// which of the tasks.
type seated struct {
	class *match.Class
	at    *match.Candidate
	task  int
	part  *SeatPart
}

// run places every task, or nothing at all.
func (x *attempt) run() *draft.Failure {
	m := x.Mark()
	if x.old != nil && !x.how.nextToOld {
		x.OffAccount(x.old)
	}
	n := len(x.tasks) // one, nearly always
	x.placed, x.taken, x.lines = make([]*v1alpha1.Contract, 0, n), make([]seated, 0, n), make([]draft.ContractLine, 0, 1)
	for i := range x.tasks {
		if f := x.one(i); f != nil {
			if x.RollbackButDue(m); f.Figures != "" && i > 0 && x.By(draft.RulesAgainAll) { // not with what was tried
				now := x.Accounts.Text(x.job.Tenant, f.Limit)
				f.Text, f.Figures = strings.Replace(f.Text, f.Figures, now, 1), now
			}
			return f
		}
	}
	x.book()
	if x.old != nil && !x.how.nextToOld {
		x.OnAccount(x.old) // its release takes it off for good
	}
	x.Keep(m)
	return nil
}

// one places the i-th task.
func (x *attempt) one(i int) *draft.Failure {
	j, t, others := x.job, x.tasks[i], int64(len(x.tasks)-i-1)
	s := x.ClassFor(j, x.how, x.alt)
	l := x.LimitsFor(j, x.how, s, x.spent, others)
	l.Rules = x.rulesFor(j, x.how, s, t.Replica, x.placed, x.old).Seated(x.seats, i)
	if !x.how.Unasked {
		x.Looked(j, s, l)
	}
	best, next := l.Best(s, x.thrifty)
	if !x.thrifty && !x.how.plain && (x.how.looks == nil || len(j.Tasks) < 2) { // looks suffice for one search
		best, next = x.Scarce.For(s.Request).Choose(s, l.admits, best, next)
	}
	if x.how.asked && best != nil && best.Unasked {
		best, next = nil, nil // the others are, too
	}
	ready := takeovers{x.Placer, j, x.how, s, l}
	warm := ready.best(best)
	if best == nil && warm == nil && (!splits(j, x.how, t) || !x.divide(i, others)) {
		return x.failure(j, s, l, t, i, len(x.tasks))
	}
	switch {
	case warm != nil:
		if best != nil {
			next = append([]*match.Candidate{best}, next...)
		}
		x.add(i, ready.take(warm, next[:min(len(next), 3)], t), s, &warm.cand)
	case best != nil:
		c := x.NewContract(j, x.how, s, best, next, t.Replica)
		x.Put(nil, c)
		x.add(i, c, s, best)
	}
	return nil
}

// divide puts the i-th task's replica together from parts, if it can.
func (x *attempt) divide(i int, others int64) bool {
	p := x.partitionOf(x.job, x.how, x.alt, x.tasks[i])
	p.thrifty, p.placed, p.spent, p.others = x.thrifty, x.placed, x.spent, others
	parts := p.place()
	if parts == nil {
		return false
	}
	x.spent = p.spent
	for _, one := range parts {
		x.placed, x.lines = append(x.placed, one.contract), append(x.lines, one.line)
		x.taken = append(x.taken, seated{task: i, part: &SeatPart{At: one.at, Contract: one.contract, Units: one.contract.Spec.Intent.Units}})
		x.Due(one.contract.Spec.Term.End)
	}
	return true
}

// add counts the i-th task's contract among what is placed.
func (x *attempt) add(i int, c *v1alpha1.Contract, s *match.Class, at *match.Candidate) {
	x.spent.Hourly += at.Quote.Most()
	x.spent.Total += at.Quote.Most().ForSeconds(x.job.Seconds)
	x.placed, x.lines = append(x.placed, c), append(x.lines, x.PlacedLine(c, s, at))
	x.taken = append(x.taken, seated{s, at, i, nil})
	x.Due(c.Spec.Term.End)
}

// book writes into the job what was placed.
func (x *attempt) book() {
	j := x.job
	x.NoteProgress()
	x.EditJob(j)
	for i, c := range x.placed {
		by := &x.taken[i]
		t := &x.tasks[by.task]
		if gone := cmp.Or(x.old, t.Old); gone != nil {
			x.lines[i].Action, x.lines[i].From = draft.Move, gone.Spec.Provider+"/"+gone.Spec.Flavor
			j.Dec.Contracts = slices.DeleteFunc(slices.Clone(j.Dec.Contracts), func(l draft.ContractLine) bool { return l.Name == gone.Metadata.Name })
		}
		x.Replace(j, nil, c)
		if by.at != nil {
			x.sit(j, x.how, *t, Seat{Alt: x.alt, Class: by.class, At: by.at, Contract: c})
		}
	}
	if j.In.Spec.Split != nil && x.old == nil {
		x.sitInParts()
	}
	switch {
	case j.Dec.Contracts == nil && len(x.lines) >= len(j.Tasks): // all of them, nearly always
		j.Dec.Contracts = x.lines
	case j.Dec.Contracts == nil:
		j.Dec.Contracts = append(make([]draft.ContractLine, 0, len(j.Tasks)), x.lines...)
	default:
		j.Dec.Contracts = append(j.Dec.Contracts, x.lines...)
	}
	if j.Started.IsZero() {
		j.Started = x.Now
	}
}

// attemptIn tries one alternative where a request allows it, by score and then by price.
func attemptIn(r *Placer, j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, alt int) (first *draft.Failure) {
	for _, thrifty := range [...]bool{false, true} {
		if thrifty && !q.spending.Money.Limited {
			continue
		}
		f := tryAll(r, j, q, tasks, old, alt, thrifty)
		if f == nil {
			return nil
		}
		first = cmp.Or(first, f)
	}
	return first
}

// tryAll tries one alternative where a request allows it; by price alone where that fails by
// what places are worth to others, which must keep nobody out.
func tryAll(r *Placer, j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, alt int, thrifty bool) *draft.Failure {
	chosen := r.Scarce.Chosen()
	x := attempt{Placer: r, job: j, how: q, alt: alt, tasks: tasks, old: old, thrifty: thrifty}
	f := x.run()
	if f != nil && old == nil {
		f = r.seatAll(j, q, alt, tasks, thrifty, f)
	}
	if f != nil && r.Scarce.Chosen() != chosen {
		return tryAll(r, j, q.byPrice(), tasks, old, alt, thrifty)
	}
	return f
}

// seatAll tries an attempt that failed again, with places at which all of a
// gang's replicas should fit; those by the best offers first. It returns the
// failure when there are none.
func (r *Placer) seatAll(j *draft.Job, q Request, alt int, tasks []draft.Task, thrifty bool, failed *draft.Failure) *draft.Failure {
	if len(tasks) < 2 || len(j.In.Spec.Placement.Spread) < 2 || failed.Done == 0 {
		return failed
	}
	x := r.seatingOf(j, q, alt, tasks, thrifty)
	for range seatings {
		seats := x.Find(len(tasks))
		if seats == nil {
			break
		}
		try := attempt{Placer: r, job: j, how: q, alt: alt, tasks: tasks, thrifty: thrifty, seats: seats}
		f := try.run()
		if f == nil {
			r.EditJob(j)
			j.Seated = true
			return nil
		}
		// Offers of a pool have room together, and a quota may bind: no more go
		// next to those that were placed.
		x.Fail(f.Done + 1)
	}
	return failed
}
