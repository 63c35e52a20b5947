package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A batch is what was first seen at once, with one priority. Filled one after
// the other, even in a good order, it costs some percent more than it must: an
// intent that could go anywhere sits where one had to that now goes somewhere
// dear or nowhere. For `objective: cost` a batch is therefore repaired: a
// replica takes a cheaper place from another one of the batch (one ejection)
// wherever both together then cost less, until none does. What that does not
// find, many seats at once, recreate.go looks for.
//
// Nothing is moved but what this very round placed; whoever was first seen at
// another time, or has another priority, is not touched. A gang stays whole.
// Each move is booked like any placement, and taken back when a limit of a
// tenant or an intent does not allow it.

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
	shape *shape
	// at and contract are nil while it has no place.
	at       *candidate
	contract *v1alpha1.Contract
	ordinal  int32
	// first is the contract that it came with, started the job's start before.
	first   *v1alpha1.Contract
	started v1alpha1.Time
	// seen is when it last looked for a better place in vain; vain: it did.
	seen int
	vain bool
}

// repairs is the work on one batch.
type repairs struct {
	*round
	seats []*seat
	on    map[*offer][]*seat
	// done are the moves that may be taken back.
	done  []relocation
	looks int
	// shadows are the shadow prices, once found.
	shadows *shadows
	// dropped are the jobs that lost their place to others.
	dropped []*job
}

// relocation is one seat's change of place.
type relocation struct {
	seat     *seat
	at       *candidate
	contract *v1alpha1.Contract
	alt      int
	shape    *shape
}

// movable reports whether an intent wants nothing but a low price, and can be
// moved within its batch: budgets of several replicas are shared out when they
// are placed.
func (r *round) movable(j *job) bool {
	if j.in == nil || j.finding() || r.weightsOf(&j.in.Spec) != (weights{cost: 1}) {
		return false
	}
	if j.in.Spec.Split != nil || j.avoid != nil || j.only != nil || j.onlyOn != "" || r.claims[j] != nil || r.ruled(j) || j.renames() || r.barsOf(j) != nil {
		return false
	}
	own := j.purse.hourly < quantity.Unlimited || j.purse.hourlySpot < quantity.Unlimited || j.purse.total < quantity.Unlimited
	return !own || j.replicas() == 1
}

// ruled reports whether an intent's place depends on where others are.
func (r *round) ruled(j *job) bool {
	related, k := r.relations(), keyOfJob(j)
	return len(j.in.Spec.Placement.Spread)+len(related.together[k])+len(related.apart[k]) > 0
}

// sit notes a replica that was placed, for the repair of its batch.
func (r *round) sit(j *job, t task, s seat) {
	if !r.seating || t.kind != fresh || t.old != nil || s.contract.Decision.Claimed != "" || !r.movable(j) {
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
		p := &repairs{round: r, seats: r.seats[:n], on: map[*offer][]*seat{}, looks: looks}
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

// run repairs the batch, and reports whether anything moved.
func (p *repairs) run(without []*job) bool {
	for _, s := range p.seats {
		p.on[s.at.offer] = append(p.on[s.at.offer], s)
	}
	kept := p.looks / 2 // for what finds most, whatever the rest takes
	p.looks -= kept
	for by := range seatOrders {
		p.anew(by, without)
	}
	p.rebuild(without)
	p.polish(without)
	p.looks += kept
	p.recreate(without)
	return p.seal()
}

// anew lets all choose again in an order, and keeps what comes of it when it
// costs less.
func (p *repairs) anew(by seatOrder, without []*job) {
	if len(p.seats) < 3 || p.looks <= 0 {
		return
	}
	cost, from, seats := p.cost(), len(p.done), p.seats
	p.seats = append(slices.Clip(seats), p.extras(without)...)
	p.reseat(p.shadowPrices(), by)
	if p.cost() >= cost+p.missed(seats) {
		p.undo(from)
		for _, s := range p.seats[len(seats):] {
			s.recount()
		}
		p.seats = seats
		return
	}
	p.settled(len(seats))
}

// extras are seats for what has no place yet, by what each job asks for first.
func (p *repairs) extras(without []*job) (out []*seat) {
	for _, j := range without {
		if len(j.tasks) == 0 {
			continue
		}
		j.budget(p.round, len(j.tasks))
		of := p.shapeOf(j, 0)
		if len(of.byPrice()) == 0 {
			continue
		}
		for _, t := range j.tasks {
			out = append(out, &seat{job: j, task: t, shape: of, ordinal: j.ordinals[ordinalKey(t.replica, 0)], started: j.started})
		}
	}
	return out
}

// missed is what those among the seats count for that are not in before and
// have no place.
func (p *repairs) missed(before []*seat) (sum quantity.Micro) {
	for _, s := range p.seats[len(before):] {
		sum += penalty(s.shape)
	}
	return sum
}

// settled takes over the extras, from the n-th seat on, that have a place now.
func (p *repairs) settled(n int) {
	kept := p.seats[:n:n]
	for _, s := range p.seats[n:] {
		if s.at == nil {
			s.recount()
			continue
		}
		kept = append(kept, s)
		j := s.job
		j.tasks = slices.DeleteFunc(slices.Clone(j.tasks), func(t task) bool { return t.replica == s.task.replica })
		j.dec.Alternative = 0
		if len(j.tasks) == 0 {
			j.open = nil
		}
		if j.started.IsZero() {
			j.started = p.now
		}
	}
	p.seats = kept
}

// cost is what all seats come to now.
func (p *repairs) cost() (sum quantity.Micro) {
	for _, s := range p.seats {
		sum += priceOf(s.shape, s.at)
	}
	return sum
}

// polish moves seats as long as that makes the batch cheaper, and places those
// without a place.
func (p *repairs) polish(without []*job) {
	for again := true; again && p.looks > 0; {
		again = false
		for _, j := range without {
			again = p.admit(j) || again
		}
		for _, s := range p.seats {
			if s.bound() || s.vain && !p.news(s) {
				continue
			}
			seen := len(p.touched)
			if m := p.better(s, s.shape, priceOf(s.shape, s.at)); m.gain > 0 {
				again = p.move(&m, s.shape, s.alt) || again
				continue
			}
			s.seen, s.vain = seen, true
		}
		for _, o := range p.offersInOrder() {
			if m := p.refill(o); m.gain > 0 {
				again = p.move(&m, m.steps[0].seat.shape, m.steps[0].seat.alt) || again
			}
		}
	}
}

// leave takes a seat from its place.
func (p *repairs) leave(s *seat) {
	p.done = append(p.done, relocation{s, s.at, s.contract, s.alt, s.shape})
	if s.contract == nil {
		return
	}
	p.put(s.contract, nil)
	p.on[s.at.offer] = slices.DeleteFunc(p.on[s.at.offer], func(x *seat) bool { return x == s })
	s.at, s.contract = nil, nil
}

// take puts a seat in a place, if it fits there and no limit forbids it.
func (p *repairs) take(s *seat, c *candidate, of *shape, alt int) bool {
	p.refresh(of)
	if c.req != "" {
		return false
	}
	l := p.limitsFor(s.job, of, purse{}, 0)
	if l.breaks(c) != "" {
		return false
	}
	var next []*candidate
	if _, others := of.best(l, false); others != nil {
		next = slices.DeleteFunc(slices.Clone(of.top[:1+len(others)]), func(x *candidate) bool { return x == c })
	}
	s.job.ordinals[ordinalKey(s.task.replica, 0)] = s.ordinal
	s.contract = p.newContract(s.job, of, c, next[:min(len(next), len(of.top)-1)], s.task.replica, alt)
	s.at, s.shape, s.alt = c, of, alt
	p.put(nil, s.contract)
	p.on[c.offer] = append(p.on[c.offer], s)
	return true
}

// undo takes back the moves from the n-th on.
func (p *repairs) undo(n int) {
	touched := p.done[n:]
	for _, d := range slices.Backward(touched) {
		if d.seat.contract != nil {
			p.put(d.seat.contract, nil)
			p.on[d.seat.at.offer] = slices.DeleteFunc(p.on[d.seat.at.offer], func(x *seat) bool { return x == d.seat })
			d.seat.at, d.seat.contract = nil, nil
		}
	}
	for _, d := range slices.Backward(touched) {
		s := d.seat
		s.at, s.contract, s.alt, s.shape = d.at, d.contract, d.alt, d.shape
	}
	back := map[*seat]bool{}
	for _, d := range touched {
		s := d.seat
		if s.contract != nil && !back[s] {
			back[s] = true
			p.put(nil, s.contract)
			p.on[s.at.offer] = append(p.on[s.at.offer], s)
		}
	}
	p.done = p.done[:n]
}

// admit places what had no place, by ejecting others if need be: a gang whole
// or not at all.
func (p *repairs) admit(j *job) bool {
	if len(j.tasks) == 0 {
		return false
	}
	j.budget(p.round, len(j.tasks))
	from := len(p.done)
	for alt := range j.alternatives() {
		of := p.shapeOf(j, alt)
		var made []*seat
		for _, t := range j.tasks {
			s := &seat{job: j, task: t, alt: alt, shape: of, ordinal: j.ordinals[ordinalKey(t.replica, 0)], started: j.started}
			m := p.better(s, of, penalty(of))
			if m.gain <= 0 || !p.move(&m, of, alt) {
				break
			}
			made = append(made, s)
		}
		if len(made) < len(j.tasks) && (j.gang() || len(made) == 0) {
			p.undo(from)
			for _, s := range made {
				s.recount()
			}
			continue
		}
		p.seats = append(p.seats, made...)
		j.tasks, j.open = j.tasks[len(made):], nil
		j.dec.Alternative = alt
		if j.started.IsZero() {
			j.started = p.now
		}
		return true
	}
	return false
}

// penalty is what a replica without a place counts for.
func penalty(s *shape) quantity.Micro {
	if s.wish.gpu == nil {
		return unplacedCore * quantity.Micro(max(s.wish.need.At(quantity.CPU)/1000, 1))
	}
	return unplacedCard * quantity.Micro(s.wish.gpu.count)
}

// news reports whether a cheaper place of a seat has changed since it last
// looked in vain.
func (p *repairs) news(s *seat) bool {
	now := priceOf(s.shape, s.at)
	for _, i := range p.touched[s.seen:] {
		if at := s.shape.at[i]; at >= 0 {
			if c := &s.shape.cands[at]; c.money == "" && c.quote.current() < now {
				return true
			}
		}
	}
	return false
}

// priceOf is what a seat costs in a place, or counts for without one.
func priceOf(s *shape, at *candidate) quantity.Micro {
	if at == nil {
		return penalty(s)
	}
	return at.quote.current()
}

// droppable reports whether a seat may lose its place, so that more of the
// batch has one in all: not if others of its intent would stay behind.
func (s *seat) droppable() bool { return s.job.replicas() == 1 }

// bound reports whether a seat without a place must not take one by itself: a
// gang comes back whole (admit, reseat) or not at all.
func (s *seat) bound() bool { return s.at == nil && s.job.gang() && s.job.replicas() > 1 }

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
	p.dropped = append(p.dropped, j)
}
