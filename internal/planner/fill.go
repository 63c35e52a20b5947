package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// fillAll does the tasks of all jobs: by priority, then the older intent
// first; those first seen at once are one batch, in which the least flexible
// go first (flexibility), then the biggest, then by name. (Measured on real
// offers and demand, that order comes within a few percent of the optimum's cost
// where the order of arrival leaves 20 to 60: Karmada and SkyPilot take the
// latter.) Where places are chosen by what they strand of cards sold in parts,
// size does not count: the biggest first would be alike one after the other, and
// fill offers to where none of what comes later fits. (Measured on the openb
// trace in batches at a load of 1: 292 of 6,212 GPUs are left, 362 with the
// biggest first.)
//
// What a job gives up may be what an earlier one waits for, and what it takes
// changes why others wait, so it goes round until a pass changes nothing: a
// plan that was applied leaves nothing to do, and the reasons are those of the
// end.
func (r *round) fillAll() {
	var waiting []*job
	for _, j := range r.jobs {
		if (len(j.tasks) == 0 && !j.warm()) || j.finding() {
			continue
		}
		j.budget(r, len(j.tasks))
		waiting = append(waiting, j)
	}
	r.order(waiting)
	const times = 8 // each but the last made somebody give way, or let somebody off
	for range times {
		StepServe.begin(r.step)
		waiting = r.fillWaiting(waiting, request{inBatch: true})
		StepBatch.begin(r.step)
		if changed, dropped := r.repairAll(waiting); changed {
			waiting = append(waiting, dropped...)
			r.order(waiting)
			waiting = r.fillWaiting(waiting, request{inBatch: true})
		}
		StepServe.begin(r.step)
		if slices.ContainsFunc(waiting, func(j *job) bool { return j.tenant.Borrows() }) {
			r.order(waiting)
			waiting = r.fillWaiting(waiting, request{inBatch: true, mayBorrow: true})
		}
		more := r.displace()
		if len(more) == 0 {
			break
		}
		for _, j := range more {
			if len(j.tasks) > 0 && !slices.Contains(waiting, j) {
				j.budget(r, len(j.tasks))
				waiting = append(waiting, j)
			}
		}
		r.order(waiting)
	}
	r.seats = nil
	for _, j := range r.jobs {
		if len(j.tasks) > 0 && j.finding() {
			r.lookOnly(j, request{})
		}
	}
	r.waiting = waiting
}

// fillWaiting gives every waiting job its turn until nothing changes, and
// returns those that still wait, in the order of their last turns. Every pass
// starts from the order of the batch: where tenants hold equal shares that
// decides, and the next round will start from it too.
func (r *round) fillWaiting(waiting []*job, q request) []*job {
	const passes = 8 // each but the last changed something; more than three were never seen
	isServed := func(j *job) bool { return len(j.tasks) == 0 && !j.warm() }
	var served []*job
	for pass := 0; pass < passes && len(waiting) > 0; pass++ {
		r.setProgressed(false)
		r.turns++
		clear(r.hopeless)
		r.dropReservations()
		served = append(served[:0], waiting...)
		r.serve(served, q)
		waiting = slices.DeleteFunc(waiting, isServed)
		if !r.progressed {
			break
		}
	}
	return slices.DeleteFunc(served, isServed)
}

// lookOnly does what a job would do and takes it back: stage find changes
// nothing.
func (r *round) lookOnly(j *job, q request) {
	m := r.mark()
	r.fill(j, q)
	dec := j.dec
	r.rollbackButDue(m)
	j.dec, j.started = dec, v1alpha1.Time{}
}

type rank struct {
	job          *job
	flexible     int
	gpu, cpu     int64
	at           int64
	fromPriority int32
	claims       int // 0: others give way to it already
	offered      int // 0: it holds what waits for review
}

// flexibility is in how many places a job could be served, summed over its
// alternatives. What is free of them does not count: the order would be another
// one as soon as the first is served, and the next round would tell other
// reasons. Nor does, where parts of cards are sold, whether one is large enough:
// that would be the job's size again.
func (r *round) flexibility(j *job) int {
	n := 0
	for alt := range j.alternatives() {
		if s := r.shapeOf(j, alt); s.Packs() {
			n += s.Affordable
		} else {
			n += s.Usable
		}
	}
	return n
}

func (r *round) order(jobs []*job) {
	if len(jobs) < 2 {
		return
	}
	ranks := make([]rank, len(jobs))
	for i, j := range jobs {
		s := r.shapeOf(j, 0)
		k := rank{job: j, flexible: r.flexibility(j), at: j.firstSeen.At.Unix(), fromPriority: j.priority, claims: 1, offered: 1}
		if j.offered() {
			k.offered = 0
		}
		if r.hasClaim(j) {
			k.claims = 0
		}
		if !s.Packs() {
			size := r.sizeOf(j)
			k.gpu, k.cpu = size[0], size[1]
		}
		ranks[i] = k
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(
			cmp.Compare(a.offered, b.offered), cmp.Compare(b.fromPriority, a.fromPriority), cmp.Compare(a.claims, b.claims),
			cmp.Compare(a.at, b.at), cmp.Compare(a.flexible, b.flexible), cmp.Compare(b.gpu, a.gpu), cmp.Compare(b.cpu, a.cpu),
			strings.Compare(a.job.tenantName, b.job.tenantName), strings.Compare(a.job.name, b.job.name))
	})
	for i := range ranks {
		jobs[i] = ranks[i].job
	}
}

// fill does what can be done of a job's tasks and leaves the others.
func (r *round) fill(j *job, q request) {
	j.open = nil
	if r.fillUnit(j, q) {
		return
	}
	if r.isNothing(j.tasks) {
		j.tasks = r.fillNew(j, q, j.tasks)
		return
	}
	var left, news []task
	for _, t := range j.tasks {
		if t.of > 0 {
			if f := r.fillPart(j, q, &t); f != nil {
				j.open, left = append(j.open, *f), append(left, t)
			}
			continue
		}
		switch t.kind {
		case fresh:
			news = append(news, t)
		case remake:
			if f := r.remake(j, q, t); f != nil {
				j.open, left = append(j.open, *f), append(left, t)
			}
		case adapt:
			if f := r.adapt(j, q, t); f != nil {
				if !q.dryRun && r.goesFirst(j, t) {
					t.kind = fresh
				}
				j.open, left = append(j.open, *f), append(left, t)
			}
		case failover:
			if f := r.failOver(j, q, t); f != nil {
				j.open, left = append(j.open, *f), append(left, t)
			}
		case move:
			if f := r.move(j, q, t); f != nil {
				if !slices.Contains(j.live, t.old) {
					t.kind = fresh
				}
				j.open, left = append(j.open, *f), append(left, t)
			}
		case leave:
			if f := r.giveWay(j, q, t); f != nil {
				if !slices.Contains(j.live, t.old) {
					t.kind = fresh
				}
				j.open, left = append(j.open, *f), append(left, t)
			}
		}
	}
	if len(news) > 0 {
		left = append(left, r.fillNew(j, q, news)...)
	}
	j.tasks = left
}

// fillNew places replicas that have nothing: all or none for a gang, else as
// many as fit, the lowest numbers first. It returns those that are left.
func (r *round) fillNew(j *job, q request, news []task) []task {
	if j.gang() {
		if f := r.attempts(j, q, news, nil, 0, len(j.alternatives())); f != nil {
			j.open = append(j.open, *f)
			return news
		}
		return nil
	}
	for i := range news {
		if f := r.attempts(j, q, news[i:i+1], nil, 0, len(j.alternatives())); f != nil {
			if n := j.replicas(); n > 1 {
				f.text = fmt.Sprintf("%d of %d replicas fit; %s", j.served(), n, f.text)
			}
			j.open = append(j.open, *f)
			return news[i:]
		}
	}
	return nil
}

// attempts tries an intent's alternatives from..to-1 in order, each by score and, where
// money is what binds, once more the cheapest first. old, when given, is
// released in exchange. nil is success.
func (r *round) attempts(j *job, q request, tasks []task, old *v1alpha1.Contract, from, to int) *failure {
	var first *failure
	if from >= to {
		return noAlternative(tasks[0])
	}
	if old == nil || q.beside {
		j.budget(r, len(tasks))
	} else {
		j.budget(r, len(tasks), old)
	}
	for alt := from; alt < to; alt++ {
		for _, thrifty := range [...]bool{false, true} {
			if thrifty && !j.purse.Limited {
				continue
			}
			f := r.attempt(j, q, alt, tasks, old, thrifty, nil)
			if f != nil && old == nil {
				f = r.seatAll(j, q, alt, tasks, thrifty, f)
			}
			if f == nil {
				j.dec.Alternative = alt
				return nil
			}
			if first == nil {
				first = f
			}
		}
	}
	return first
}

// attempt places every task of the list by one alternative, or nothing at all.
// seats, when given, are the domains that each must take (seating.go).
func (r *round) attempt(j *job, q request, alt int, tasks []task, old *v1alpha1.Contract, thrifty bool, seats [][]string) *failure {
	m := r.mark()
	if old != nil && !q.beside {
		r.offAccount(old)
	}
	// Nearly always one replica is placed at a time; what is kept of these is copied.
	placed := make([]*v1alpha1.Contract, 0, 4)
	lines := make([]ContractLine, 0, 1)
	taken := make([]seated, 0, 4)
	of := make([]task, 0, 4) // whose each placed contract is
	spent := match.SpendLimits{}
	for i, t := range tasks {
		s := r.shapeOf(j, alt)
		l := r.limitsFor(j, q, s, spent, int64(len(tasks)-i-1))
		l.rules = r.rulesFor(j, q, s, t.replica, placed, old).seated(seats, i)
		if !q.unasked {
			r.capture(j, s, l)
		}
		best, next := l.best(s, thrifty)
		warm := r.claimable(j, q, s, l, best)
		if best == nil && warm == nil && r.splits(j, t) {
			if parts := r.placeParts(j, q, alt, t, thrifty, placed, &spent, int64(len(tasks)-i-1)); parts != nil {
				for _, p := range parts {
					placed, lines = append(placed, p.contract), append(lines, p.line)
					taken, of = append(taken, seated{}), append(of, t)
					r.due(p.contract.Spec.Term.End)
				}
				continue
			}
		}
		if best == nil && warm == nil {
			f := r.failure(j, s, l, t, i, len(tasks))
			r.rollbackButDue(m)
			return f
		}
		var c *v1alpha1.Contract
		if warm != nil {
			if best != nil {
				next = append([]*match.Candidate{best}, next...)
			}
			best = &warm.cand
			c = r.takeClaim(j, s, warm, next[:min(len(next), 3)], t, alt)
		} else {
			c = r.newContract(j, s, best, next, t.replica, alt)
			r.put(nil, c)
		}
		spent.Hourly += best.Quote.Most()
		spent.Total += best.Quote.Most().ForSeconds(j.seconds)
		placed, lines, taken = append(placed, c), append(lines, r.placedLine(c, s, best)), append(taken, seated{s, best})
		of = append(of, t)
		r.due(c.Spec.Term.End)
	}
	r.noteProgress()
	r.decides(j)
	for i, c := range placed {
		if gone := cmp.Or(old, of[i].old); gone != nil {
			lines[i].Action, lines[i].From = Move, gone.Spec.Provider+"/"+gone.Spec.Flavor
			j.dec.Contracts = slices.DeleteFunc(slices.Clone(j.dec.Contracts), func(l ContractLine) bool { return l.Name == gone.Metadata.Name })
		}
		r.replace(j, nil, c)
		if taken[i].at != nil {
			r.sit(j, q, of[i], seat{alt: alt, shape: taken[i].shape, at: taken[i].at, contract: c})
		}
	}
	if j.dec.Contracts == nil {
		j.dec.Contracts = make([]ContractLine, 0, max(len(lines), len(j.tasks)))
	}
	j.dec.Contracts = append(j.dec.Contracts, lines...)
	if j.started.IsZero() {
		j.started = r.now
	}
	r.keep(m)
	return nil
}

// seated is what a replica was placed by.
type seated struct {
	shape *match.Class
	at    *match.Candidate
}

// placedLine is a new contract as the plan shows it.
func (r *round) placedLine(c *v1alpha1.Contract, s *match.Class, at *match.Candidate) ContractLine {
	line := r.line(c, Place)
	if now := r.books.HourlyAt(c.Spec.Price, r.now); now.Cmp(line.Hourly) != 0 {
		line.HourlyNow = &now
	}
	if asked := s.Request.Asked(at.Offer); !asked.Equal(at.Size) {
		line.Asked = inventory.Slice(r.names, asked, at.Offer.Flavor)
	}
	return line
}

// limitsFor are the limits of one more replica of which others follow.
func (r *round) limitsFor(j *job, q request, s *match.Class, spent match.SpendLimits, others int64) *limits {
	l := r.limitsOf(j.tenant, q, j.seconds)
	l.life = j.seconds
	l.only, l.avoid, l.bars = q.only, j.avoid, r.barsOf(j)
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
	l.own = match.SpendLimits{
		Hourly:     take(j.purse.Hourly, spent.Hourly+reserve),
		HourlySpot: take(j.purse.HourlySpot, spent.Hourly+reserve),
		Total:      take(j.purse.Total, spent.Total+reserve.ForSeconds(j.seconds)),
	}
	return l
}
