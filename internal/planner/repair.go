package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/formulate"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// A batch is what was first seen at once, with one priority. Filled one after
// the other, even in a good order, it costs some percent more than it must: an
// intent that could go anywhere sits where one had to that now goes somewhere
// expensive or nowhere. For `objective: cost` a batch is therefore solved as a whole
// (package batch) from where it was filled to.
//
// Nothing is moved but what this very round placed; whoever was first seen at
// another time, or has another priority, is not touched. A gang stays whole, and so
// do intents that are together; spreads, budgets and who is apart are rules of the search.
// What is found is booked like any placement, whole or not at all: a limit of a
// tenant or an intent may not allow it.

// maxLooks bounds what the repairs of one round look at, so that whoever waits
// for the round (a reservation, another tenant) waits for seconds at most,
// however much asks for the lowest cost at once.
const maxLooks = 10_000_000

// repairs is the work on one batch.
type repairs struct {
	*round
	seats []*place.Seat
	looks int
	// dropped are the jobs that lost their place to others.
	dropped []*draft.Job
}

// repairAll repairs the batches of this round, and reports whether anything
// moved; dropped are jobs that wait again.
func (r *round) repairAll(waiting []*draft.Job) (changed bool, dropped []*draft.Job) {
	sameBatch := func(a, b *draft.Job) bool { return a.Priority == b.Priority && a.FirstSeen.At == b.FirstSeen.At }
	seats := r.Seats
	draft.Set(&r.Draft, &r.Seats, nil)
	// What has been given up since is no more.
	seats = slices.DeleteFunc(draft.Own(&r.Draft, seats), func(s *place.Seat) bool {
		return r.Current[s.Contract.Metadata.Name] != s.Contract || !slices.Contains(s.Job.Live, s.Contract)
	})
	slices.SortStableFunc(seats, func(a, b *place.Seat) int {
		return cmp.Or(cmp.Compare(b.Job.Priority, a.Job.Priority), a.Job.FirstSeen.At.Compare(b.Job.FirstSeen.At.Time))
	})
	looks := maxLooks
	for len(seats) > 0 {
		n := 1
		for n < len(seats) && sameBatch(seats[0].Job, seats[n].Job) {
			n++
		}
		r.NoteSolved()
		p := &repairs{round: r, seats: seats[:n:n], looks: looks}
		var without []*draft.Job
		for _, j := range waiting {
			if sameBatch(j, p.seats[0].Job) && unplaced(j) && r.Claims[j] == nil && r.Movable(j) {
				without = append(without, j)
			}
		}
		changed = p.run(without) || changed
		looks, dropped = p.looks, append(dropped, p.dropped...)
		seats = seats[n:]
	}
	return changed, dropped
}

// unplaced reports whether all that a job still has to do is to place replicas
// that never had a place.
func unplaced(j *draft.Job) bool {
	return len(j.Tasks) > 0 && !slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind != draft.TaskFresh || t.Old != nil })
}

// run repairs the batch, and reports whether anything moved. Those without a place
// ask for each of their alternatives in turn.
func (p *repairs) run(without []*draft.Job) bool {
	for alt := 0; ; alt++ {
		extras := p.extras(without, alt)
		if alt > 0 && len(extras) == 0 {
			return p.seal()
		}
		p.solve(extras)
	}
}

// extras are seats for what has no place yet, by one alternative of each job.
func (p *repairs) extras(without []*draft.Job, alt int) (out []*place.Seat) {
	for _, j := range without {
		if len(j.Tasks) == 0 || alt >= len(j.Alternatives()) {
			continue
		}
		p.Match.Trim()
		of := p.ClassOf(j, alt)
		if len(of.ByPrice()) == 0 {
			continue
		}
		for _, t := range j.Tasks {
			out = append(out, &place.Seat{Job: j, Task: t, Alt: alt, Class: of, Ordinal: j.Ordinals[place.OrdinalKey(t.Replica, 0)], Started: j.Started})
		}
	}
	return out
}

// solve looks for the cheapest places of the batch with some that have none, and
// books them. Where limits of money or how cards are laid forbid that, it looks
// again among what has neither.
func (p *repairs) solve(extras []*place.Seat) {
	all := append(slices.Clip(p.seats), extras...)
	for _, plain := range [...]bool{false, true} {
		b := formulate.Of(&p.Placer, all, plain)
		found := batch.Solve(&b.Problem, p.looks)
		if p.looks = found.Looks; !found.Cheaper {
			return
		}
		if p.book(b, &found) {
			break
		}
	}
	for _, s := range extras {
		if s.At == nil {
			continue
		}
		p.seats = append(p.seats, s)
		j := s.Job
		p.EditJob(j)
		j.Tasks = slices.DeleteFunc(slices.Clone(j.Tasks), func(t draft.Task) bool { return t.Replica == s.Task.Replica })
		j.Dec.Alternative = s.Alt
		if len(j.Tasks) == 0 {
			j.Open = nil
		}
		if j.Started.IsZero() {
			j.Started = p.Now
		}
	}
}

// book makes the seats of a problem sit where it was solved to, or none of them.
func (p *repairs) book(b *formulate.Problem, found *batch.Answer) bool {
	at := found.At
	var moved []*place.Seat
	to, on := map[*place.Seat]*inventory.Offer{}, map[*place.Seat][]batch.Units{}
	for i, s := range b.Replicas {
		if at[i] == b.Seats[i].At && slices.Equal(found.On[i], b.Seats[i].On) {
			continue
		}
		moved = append(moved, s)
		on[s] = found.On[i]
		if at[i] >= 0 {
			to[s] = b.Offer(i, at[i])
		}
	}
	made, sits := map[*place.Seat]*v1alpha1.Contract{}, map[*place.Seat]*match.Candidate{}
	booked := p.Try(func() bool {
		spent := spendingsOf(b, func(i int) bool { return b.Replicas[i].At != nil && at[i] >= 0 && to[b.Replicas[i]] == nil })
		for _, s := range moved {
			if s.Contract != nil {
				p.Put(s.Contract, nil)
			}
		}
		for _, s := range moved {
			if to[s] == nil {
				continue
			}
			p.Match.Trim()
			if made[s], sits[s] = p.take(s, to[s], on[s], spent[s.Job]); made[s] == nil {
				return false
			}
		}
		return true
	})
	if booked {
		for _, s := range moved {
			draft.Set(&p.Draft, &s.At, sits[s])
			draft.Set(&p.Draft, &s.Contract, made[s])
		}
	}
	return booked
}

// take books a seat's contract on an offer and on cards, nil where it does not fit or
// a limit forbids it, and what of the offer a seat keeps.
func (p *repairs) take(s *place.Seat, o *inventory.Offer, on []batch.Units, spent *spending) (made *v1alpha1.Contract, at *match.Candidate) {
	of := s.Class
	p.Match.Refresh(of)
	c := of.Of(o)
	if c.Fails != "" {
		return nil, nil
	}
	q := p.For(s.Job, place.Request{}, 1, spent.first...)
	l := p.LimitsFor(s.Job, q, of, spent.SpendLimits, 0)
	if l.Rejects(c) != "" {
		return nil, nil
	}
	var next []*match.Candidate
	if best, others := l.Best(of, false); others != nil {
		next = slices.DeleteFunc(append([]*match.Candidate{best}, others...), func(x *match.Candidate) bool { return x == c })
	}
	p.Recount(s)
	made = p.NewContract(s.Job, q, of, c, next[:min(len(next), match.MaxNext)], s.Task.Replica)
	if len(on) > 0 && o.Cards() != nil {
		made.Spec.GPUs.Cards = nil
		for _, u := range on {
			made.Spec.GPUs.Cards = append(made.Spec.GPUs.Cards, v1alpha1.CardUnits{Card: u.Card, Units: u.N})
		}
	}
	p.Put(nil, made)
	spent.add(c, s.Job.Seconds)
	return made, c.Fixed()
}

// spending is what a job's seats come to that have their places, and the contracts with
// which all of them came to the batch.
type spending struct {
	match.SpendLimits
	first []*v1alpha1.Contract
}

// spendings are those of all jobs.
type spendings map[*draft.Job]*spending

// spendingsOf begins with those of a problem that keep their places.
func spendingsOf(b *formulate.Problem, stays func(int) bool) spendings {
	x := spendings{}
	for i, s := range b.Replicas {
		if x[s.Job] == nil {
			x[s.Job] = &spending{}
		}
		if s.First != nil {
			x[s.Job].first = append(x[s.Job].first, s.First)
		}
		if stays(i) {
			x[s.Job].add(s.At, s.Job.Seconds)
		}
	}
	return x
}

func (x *spending) add(c *match.Candidate, seconds int64) {
	x.Hourly += c.Quote.Most()
	x.Total += c.Quote.Most().ForSeconds(seconds)
}

// seal writes what the repair came to into the decisions, and reports whether
// anything moved.
func (p *repairs) seal() (moved bool) {
	for _, s := range p.seats {
		if s.Contract != nil && s.Contract == s.First {
			continue
		}
		j := s.Job
		p.EditJob(j)
		if s.First == nil || s.Contract == nil || s.Contract.Spec.Provider != s.First.Spec.Provider || s.Contract.Spec.Flavor != s.First.Spec.Flavor {
			moved, j.Batched = true, s.Contract != nil
		}
		if s.Contract == nil {
			p.dropSeat(s)
			continue
		}
		line := p.PlacedLine(s.Contract, s.Class, s.At)
		if s.First == nil {
			p.Replace(j, nil, s.Contract)
			j.Dec.Contracts = append(j.Dec.Contracts, line)
		} else {
			p.Replace(j, s.First, s.Contract)
			for i := range j.Dec.Contracts {
				if j.Dec.Contracts[i].Name == s.First.Metadata.Name {
					p.SetLine(j, i, line)
				}
			}
		}
		p.Due(s.Contract.Spec.Term.End)
	}
	return moved
}

// dropSeat gives a job back the task that a seat was: others of its batch have its
// place.
func (p *repairs) dropSeat(s *place.Seat) {
	j := s.Job
	p.EditJob(j)
	j.Live = slices.DeleteFunc(slices.Clone(j.Live), func(c *v1alpha1.Contract) bool { return c == s.First })
	if s.First != nil {
		j.Dec.Contracts = slices.DeleteFunc(draft.Own(&p.Draft, j.Dec.Contracts), func(l draft.ContractLine) bool { return l.Name == s.First.Metadata.Name })
	}
	p.Recount(s)
	j.Tasks = append(j.Tasks, s.Task)
	j.Started = s.Started
	if !slices.Contains(p.dropped, j) {
		p.dropped = append(p.dropped, j)
	}
}
