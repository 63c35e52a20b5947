package contend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// An intent that waits for more than is free would never be served if those that
// ask for less took every card that comes free. So the first in line have a
// reservation, as in EASY backfilling (Lifka 1995; Slurm's backfill is of that kind): the
// instant at which enough of what is held is known to end, and the places there.
// Until then another intent may still take
//
//   - what is free of those places and not needed then, and
//   - anything, if its own term ends a grace period before.
//
// Only ends that are known count: terms, and releases under way for less than
// the grace period. What ends within a grace period counts as one end, because
// contracts of one length never end in the same second and no intent waits for
// the seconds between them. While contracts without an end are in the way nothing is
// kept, because it is unknown how long it would lie idle. Reservations are made
// again in every pass, in the order of turns, each next to those before it;
// nothing of them is written. Higher priority goes over them (claimsBelow).

// Bounds, so that a round stays short whatever waits.
const (
	reservations = 8   // at a time
	searches     = 8   // for reservations in a pass
	knownEnds    = 256 // that are looked at for one
)

// reservation is what a claim keeps for the time when others have ended.
type reservation struct {
	until v1alpha1.Time
	// whole is what the intent will take.
	whole []draft.Taken
}

// backfill looks for the reservation of a job.
type backfill struct {
	*Contest
	job *draft.Job
	// ends are known ones that may make room for it, in order.
	ends []Ending
}

// Reserve makes a reservation for a job that may have one and whose turn found too
// little free, by known ends of contracts, in order; those of months matter to none.
func (r *Contest) Reserve(j *draft.Job, known []Ending) {
	b := &backfill{Contest: r, job: j}
	if b.ends = b.endsThatMatter(known); len(b.ends) == 0 {
		return
	}
	draft.Set(&r.Draft, &r.Searched, r.Searched+1)
	until, whole := b.soonest()
	if len(whole) == 0 || b.isTooLate(until) {
		return
	}
	cl := &claim{job: j, key: draft.KeyOf(j.TenantName, j.Name), Reserved: &reservation{until: until, whole: whole}}
	b.keepUntil(cl)
	r.setClaim(j, cl)
}

// explainReserved writes what is kept for a job.
func (r *Contest) explainReserved(j *draft.Job) {
	if c := r.Claims[j]; c != nil && c.Reserved != nil {
		f := &j.Open[0]
		f.Text = "what it needs of " + placesText(c.Reserved.whole) + " is kept from those that would hold it beyond " + draft.Stamp(c.Reserved.until) + "; " + f.Text
	}
}

// TellKept writes, for those that wait, for which intent what they could have is
// kept, and until when. Every round writes it again; the ledger has none of it.
func (r *Contest) TellKept() {
	var kept []*claim
	for _, j := range r.Waiting {
		if c := r.Claims[j]; c != nil && c.Reserved != nil {
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return
	}
	for _, j := range r.Waiting {
		if own := r.Claims[j]; j.Dec.Action != draft.Queued || len(j.Open) == 0 || own != nil && own.Reserved == nil {
			continue
		}
		r.Match.Trim()
		if c, o := r.keptFrom(j, kept); c != nil {
			j.Dec.Reason += fmt.Sprintf("; what is free of %s is kept for %s until %s: with a schedule.duration that ends %s before, it need not wait for that", o.Ref, c.key, draft.Stamp(c.Reserved.until), v1alpha1.Duration{Duration: r.Grace()})
		}
	}
}

// keptFrom is the first of reservations without which a replica of a job would
// fit, and where; nil if it waits for something else.
func (r *Contest) keptFrom(j *draft.Job, kept []*claim) (*claim, *inventory.Offer) {
	var own []draft.Taken
	if c := r.Claims[j]; c != nil {
		own = c.booked
	}
	for alt := range j.Alternatives() {
		s := r.ClassOf(j, alt)
		for _, c := range kept {
			if c.job == j || c.job.Priority < j.Priority {
				continue
			}
			for _, b := range c.booked {
				x := s.Of(b.Offer)
				if x == nil || !strings.HasPrefix(x.Fails, match.ReqCapacity) {
					continue
				}
				free := b.Offer.Free().Clone().Add(b.Size)
				for _, mine := range own {
					if mine.Offer == b.Offer {
						free = free.Add(mine.Size)
					}
				}
				if x.Size.Within(free) {
					return c, b.Offer
				}
			}
		}
	}
	return nil, nil
}

// keepUntil books what of a reservation's places no intent may take that stays
// longer: what is free now, but for what will be free next to it then.
func (r *backfill) keepUntil(cl *claim) {
	m := r.Mark()
	for i := range r.ends {
		e := &r.ends[i]
		if e.At.After(cl.Reserved.until.Time) {
			break
		}
		if slices.ContainsFunc(cl.Reserved.whole, func(b draft.Taken) bool { return e.GivesTo(b.Offer) }) {
			r.lendEnd(e)
		}
	}
	r.takeReserved()
	slack := make([]quantity.Vector, len(cl.Reserved.whole))
	for i, p := range cl.Reserved.whole {
		slack[i] = p.Offer.Free().Clone().Sub(p.Size)
	}
	r.Rollback(m)
	cl.booked = make([]draft.Taken, len(slack))
	for i, p := range cl.Reserved.whole {
		size := p.Size.Clone()
		for k := range size {
			free := p.Offer.Free().At(k)
			size[k] = max(0, free-max(0, min(free, slack[i].At(k))))
		}
		cl.booked[i] = draft.Taken{Place: p.Place, Size: size, On: p.Offer.Nodes().Have(p.On)}
		r.Shift(p.Place, cl.booked[i].Kept())
	}
}

// MayReserve reports whether a job waits for capacity that may come.
func (r *Contest) MayReserve(j *draft.Job) bool {
	if j.In == nil || j.Warm() || r.Claims[j] != nil || r.W.Deaf || j.Finding() || len(j.Open) == 0 || r.GivesUp(j) || r.Searched >= searches ||
		!slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind == draft.TaskFresh }) {
		return false
	}
	n := 0
	for k, c := range r.Claims {
		if c.Reserved != nil && k.Priority >= j.Priority {
			n++
		}
	}
	if n >= reservations {
		return false
	}
	for req := range j.Open[0].Rejected {
		if strings.HasPrefix(req, match.ReqCapacity) {
			return true
		}
	}
	return false
}

// isTooLate reports whether the job will not be waiting any more at an instant, or
// may not start then.
func (r *backfill) isTooLate(at v1alpha1.Time) bool {
	j := r.job
	s := &j.In.Spec.Schedule
	if timeout := j.In.Spec.Queue.Timeout.Duration; timeout > 0 && !at.Before(r.WaitingSince(j).Add(timeout)) {
		return true
	}
	if !s.Deadline.IsZero() && at.Add(s.Duration.Duration).After(s.Deadline.Time) {
		return true
	}
	return len(s.Windows) > 0 && !j.End.IsZero() && !at.Before(j.End.Time)
}

// endsThatMatter are those of known ends that may make room for the job, in order.
func (r *backfill) endsThatMatter(known []Ending) []Ending {
	j := r.job
	var classes []*match.Class
	for alt := range j.Alternatives() {
		classes = append(classes, r.ClassOf(j, alt))
	}
	var out []Ending
	for i := range known {
		e := &known[i]
		if e.Month || e.Contract.Metadata.Namespace == j.TenantName && e.Contract.Spec.Intent.Name == j.Name {
			continue
		}
		if slices.ContainsFunc(classes, func(s *match.Class) bool { return s.Of(e.Offer) != nil }) {
			if out = append(out, *e); len(out) == knownEnds {
				break
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	for k, c := range r.Claims {
		// Those before it will end in turn.
		if d := k.In.Spec.Schedule.Duration.Duration; c.Reserved != nil && d > 0 && k.Priority >= j.Priority {
			out = append(out, Ending{At: v1alpha1.TimeOf(c.Reserved.until.Add(d)), reserved: c})
		}
	}
	slices.SortFunc(out, EndsBefore)
	return out
}

// lendEnd makes what ends seem free, until it is rolled back.
func (r *backfill) lendEnd(e *Ending) {
	if e.reserved == nil {
		r.Lend(e.Contract)
		return
	}
	for _, b := range e.reserved.Reserved.whole {
		r.Shift(b.Place, b.Back())
	}
}

// knownEnds are those of contracts that no other intent waits for, as of this pass;
// again: something was placed since they were last asked for.
func (r *Contest) knownEnds(again bool) []Ending {
	if r.endsAt == r.Turns && !again {
		return r.ends
	}
	var out []Ending
	for _, e := range r.Endings() {
		if e.Month || e.Contract.Status.Displaced != nil {
			continue
		}
		if e.Contract.Status.Phase == v1alpha1.PhaseReleasing {
			e.At = v1alpha1.TimeOf(e.Contract.Status.Since.Add(r.Grace()))
			if !e.At.After(r.Now.Time) {
				continue // it is not seen gone, and when it will be is unknown
			}
		}
		out = append(out, e)
	}
	slices.SortFunc(out, EndsBefore)
	draft.Set(&r.Draft, &r.ends, out)
	draft.Set(&r.Draft, &r.endsAt, r.Turns)
	return out
}

// takeReserved takes what reservations before the job's will take of what is to
// come, until it is rolled back.
func (r *backfill) takeReserved() {
	for k, c := range r.Claims { // in any order: sums are the same
		if c.Reserved == nil || k == r.job || k.Priority < r.job.Priority {
			continue
		}
		for i, p := range c.Reserved.whole {
			r.Shift(p.Place, c.booked[i].Back())
			r.Shift(p.Place, p.Kept())
		}
	}
}

// soonest is the first of the ends at which the job fits, and where. Every end
// makes more room, so it is searched for by halves.
func (r *backfill) soonest() (until v1alpha1.Time, whole []draft.Taken) {
	ends, m := r.ends, r.Mark()
	defer r.Rollback(m)
	r.takeReserved()
	var ended []draft.Mark // one for each end that is made to seem over, in order
	before := func(n int) {
		for len(ended) > n {
			r.Rollback(ended[len(ended)-1])
			ended = ended[:len(ended)-1]
		}
	}
	fits := func(n int) []draft.Taken {
		for len(ended) < n {
			ended = append(ended, r.Mark())
			r.lendEnd(&ends[len(ended)-1])
		}
		before(n)
		return r.dryRun(r.job).places
	}
	instant := func(n int) int { // n and all that end within a grace period of the n-th
		for at := ends[n-1].At.Add(r.Grace()); n < len(ends) && !ends[n].At.After(at); {
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
		until = ends[high-1].At
	}
	return until, whole
}

// DropReservations forgets them: another pass makes them in the order of its
// turns.
func (r *Contest) DropReservations() {
	for j, c := range r.Claims {
		if c.Reserved != nil {
			r.Unbook(j)
		}
	}
	if r.Searched > 0 {
		draft.Set(&r.Draft, &r.Searched, 0)
	}
}

// ReservedBeyond is what is kept for those that wait longer than a job lasts, which may
// have it in its turn.
func (r *Contest) ReservedBeyond(j *draft.Job) (list []draft.Taken) {
	for k, c := range r.Claims {
		// What ends is seen gone a little later.
		if c.Reserved != nil && k.Priority >= j.Priority && !j.End.IsZero() && !j.End.Add(r.Grace()).After(c.Reserved.until.Time) {
			list = append(list, c.booked...)
		}
	}
	return list
}

// placesText names offers, at most three.
func placesText(list []draft.Taken) string {
	var out []string
	for _, b := range list {
		out = append(out, b.Offer.Ref)
	}
	slices.Sort(out)
	if n := len(out); n > 3 {
		out = append(out[:3], "others")
	}
	return strings.Join(out, ", ")
}
