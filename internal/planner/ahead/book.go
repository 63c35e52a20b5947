package ahead

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// Book decides the bookings of jobs whose terms have not begun: the highest priority
// first, then who came first. It reports whether that changed what others may have, and
// returns the jobs that wait, for the next turn. unclaimed calls a function as if nothing were
// kept for those that others give way to: that is not for new bookings, and takes nothing
// from those that there are.
func Book(r *place.Placer, jobs []*draft.Job, unclaimed func(func())) (changed bool, waiting []*draft.Job) {
	jobs = slices.Clone(jobs)
	before := r.Advances
	slices.SortStableFunc(jobs, func(a, b *draft.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.FirstSeen.At.Compare(b.FirstSeen.At.Time),
			strings.Compare(a.TenantName, b.TenantName), strings.Compare(a.Name, b.Name))
	})
	seen := newViews(&r.Draft)
	seen.each = LooksOfReplica(r)
	for _, j := range jobs {
		r.Match.Trim()
		s := &j.In.Spec.Schedule
		b := &booker{Placer: r, job: j, views: seen, unclaimed: unclaimed, from: s.NotBefore, to: v1alpha1.TimeOf(s.NotBefore.Add(s.Duration.Duration))}
		if !b.run() {
			waiting = append(waiting, j)
		}
	}
	return r.Advances != before, waiting
}

// booker decides the bookings of one job.
type booker struct {
	*place.Placer
	job      *draft.Job
	views    *views // of all jobs that book
	from, to v1alpha1.Time

	unclaimed func(func())
	// keeps stay as they are; changed are those whose intent changed or wants fewer, and
	// short those that move, because their offers cannot hold them.
	keeps, changed, short []*v1alpha1.Contract
	// why is what offers lack of bookings, by name: of those that move, and of those that
	// stay while that may pass (waits).
	why map[string]string
	// moves is when the first of those that wait is moved.
	moves v1alpha1.Time
}

// run reports whether the job has all that it asks for, or keeps what it had.
func (b *booker) run() (settled bool) {
	j := b.job
	b.EditJob(j)
	j.Open, j.Tasks, j.Dec.Action = nil, nil, ""
	j.End, j.Seconds = b.to, Seconds(b.from, b.to)
	b.sort()
	missing := b.missing()
	if len(missing) == 0 && len(b.changed) == 0 {
		b.settle("", "")
		return true
	}
	f := b.again(missing)
	switch {
	case f == nil:
		b.settle("", "")
	case len(b.changed) > 0:
		b.settle(lifecycle.CodeBooked, "; what its file now asks for cannot be booked, and what was booked before stays: "+f.Text)
		return !b.By(draft.RulesAgainAll) // who gives way in this round may make room for it
	case len(b.short) > 0:
		b.settle(lifecycle.CodeBookingShort, "; not all of it can be kept, and no other place fits: "+b.why[b.short[0].Metadata.Name]+"; "+f.Text)
		return !b.By(draft.RulesAgainAll)
	case !b.moves.IsZero(): // the intent says since when, which waits counts from
		b.settle("", "; "+f.Text)
		return false
	default:
		b.mark()
		f.Task = draft.Task{Kind: draft.TaskFresh}
		j.Open = []draft.Failure{*f}
		for _, k := range b.missing() {
			j.Tasks = append(j.Tasks, draft.Task{Kind: draft.TaskFresh, Replica: k})
		}
		return false
	}
	return true
}

// refused reports whether the job was refused for good: it keeps what it has booked, which
// moves where it has to, and books no more.
func (b *booker) refused() bool { return b.job.Refused && b.By(draft.RulesAgain) }

// missing are the replicas that have no booking to keep, those that move first.
func (b *booker) missing() (out []int32) {
	for k := range b.job.Replicas() {
		if b.refused() && !slices.ContainsFunc(b.short, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Replica == k }) {
			continue
		}
		if !slices.ContainsFunc(b.keeps, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Replica == k }) {
			out = append(out, k)
		}
	}
	moves := func(k int32) int {
		return slices.IndexFunc(b.short, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Replica == k })
	}
	slices.SortStableFunc(out, func(x, y int32) int { return cmp.Compare(min(moves(y), 0), min(moves(x), 0)) })
	return out
}

// sort divides the job's bookings.
func (b *booker) sort() {
	j := b.job
	b.why = map[string]string{}
	list := slices.Clone(j.Booked)
	slices.SortFunc(list, func(x, y *v1alpha1.Contract) int { return Compare(&b.Draft, x, y) })
	seen := map[int32]bool{}
	for _, c := range list {
		k := c.Spec.Intent.Replica
		o := b.OfferOf(c)
		if !seen[k] {
			puts, was := b.views.axis.Puts(), c
			c = Rewrite(b.Placer, j, c, b.from, b.to)
			b.views.rewritten(puts, o, was, c)
		}
		why, passes := "", false
		fits := o != nil && b.views.keeps(o, c)
		b.unclaimed(func() { why, passes = b.lacks(c, fits) })
		switch {
		case c.Spec.Intent.Digest != j.In.Digest || k >= j.Replicas() || seen[k]:
			b.changed = append(b.changed, c)
			continue
		case why != "" && passes && b.waits(c):
			b.why[c.Metadata.Name] = why
			b.keeps = append(b.keeps, c)
		case why != "":
			b.why[c.Metadata.Name] = why
			b.short = append(b.short, c)
		default:
			b.keeps = append(b.keeps, c)
		}
		seen[k] = true
	}
}

// lacks is why a booking cannot be kept where it is, "" while it can; those after it in
// the order of Compare do not count. passes: what is missing may be back in a moment. What
// a provider that is held back would lose (safety.maxEnds) is kept. fits: it is known that its
// offer has room for it.
func (b *booker) lacks(c *v1alpha1.Contract, fits bool) (why string, passes bool) {
	r := b.Placer
	o := r.OfferOf(c)
	switch {
	case r.W.Deaf, r.HeldBack.Provider(c.Spec.Provider):
		return "", false
	case o == nil && !isHeard(r, c.Spec.Provider):
		return "", false // it has not said yet what it offers
	case o == nil, o.State == model.Withdrawn:
		return c.Spec.Provider + "/" + c.Spec.Flavor + " is no longer offered", true
	case o.State == model.Lost:
		return c.Spec.Provider + " is lost", false // it was silent for long
	case !o.LeaveBy.IsZero() && o.LeaveBy.Before(c.Spec.Term.End.Time):
		return c.Spec.Provider + "/" + c.Spec.Flavor + " is being emptied by " + draft.Stamp(o.LeaveBy), false
	case o.State != model.Fresh:
		return "", false // silence is not loss
	case fits:
		return "", false
	}
	below := b.views.below(o, c)
	if _, lacks := below.Until(c.Spec.Term.Start, c.Spec.Term.End, draft.OnAxis(&r.Draft).Ahead(o, c)); lacks {
		return lackIn(r, c, below), true
	}
	return "", false
}

// waits reports whether a booking that its offer cannot keep stays where it is for now:
// for a grace period of the fleet, as what is missing may be back by then, though not
// beyond when it is to be delivered.
func (b *booker) waits(c *v1alpha1.Contract) bool {
	since := b.Now
	if st := b.job.State; st != nil && (st.Status.Reason == lifecycle.CodeBookingShort || b.refused()) {
		since = st.Status.Since
	}
	at := lifecycle.Earlier(v1alpha1.TimeOf(since.Add(b.Grace())), v1alpha1.TimeOf(c.Spec.Term.Start.Add(-b.Fleet.Bookings.LeadTime())))
	if !at.After(b.Now.Time) {
		return false
	}
	b.moves = lifecycle.Earlier(b.moves, at)
	b.Due(at)
	return true
}

// again books the replicas that are missing in place of those that changed or cannot be
// kept: all of a gang, else as many as fit, all that move among them. Nothing is changed
// where that fails.
func (b *booker) again(missing []int32) *draft.Failure {
	j := b.job
	m, was := b.Mark(), b.views.moment()
	for _, c := range b.changed {
		b.cancel(c, v1alpha1.PhaseReleased, lifecycle.CodeChanged, "the intent changed")
	}
	for _, c := range slices.Clone(j.Booked) {
		if slices.Contains(b.short, c) {
			b.cancel(c, v1alpha1.PhaseFailed, lifecycle.CodeBookingLost, "moved, because it could not be kept: "+b.why[c.Metadata.Name])
		}
	}
	x := &search{Placer: b.Placer, job: j, from: b.from, to: b.to, beside: b.keeps, hints: &hints{}, views: b.views}
	x.looks = looksFor(b.Placer, j, len(missing), b.views.each)
	x.how = b.For(j, place.Request{}, max(len(missing), 1))
	var first *draft.Failure
	var made []*v1alpha1.Contract
	if j.Gang() {
		if first = x.all(missing); first == nil {
			made = x.placed
		}
	} else if x.wholly(missing) {
		made = x.placed
	} else {
		for i := range missing {
			if first = x.all(missing[i : i+1]); first != nil {
				first.Text = strconv.Itoa(len(b.keeps)+i) + " of " + strconv.Itoa(int(j.Replicas())) + " replicas fit; " + first.Text
				break
			}
			made = append(made, x.placed...)
			x.beside = append(slices.Clone(x.beside), x.placed...)
		}
	}
	if first != nil && (len(made) == 0 || len(b.changed) > 0 || len(made) < len(b.short)) {
		b.views.takeBack(was, func() { b.Rollback(m) })
		b.EditJob(j)
		j.Dec.Near, j.Dec.Try = x.hints.near, x.hints.try
		return first
	}
	b.EditJob(j)
	for _, c := range made {
		j.Booked = append(slices.Clone(j.Booked), c)
		j.Dec.Contracts = append(j.Dec.Contracts, b.Line(c, draft.Place))
	}
	b.NoteProgress()
	b.Keep(m)
	if first != nil {
		j.Dec.Near, j.Dec.Try = x.hints.near, x.hints.try
	}
	b.keeps, b.short = append(b.keeps, made...), nil
	return first
}

// all books replicas of the job, all of them or none; the failure of the first that found
// no place.
func (x *search) all(replicas []int32) *draft.Failure {
	var first *draft.Failure
	for alt := range x.job.Alternatives() {
		for _, cheap := range [...]bool{false, true} {
			if cheap && !place.Limited(x.job) {
				continue
			}
			y := *x
			y.cheap = cheap
			f := y.by(alt, replicas)
			if f == nil {
				*x = y
				x.EditJob(x.job)
				x.job.Dec.Alternative = alt
				return nil
			}
			if first == nil {
				first = f
			}
			if x.looks.Ended() {
				x.looks.Explain(&x.Draft, first)
				return first
			}
		}
	}
	x.explain(0, replicas, first)
	return first
}

// cancel ends a booking of the job.
func (b *booker) cancel(c *v1alpha1.Contract, end v1alpha1.Phase, code, text string) {
	axis := draft.OnAxis(&b.Placer.Draft)
	puts, o := axis.Puts(), b.OfferOf(c)
	axis.CancelBooking(b.job, c, end, code, text)
	b.views.remove(puts, o, b.job.Tenant, c)
}

// mark writes into bookings why their offers cannot keep them, and takes that out of those
// that they can keep again. Another wording alone is written once a status interval.
func (b *booker) mark() {
	j := b.job
	for _, c := range slices.Clone(j.Booked) {
		var is ledger.Reason
		if why := b.why[c.Metadata.Name]; why != "" {
			is = ledger.Reason{Code: lifecycle.CodeBookingShort, Message: why}
		}
		if was := ledger.ReasonOf(c); was == is || is.Code == "" && was.Code != lifecycle.CodeBookingShort {
			continue
		}
		next, puts := ledger.Explain(c, is), b.views.axis.Puts()
		if is.Code == c.Status.Reason {
			b.Status(c, next)
		} else {
			b.Change(c, next)
		}
		b.views.rewritten(puts, b.OfferOf(c), c, next)
		replace(b.Placer, j, c, next)
	}
}

// settle ends the job as booked.
func (b *booker) settle(code, more string) {
	j := b.job
	b.mark()
	if code == "" && !b.moves.IsZero() {
		code = lifecycle.CodeBookingShort
		more += "; not all of it can be kept as it is, and what cannot moves at " + draft.Stamp(b.moves) + ": " + b.firstWhy()
	}
	for _, c := range j.Booked {
		if !slices.ContainsFunc(j.Dec.Contracts, func(l draft.ContractLine) bool { return l.Name == c.Metadata.Name }) {
			j.Dec.Contracts = append(j.Dec.Contracts, b.Line(c, draft.Keep))
		}
	}
	b.EditJob(j)
	j.Dec.Near, j.Dec.Try = nil, nil
	text := bookedText(j, b.from, b.to)
	if b.refused() {
		j.Settle(draft.Refuse, v1alpha1.IntentRefused, j.State.Status.Reason, "%s", j.State.Status.Message)
		return
	}
	if j.Settle(draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentBooked, code, "%s", text+more); j.Dec.Action == draft.Place {
		j.Dec.Also = j.Shared
	}
	if st := j.State; code == lifecycle.CodeBookingShort {
		if j.Since = b.Now; st != nil && st.Status.Reason == code { // waits counts from it
			j.Since = st.Status.Since
		}
	}
	j.Dec.Expected = b.from
}

// firstWhy is why the first booking that is not moved yet cannot be kept.
func (b *booker) firstWhy() string {
	for _, c := range b.job.Booked {
		if why := b.why[c.Metadata.Name]; why != "" {
			return why
		}
	}
	return ""
}

// Look shows what every offer is during the term of a job's bookings, as if they were not
// there (Placer.LookedAhead). It changes the draft: the caller takes that back.
func Look(r *place.Placer, j *draft.Job) {
	term := j.Booked[0].Spec.Term
	for _, c := range j.Booked {
		r.Put(c, nil)
	}
	r.EditJob(j)
	j.Booked = nil
	x := &search{Placer: r, job: j, from: term.Start, to: term.End, hints: &hints{}, views: newViews(&r.Draft)}
	x.how = r.For(j, place.Request{}, int(j.Replicas()))
	x.one(0, 0, x.how, 0)
}
