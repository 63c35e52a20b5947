package planner

import (
	"cmp"
	"slices"
	"strings"

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
// do intents that are together, but for one that names another and may wait; replicas
// that may be split are whole or in parts; spreads, budgets and who is apart are rules
// of the search.
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
		return slices.ContainsFunc(s.Held(), func(c *v1alpha1.Contract) bool {
			return r.Current[c.Metadata.Name] != c || !slices.Contains(s.Job.Live, c)
		})
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
		if len(of.ByPrice()) == 0 && place.DivisionOf(&p.Placer, j, alt) == nil {
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
		if !s.Placed() {
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
	var moved []*place.Seat
	to := map[*place.Seat][]target{}
	for i, s := range b.Replicas {
		if found.At[i] == b.Seats[i].At && slices.Equal(found.On[i], b.Seats[i].On) && batch.EqualParts(found.Parts[i], b.Seats[i].Parts) {
			continue
		}
		moved = append(moved, s)
		to[s] = targetsOf(b, found, i)
	}
	made, parts := map[*place.Seat]place.SeatPart{}, map[*place.Seat][]place.SeatPart{}
	booked := p.Try(func() bool {
		spent := spendingsOf(b, func(s *place.Seat) bool { _, moves := to[s]; return s.At != nil && !moves })
		for _, s := range moved {
			for _, c := range s.Held() {
				p.Put(c, nil)
			}
		}
		for _, s := range moved {
			for number, t := range to[s] {
				p.Match.Trim()
				one, ok := p.take(s, t, int32(number), spent[s.Job]) //nolint:gosec // few
				switch {
				case !ok:
					return false
				case t.units > 0:
					parts[s] = append(parts[s], one)
				default:
					made[s] = one
				}
			}
		}
		return true
	})
	if booked {
		for _, s := range moved {
			draft.Set(&p.Draft, &s.At, made[s].At)
			draft.Set(&p.Draft, &s.Contract, made[s].Contract)
			draft.Set(&p.Draft, &s.Parts, parts[s])
		}
	}
	return booked
}

// target is where a seat, or units of one as a part, are to be.
type target struct {
	offer *inventory.Offer
	on    []batch.Units
	units int64 // of a part, 0 for a whole replica
}

// targetsOf are where the i-th replica was solved to be; nothing has no place.
func targetsOf(b *formulate.Problem, found *batch.Answer, i int) (out []target) {
	if at := found.At[i]; at >= 0 {
		return []target{{b.Offer(i, at), found.On[i], 0}}
	}
	for _, part := range found.Parts[i] {
		out = append(out, target{b.PartOffer(i, part), part.On, part.Units})
	}
	return out
}

// take books a seat's contract, or that of a part, on an offer and on cards; false where it does not
// fit or a limit forbids it. What it returns of the offer is what a seat keeps.
func (p *repairs) take(s *place.Seat, t target, number int32, spent *spending) (out place.SeatPart, ok bool) {
	of, how := s.Class, place.Request{}
	if t.units > 0 {
		d := place.DivisionOf(&p.Placer, s.Job, s.Alt)
		of, how = d.Class(t.units), d.Request(number, t.units)
	}
	p.Match.Refresh(of)
	c := of.Of(t.offer)
	if c == nil || c.Fails != "" {
		return out, false
	}
	q := p.For(s.Job, how, 1, spent.first...)
	l := p.LimitsFor(s.Job, q, of, spent.SpendLimits, 0)
	if l.Rejects(c) != "" {
		return out, false
	}
	var next []*match.Candidate
	if best, others := l.Best(of, false); others != nil && t.units == 0 {
		next = slices.DeleteFunc(append([]*match.Candidate{best}, others...), func(x *match.Candidate) bool { return x == c })
	}
	if number == 0 {
		p.Recount(s)
	}
	made := p.NewContract(s.Job, q, of, c, next[:min(len(next), match.MaxNext)], s.Task.Replica)
	if len(t.on) > 0 && t.offer.Cards() != nil && t.offer.Nodes() == nil {
		made.Spec.GPUs.Cards = nil
		for _, u := range t.on {
			made.Spec.GPUs.Cards = append(made.Spec.GPUs.Cards, v1alpha1.CardUnits{Card: u.Card, Units: u.N})
		}
	}
	p.Put(nil, made)
	spent.add(c, s.Job.Seconds)
	return place.SeatPart{At: c.Fixed(), Contract: made, Units: t.units, Line: p.PlacedLine(made, of, c)}, true
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
func spendingsOf(b *formulate.Problem, stays func(*place.Seat) bool) spendings {
	x := spendings{}
	for _, s := range b.Replicas {
		if x[s.Job] == nil {
			x[s.Job] = &spending{}
		}
		x[s.Job].first = append(x[s.Job].first, s.Came()...)
		if stays(s) {
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
	defer p.sealShared()
	for _, s := range p.seats {
		held, came := s.Held(), s.Came()
		if len(held) > 0 && slices.Equal(held, came) {
			continue
		}
		j := s.Job
		p.EditJob(j)
		if len(s.Parts)+len(s.FirstParts) > 0 && len(held) > 0 {
			moved, j.Batched = true, true
			p.sealParts(s, came)
			continue
		}
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

// sealShared says in which domain those are now that share one.
func (p *repairs) sealShared() {
	for _, s := range p.seats {
		j := s.Job
		w, shares := place.Shares(&p.Placer, j)
		if !j.Batched || j.Shared == "" || !shares || len(j.Live) == 0 || !p.By(draft.RulesFollowersWhole) {
			continue
		}
		o := p.OfferOf(j.Live[0])
		if o == nil {
			continue
		}
		if text := w.All(match.Domain(o, w.By, w.Label)); !strings.HasPrefix(j.Shared, text) {
			p.EditJob(j)
			j.Shared = text
		}
	}
}

// sealParts is seal for a seat that is in parts, or was.
func (p *repairs) sealParts(s *place.Seat, came []*v1alpha1.Contract) {
	j := s.Job
	p.giveUp(j, came)
	parts := s.Parts
	if s.Contract != nil {
		parts = []place.SeatPart{{Contract: s.Contract, Line: p.PlacedLine(s.Contract, s.Class, s.At)}}
	}
	for i := range parts {
		p.Replace(j, nil, parts[i].Contract)
		j.Dec.Contracts = append(j.Dec.Contracts, parts[i].Line)
		p.Due(parts[i].Contract.Spec.Term.End)
	}
}

// giveUp takes contracts that a seat came with off its job.
func (p *repairs) giveUp(j *draft.Job, came []*v1alpha1.Contract) {
	p.EditJob(j)
	j.Live = slices.DeleteFunc(slices.Clone(j.Live), func(c *v1alpha1.Contract) bool { return slices.Contains(came, c) })
	for _, c := range came {
		j.Dec.Contracts = slices.DeleteFunc(draft.Own(&p.Draft, j.Dec.Contracts), func(l draft.ContractLine) bool { return l.Name == c.Metadata.Name })
	}
}

// dropSeat gives a job back the task that a seat was: others of its batch have its
// place.
func (p *repairs) dropSeat(s *place.Seat) {
	j := s.Job
	p.giveUp(j, s.Came())
	p.Recount(s)
	j.Tasks = append(j.Tasks, s.Task)
	j.Started = s.Started
	if !slices.Contains(p.dropped, j) {
		p.dropped = append(p.dropped, j)
	}
}
