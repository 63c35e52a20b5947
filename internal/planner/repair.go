package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A batch is what was first seen at once, with one priority. Filled one after
// the other, even in a good order, it costs some percent more than it must: an
// intent that could go anywhere sits where one had to that now goes somewhere
// dear or nowhere. For `objective: cost` a batch is therefore solved as a whole
// (package batch) from where it was filled to.
//
// Nothing is moved but what this very round placed; whoever was first seen at
// another time, or has another priority, is not touched. A gang stays whole.
// What is found is booked like any placement, whole or not at all: a limit of a
// tenant or an intent may not allow it.

// unplacedCard is what a replica without a place counts for, for each card and
// hour, and unplacedCore for each core of one that asks for no card, in
// millionths of the fleet's currency: far above any price, so that placing
// more goes before placing cheaper.
const (
	unplacedCard = 100 * 1_000_000
	unplacedCore = 10 * 1_000_000
)

// maxLooks bounds what the repairs of one round look at, so that whoever waits
// for the round (a reservation, another tenant) waits for seconds at most,
// however much asks for the lowest cost at once.
const maxLooks = 10_000_000

// seat is one replica of a batch: where it sits, or that it has no place.
type seat struct {
	job   *job
	task  task
	alt   int
	shape *match.Class
	// at and contract are nil while it has no place.
	at       *match.Candidate
	contract *v1alpha1.Contract
	ordinal  int32
	// first is the contract that it came with, started the job's start before.
	first   *v1alpha1.Contract
	started v1alpha1.Time
}

// repairs is the work on one batch.
type repairs struct {
	*round
	seats []*seat
	looks int
	// dropped are the jobs that lost their place to others.
	dropped []*job
}

// movable reports whether an intent wants nothing but a low price, and can be
// moved within its batch: budgets of several replicas are shared out when they
// are placed.
func (r *round) movable(j *job) bool {
	if j.in == nil || j.finding() || r.match.WeightsOf(&j.in.Spec) != (match.Weights{Cost: 1}) {
		return false
	}
	if j.in.Spec.Split != nil || j.avoid != nil || r.claims[j] != nil || r.ruled(j) || j.renames() || r.barsOf(j) != nil {
		return false
	}
	own := j.purse.Hourly < quantity.Unlimited || j.purse.HourlySpot < quantity.Unlimited || j.purse.Total < quantity.Unlimited
	return !own || j.replicas() == 1
}

// ruled reports whether an intent's place depends on where others are.
func (r *round) ruled(j *job) bool {
	related, k := r.relations(), keyOfJob(j)
	return len(j.in.Spec.Placement.Spread)+len(related.together[k])+len(related.apart[k]) > 0
}

// sit notes a replica that was placed, for the repair of its batch.
func (r *round) sit(j *job, q request, t task, s seat) {
	if !q.inBatch || q.only != nil || q.provider != "" || t.kind != fresh || t.old != nil || s.contract.Decision.Claimed != "" || !r.movable(j) {
		return
	}
	mine := s // only what is kept is allocated
	mine.job, mine.task, mine.first, mine.ordinal, mine.started = j, t, s.contract, s.contract.Spec.Intent.Ordinal, j.started
	r.seats = append(r.seats, &mine)
}

// repairAll repairs the batches of this round, and reports whether anything
// moved; dropped are jobs that wait again.
func (r *round) repairAll(waiting []*job) (changed bool, dropped []*job) {
	sameBatch := func(a, b *job) bool { return a.priority == b.priority && a.firstSeen.At == b.firstSeen.At }
	// What was only rehearsed, or has been given up since, is no more.
	r.seats = slices.DeleteFunc(r.seats, func(s *seat) bool {
		return r.current[s.contract.Metadata.Name] != s.contract || !slices.Contains(s.job.live, s.contract)
	})
	slices.SortStableFunc(r.seats, func(a, b *seat) int {
		return cmp.Or(cmp.Compare(b.job.priority, a.job.priority), a.job.firstSeen.At.Compare(b.job.firstSeen.At.Time))
	})
	looks := maxLooks
	for len(r.seats) > 0 {
		n := 1
		for n < len(r.seats) && sameBatch(r.seats[0].job, r.seats[n].job) {
			n++
		}
		r.plan.solved = true
		p := &repairs{round: r, seats: r.seats[:n:n], looks: looks}
		var without []*job
		for _, j := range waiting {
			if sameBatch(j, p.seats[0].job) && j.unplaced() && r.movable(j) {
				without = append(without, j)
			}
		}
		changed = p.run(without) || changed
		looks, dropped = p.looks, append(dropped, p.dropped...)
		r.seats = r.seats[n:]
	}
	r.seats = nil
	return changed, dropped
}

// unplaced reports whether all that a job still has to do is to place replicas
// that never had a place.
func (j *job) unplaced() bool {
	return len(j.tasks) > 0 && !slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind != fresh || t.old != nil })
}

// run repairs the batch, and reports whether anything moved. Those without a place
// ask for each of their alternatives in turn.
func (p *repairs) run(without []*job) bool {
	for alt := 0; ; alt++ {
		extras := p.extras(without, alt)
		if alt > 0 && len(extras) == 0 {
			return p.seal()
		}
		p.solve(extras)
	}
}

// extras are seats for what has no place yet, by one alternative of each job.
func (p *repairs) extras(without []*job, alt int) (out []*seat) {
	for _, j := range without {
		if len(j.tasks) == 0 || alt >= len(j.alternatives()) {
			continue
		}
		j.budget(p.round, len(j.tasks))
		of := p.shapeOf(j, alt)
		if len(of.ByPrice()) == 0 {
			continue
		}
		for _, t := range j.tasks {
			out = append(out, &seat{job: j, task: t, alt: alt, shape: of, ordinal: j.ordinals[ordinalKey(t.replica, 0)], started: j.started})
		}
	}
	return out
}

// solve looks for the cheapest places of the batch with some that have none, and
// books them. Where limits of money or how cards are laid forbid that, it looks
// again among what has neither.
func (p *repairs) solve(extras []*seat) {
	all := append(slices.Clip(p.seats), extras...)
	for _, plain := range [...]bool{false, true} {
		b := p.problemOf(all, plain)
		found := batch.Solve(&b.Problem, p.looks)
		if p.looks = found.Looks; !found.Cheaper {
			return
		}
		if p.book(b, &found) {
			break
		}
	}
	for _, s := range extras {
		if s.at == nil {
			continue
		}
		p.seats = append(p.seats, s)
		j := s.job
		j.tasks = slices.DeleteFunc(slices.Clone(j.tasks), func(t task) bool { return t.replica == s.task.replica })
		j.dec.Alternative = s.alt
		if len(j.tasks) == 0 {
			j.open = nil
		}
		if j.started.IsZero() {
			j.started = p.now
		}
	}
}

// book makes the seats of a problem sit where it was solved to, or none of them.
func (p *repairs) book(b *problem, found *batch.Answer) bool {
	at := found.At
	var moved []*seat
	to, on := map[*seat]*match.Candidate{}, map[*seat][]batch.Units{}
	for i, s := range b.seats {
		if at[i] == b.Seats[i].At && slices.Equal(found.On[i], b.Seats[i].On) {
			continue
		}
		moved = append(moved, s)
		on[s] = found.On[i]
		if at[i] >= 0 {
			to[s] = b.places[b.Seats[i].Kind][at[i]]
		}
	}
	made := map[*seat]*v1alpha1.Contract{}
	booked := p.try(func() bool {
		for _, s := range moved {
			if s.contract != nil {
				p.put(s.contract, nil)
			}
		}
		for _, s := range moved {
			if to[s] == nil {
				continue
			}
			if made[s] = p.take(s, to[s], on[s]); made[s] == nil {
				return false
			}
		}
		return true
	})
	if booked {
		for _, s := range moved {
			s.at, s.contract = to[s], made[s]
		}
	}
	return booked
}

// take books a seat's contract in a place and on cards, nil where it does not fit or
// a limit forbids it.
func (p *repairs) take(s *seat, c *match.Candidate, on []batch.Units) *v1alpha1.Contract {
	of := s.shape
	p.match.Refresh(of)
	if c.Fails != "" {
		return nil
	}
	l := p.limitsFor(s.job, request{}, of, match.SpendLimits{}, 0)
	if l.breaks(c) != "" {
		return nil
	}
	var next []*match.Candidate
	if best, others := l.best(of, false); others != nil {
		next = slices.DeleteFunc(append([]*match.Candidate{best}, others...), func(x *match.Candidate) bool { return x == c })
	}
	key, ordinals := ordinalKey(s.task.replica, 0), s.job.ordinals
	was := ordinals[key]
	ordinals[key] = s.ordinal
	p.did(func() { ordinals[key] = was })
	made := p.newContract(s.job, of, c, next[:min(len(next), match.MaxNext)], s.task.replica, s.alt)
	if len(on) > 0 {
		made.Spec.GPUs.Cards = nil
		for _, u := range on {
			made.Spec.GPUs.Cards = append(made.Spec.GPUs.Cards, v1alpha1.CardUnits{Card: u.Card, Units: u.N})
		}
	}
	p.put(nil, made)
	return made
}

// penalty is what a replica without a place counts for.
func penalty(s *match.Class) quantity.Micro {
	if s.Request.GPU == nil {
		return unplacedCore * quantity.Micro(max(s.Request.Need.At(quantity.CPU)/1000, 1))
	}
	return unplacedCard * quantity.Micro(s.Request.GPU.Count)
}

// recount gives back the number of a contract that was only tried.
func (s *seat) recount() {
	key := ordinalKey(s.task.replica, 0)
	if s.ordinal == 0 {
		delete(s.job.ordinals, key)
		return
	}
	s.job.ordinals[key] = s.ordinal
}

// seal writes what the repair came to into the decisions, and reports whether
// anything moved.
func (p *repairs) seal() (moved bool) {
	for _, s := range p.seats {
		if s.contract != nil && s.contract == s.first {
			continue
		}
		j := s.job
		if s.first == nil || s.contract == nil || s.contract.Spec.Provider != s.first.Spec.Provider || s.contract.Spec.Flavor != s.first.Spec.Flavor {
			moved, j.batched = true, s.contract != nil
		}
		if s.contract == nil {
			p.drop(s)
			continue
		}
		line := p.placedLine(s.contract, s.shape, s.at)
		if s.first == nil {
			p.replace(j, nil, s.contract)
			j.dec.Contracts = append(j.dec.Contracts, line)
		} else {
			p.replace(j, s.first, s.contract)
			for i := range j.dec.Contracts {
				if j.dec.Contracts[i].Name == s.first.Metadata.Name {
					j.dec.Contracts[i] = line
				}
			}
		}
		p.due(s.contract.Spec.Term.End)
	}
	return moved
}

// drop gives a job back the task that a seat was: others of its batch have its
// place.
func (p *repairs) drop(s *seat) {
	j := s.job
	j.live = slices.DeleteFunc(slices.Clone(j.live), func(c *v1alpha1.Contract) bool { return c == s.first })
	if s.first != nil {
		j.dec.Contracts = slices.DeleteFunc(j.dec.Contracts, func(l ContractLine) bool { return l.Name == s.first.Metadata.Name })
	}
	s.recount()
	j.tasks = append(j.tasks, s.task)
	j.started = s.started
	if !slices.Contains(p.dropped, j) {
		p.dropped = append(p.dropped, j)
	}
}
