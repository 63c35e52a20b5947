package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Who waits for more than is free would wait for ever if whoever asks for less
// took every card that comes free. So the first in line have a reservation, as
// in EASY backfilling (Lifka 1995; Slurm's backfill is of that kind): the
// instant at which enough of what stands is known to end, and the places there.
// Until then another intent may still take
//
//   - what is free of those places and not needed then, and
//   - anything, if its own term ends a grace period before.
//
// Only ends that are known count: terms, and releases under way for less than
// the grace period. What ends within a grace period counts as one end, because
// contracts of one length never end in the same second and nobody waits for the
// seconds between them. While contracts without an end are in the way nothing is
// kept, because nobody could say how long it would lie idle. Reservations are
// made anew in every pass, in the order of turns, each beside those before it;
// nothing of them is written. Higher priority goes over them (liftBelow).

// Bounds, so that a round stays short whatever waits.
const (
	reservations = 8   // that stand at a time
	searches     = 8   // for reservations in a pass
	knownEnds    = 256 // that are looked at for one
)

// reservation is what a claim keeps for the time when others have ended.
type reservation struct {
	until v1alpha1.Time
	// whole is what the intent will take.
	whole []booking
}

// reserve makes a reservation for a job whose turn found too little free.
func (r *round) reserve(j *job) {
	if !r.mayReserve(j) {
		return
	}
	ends := r.endsFor(j)
	if len(ends) == 0 {
		return
	}
	r.searched++
	r.takeReserved(j, -1)
	until, whole := r.soonest(j, ends)
	r.takeReserved(j, 1)
	if len(whole) == 0 || r.tooLate(j, until) {
		return
	}
	cl := &claim{job: j, key: keyOf(j.tenantName, j.name), reserved: &reservation{until: until, whole: whole}}
	r.keepUntil(cl, ends)
	r.setClaim(j, cl)
}

// tellReserved says what is kept for a job.
func (r *round) tellReserved(j *job) {
	if c := r.claims[j]; c != nil && c.reserved != nil {
		f := &j.open[0]
		f.text = "what it needs of " + placesText(c.reserved.whole) + " is kept from those that would hold it beyond " + stamp(c.reserved.until) + "; " + f.text
	}
}

// tellKept says of those that wait for whom what they could have is kept, and
// until when. It is said anew in every round and not written down.
func (r *round) tellKept() {
	var kept []*claim
	for _, j := range r.waiting {
		if c := r.claims[j]; c != nil && c.reserved != nil {
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return
	}
	for _, j := range r.waiting {
		if own := r.claims[j]; j.dec.Action != Queued || len(j.open) == 0 || own != nil && own.reserved == nil {
			continue
		}
		if c, o := r.keptFrom(j, kept); c != nil {
			j.dec.Reason += fmt.Sprintf("; what is free of %s is kept for %s until %s: with a schedule.duration that ends %s before, it need not wait for that", o.Ref, c.key, stamp(c.reserved.until), v1alpha1.Duration{Duration: r.grace()})
		}
	}
}

// keptFrom is the first of reservations without which a replica of a job would
// fit, and where; nil if it waits for something else.
func (r *round) keptFrom(j *job, kept []*claim) (*claim, *inventory.Offer) {
	var own []booking
	if c := r.claims[j]; c != nil {
		own = c.booked
	}
	for alt := range j.alternatives() {
		s := r.shapeOf(j, alt)
		for _, c := range kept {
			if c.job == j || c.job.priority < j.priority {
				continue
			}
			for _, b := range c.booked {
				x := s.Of(b.offer)
				if x == nil || !strings.HasPrefix(x.Fails, match.ReqCapacity) {
					continue
				}
				free := b.offer.Free().Clone().Add(b.size)
				for _, mine := range own {
					if mine.offer == b.offer {
						free = free.Add(mine.size)
					}
				}
				if x.Size.Within(free) {
					return c, b.offer
				}
			}
		}
	}
	return nil, nil
}

// keepUntil books what of a reservation's places nobody may take who stays
// longer: what is free now, but for what will be free beside it then.
func (r *round) keepUntil(cl *claim, ends []ending) {
	m := r.mark()
	for i := range ends {
		e := &ends[i]
		if e.at.After(cl.reserved.until.Time) {
			break
		}
		if slices.ContainsFunc(cl.reserved.whole, func(b booking) bool { return r.givesTo(e, b.offer) }) {
			r.lendEnd(e)
		}
	}
	r.takeReserved(cl.job, -1)
	slack := make([]quantity.Vector, len(cl.reserved.whole))
	for i, p := range cl.reserved.whole {
		slack[i] = p.offer.Free().Clone().Sub(p.size)
	}
	r.rollback(m)
	cl.booked = make([]booking, len(slack))
	for i, p := range cl.reserved.whole {
		size := p.size.Clone()
		for k := range size {
			free := p.offer.Free().At(k)
			size[k] = max(0, free-max(0, min(free, slack[i].At(k))))
		}
		r.shift(p.offer, size.Negative())
		cl.booked[i] = booking{p.offer, size}
	}
}

// mayReserve reports whether a job waits for capacity that may come.
func (r *round) mayReserve(j *job) bool {
	if j.in == nil || j.warm() || r.claims[j] != nil || r.w.Deaf || j.finding() || len(j.open) == 0 || r.givesUp(j) || r.searched >= searches ||
		!slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind == fresh }) {
		return false
	}
	n := 0
	for k, c := range r.claims {
		if c.reserved != nil && k.priority >= j.priority {
			n++
		}
	}
	if n >= reservations {
		return false
	}
	for req := range j.open[0].rejected {
		if strings.HasPrefix(req, match.ReqCapacity) {
			return true
		}
	}
	return false
}

// tooLate reports whether a job will not be waiting any more at an instant, or
// may not start then.
func (r *round) tooLate(j *job, at v1alpha1.Time) bool {
	s := &j.in.Spec.Schedule
	if timeout := j.in.Spec.Queue.Timeout.Duration; timeout > 0 && !at.Before(r.waitingSince(j).Add(timeout)) {
		return true
	}
	if !s.Deadline.IsZero() && at.Add(s.Duration.Duration).After(s.Deadline.Time) {
		return true
	}
	return len(s.Windows) > 0 && !j.end.IsZero() && !at.Before(j.end.Time)
}

// endsFor are the known ends that may matter to a job, in order.
func (r *round) endsFor(j *job) []ending {
	if r.endsAt != r.turns || r.progressed {
		r.ends, r.endsAt = r.knownEnds(), r.turns
	}
	var shapes []*match.Class
	for alt := range j.alternatives() {
		shapes = append(shapes, r.shapeOf(j, alt))
	}
	var out []ending
	for i := range r.ends {
		e := &r.ends[i]
		if e.contract.Metadata.Namespace == j.tenantName && e.contract.Spec.Intent.Name == j.name {
			continue
		}
		if slices.ContainsFunc(shapes, func(s *match.Class) bool { return s.Of(e.offer) != nil }) {
			if out = append(out, *e); len(out) == knownEnds {
				break
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	for k, c := range r.claims {
		// Those before it will end in turn.
		if d := k.in.Spec.Schedule.Duration.Duration; c.reserved != nil && d > 0 && k.priority >= j.priority {
			out = append(out, ending{at: v1alpha1.TimeOf(c.reserved.until.Add(d)), reserved: c})
		}
	}
	slices.SortFunc(out, endsBefore)
	return out
}

// lendEnd makes what ends seem free, until it is rolled back.
func (r *round) lendEnd(e *ending) {
	if e.reserved == nil {
		r.lend(e.contract)
		return
	}
	for _, b := range e.reserved.reserved.whole {
		r.shift(b.offer, b.size)
	}
}

// givesTo reports whether what ends makes room on an offer.
func (r *round) givesTo(e *ending, to *inventory.Offer) bool {
	is := func(o *inventory.Offer) bool { return o == to || slices.Contains(to.PoolPeers, o) }
	if e.reserved == nil {
		return is(e.offer)
	}
	return slices.ContainsFunc(e.reserved.reserved.whole, func(b booking) bool { return is(b.offer) })
}

// knownEnds are those of contracts that nobody else waits for.
func (r *round) knownEnds() []ending {
	var out []ending
	for _, e := range r.endings() {
		if e.month || e.contract.Status.Displaced != nil {
			continue
		}
		if e.contract.Status.Phase == v1alpha1.PhaseReleasing {
			e.at = v1alpha1.TimeOf(e.contract.Status.Since.Add(r.grace()))
			if !e.at.After(r.now.Time) {
				continue // it is not seen gone, and nobody knows when it will be
			}
		}
		out = append(out, e)
	}
	slices.SortFunc(out, endsBefore)
	return out
}

// takeReserved takes what reservations before a job's will take of what is to
// come (-1), or gives it back (1).
func (r *round) takeReserved(j *job, sign int64) {
	for k, c := range r.claims { // in any order: sums do not tell
		if c.reserved == nil || k == j || k.priority < j.priority {
			continue
		}
		for i, p := range c.reserved.whole {
			rest := p.size.Clone().Sub(c.booked[i].size)
			if sign < 0 {
				rest = rest.Negative()
			}
			r.shift(p.offer, rest)
		}
	}
}

// soonest is the first of the known ends at which a job fits, and where. Every
// end makes more room, so it is searched for by halves.
func (r *round) soonest(j *job, ends []ending) (until v1alpha1.Time, whole []booking) {
	var ended []mark // one an end that is lent, in order
	before := func(n int) {
		for len(ended) > n {
			r.rollback(ended[len(ended)-1])
			ended = ended[:len(ended)-1]
		}
	}
	fits := func(n int) []booking {
		for len(ended) < n {
			ended = append(ended, r.mark())
			r.lendEnd(&ends[len(ended)-1])
		}
		before(n)
		return byOffer(r.rehearse(j))
	}
	instant := func(n int) int { // n and all that end within a grace period of the n-th
		for at := ends[n-1].at.Add(r.grace()); n < len(ends) && !ends[n].at.After(at); {
			n++
		}
		return n
	}
	low, high := 0, 0 // it does not fit after low ends, it does after high
	for step := 1; len(whole) == 0 && high < len(ends); step *= 2 {
		low, high = high, instant(min(high+step, len(ends)))
		whole = fits(high)
	}
	for len(whole) > 0 {
		mid := instant(low + max((high-low)/2, 1))
		if mid >= high {
			mid = instant(low + 1)
		}
		if mid >= high {
			break
		}
		if at := fits(mid); len(at) > 0 {
			high, whole = mid, at
		} else {
			low = mid
		}
	}
	before(0)
	if len(whole) > 0 {
		until = ends[high-1].at
	}
	return until, whole
}

// byOffer adds up what is taken of each offer.
func byOffer(places []booking) []booking {
	var out []booking
	for _, p := range places {
		if i := slices.IndexFunc(out, func(b booking) bool { return b.offer == p.offer }); i >= 0 {
			out[i].size = out[i].size.Add(p.size)
			continue
		}
		out = append(out, booking{p.offer, p.size.Clone()})
	}
	return out
}

// dropReservations forgets them: another pass makes them in the order of its
// turns.
func (r *round) dropReservations() {
	for j, c := range r.claims {
		if c.reserved != nil {
			r.unbook(j)
		}
	}
	r.searched = 0
}

// liftReserved gives back, for the turn of a job that ends in time, what is
// kept for those that wait longer, and returns how to keep it again.
func (r *round) liftReserved(j *job) (again func()) {
	var lifted []booking
	for k, c := range r.claims {
		// What ends is seen gone a little later.
		if c.reserved != nil && k.priority >= j.priority && !j.end.IsZero() && !j.end.Add(r.grace()).After(c.reserved.until.Time) {
			lifted = append(lifted, c.booked...)
		}
	}
	for _, b := range lifted {
		r.shift(b.offer, b.size)
	}
	return func() {
		for _, b := range lifted {
			r.shift(b.offer, b.size.Negative())
		}
	}
}

// placesText names offers, at most three.
func placesText(list []booking) string {
	var out []string
	for _, b := range list {
		out = append(out, b.offer.Ref)
	}
	slices.Sort(out)
	if n := len(out); n > 3 {
		out = append(out[:3], "others")
	}
	return strings.Join(out, ", ")
}
