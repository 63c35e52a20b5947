package contend

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/joint"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// An intent that has to have capacity and finds none may make others give way:
// those of lower priority (preemption), and those that hold what they borrowed
// of its tenant's quota (reclaiming). Nothing is taken at once:
//
//	turn      the intent's own turn finds nothing: claim picks victims, and what
//	          is free already of the place is kept for the claimant (book)
//	displace  victims get notice: status.displaced, with whom for and until when
//	          (their own grace). Until then they look for another place like
//	          contracts of a drained flavor, new first
//	leave     at that time they are released, to end as Preempted
//	held      the capacity counts as held until it is seen gone; then the
//	          claimant's turn simply finds it free
//
// A notice applies only while its claim does: every round makes the claims again,
// from the notices that apply, and takes back those that no claim needs any more.
//
// What rules out cascades and ping-pong:
//
//   - a victim's priority is strictly lower than its claimant's (or, reclaimed,
//     it holds borrowed quota and its claimant borrows none);
//   - an intent that had to give way displaces no other until it has been served
//     again or its file changes (IntentStatus.Displaced), so that no chain is
//     longer than one;
//   - a claimant is placed where it cannot be displaced by its victim again:
//     that one's priority is lower, and what it claimed itself is not borrowed;
//   - no contract is a victim of two claims, and none of a round's own
//     placements is a victim in it;
//   - what a claimant will cost is kept of its tenant's quota and budget, as the
//     capacity is: a victim of the same tenant does not spend elsewhere what its
//     leaving made room for.
//
// Fleet.safety.maxEnds does not count what is displaced: it guards against
// intents and providers that went away, while an intent asked for this, within its
// tenant's quota and priority (runbook.md, Ends held back).

// Contest serves those that wait, in turn.
type Contest struct {
	settle.Settler
	// Claims are what waiting jobs make others give way for; infeasible are the
	// searches for victims that found none.
	Claims     map[*draft.Job]*claim
	infeasible map[string]bool
	// searching are the jobs that searched in this round, searchers their tenants (looks.go).
	searching map[*draft.Job]bool
	searchers map[string]bool
	// Waiting jobs in the order in which they are served.
	Waiting []*draft.Job
	// ends are known ends as of the pass endsAt; Searched counts the searches for
	// reservations in a pass.
	ends     []Ending
	endsAt   int
	Searched int
	// Whole is what the fleet has; nil until asked.
	Whole *account.Fleet
	turns *joint.Turns
}

// New is one in which nothing has happened.
func New(s settle.Settler, whole *account.Fleet) Contest {
	return Contest{Settler: s, Whole: whole, Claims: map[*draft.Job]*claim{}, infeasible: map[string]bool{}}
}

// claim is what a waiting job makes others give way for.
type claim struct {
	job *draft.Job
	key string
	// victims are charged contracts, with notice or about to get it.
	victims []*v1alpha1.Contract
	causes  map[string]v1alpha1.Cause
	// left are those of its victims that are being released already.
	left []*v1alpha1.Contract
	// soon: everything it needs is being released by others anyway.
	soon bool
	// booked is free capacity that is kept for it, and kept what it will cost of its
	// tenant's quota and budget.
	booked []draft.Taken
	kept   []account.Change
	// Reserved: no contract gives way; it waits for what is known to end.
	Reserved *reservation
}

// causeOf is why a victim of the claim gives way.
func (cl *claim) causeOf(c *v1alpha1.Contract) v1alpha1.Cause {
	if d := c.Status.Displaced; d != nil {
		return d.Cause
	}
	return cl.causes[c.Metadata.Name]
}

// turn does what can be done for a job now, and else sees whether others have
// to give way.
func (r *Contest) turn(j *draft.Job, q place.Request) {
	r.Match.Trim()
	r.Unbook(j)
	r.EditJob(j)
	j.TurnAt = r.Turns
	if settle.WaitsForStart(&r.Settler, j) {
		return
	}
	progressed := false
	below := r.claimsBelow(j, q)
	r.withoutClaims(below, func() {
		r.Without(r.ReservedBeyond(j), func() {
			if r.finds(j) {
				return
			}
			if r.turns == nil {
				r.turns = joint.New(&r.Placer, r.wake)
			}
			progressed = r.turns.Fill(j, q)
			if len(j.Tasks) > 0 && !settle.WaitsForStart(&r.Settler, j) {
				r.makeClaim(j)
			}
		})
		if len(j.Tasks) > 0 && j.Known == nil {
			if r.MayReserve(j) {
				r.Reserve(j, r.knownEnds(progressed))
			}
			r.explainReserved(j)
		}
	})
	if progressed || r.Claims[j] != nil { // what was kept for them may be gone: they have their own turns
		for _, c := range below {
			r.Unbook(c.job)
		}
	}
}

// finds reports whether it is known what a job's turn finds, and writes it.
func (r *Contest) finds(j *draft.Job) bool {
	if j.Known == nil || !j.Asks() || len(r.Notices) > 0 && r.hasClaim(j) || r.mayDisplace(j) { // what it claims has instants of its own
		return false
	}
	j.Open = []draft.Failure{j.Known.Open}
	j.Open[0].Task = j.Tasks[0]
	return true
}

// claimsBelow are the claims of lower priority than a job: while it has its turn it may
// have what is kept for them, because they come after it, in this pass as in the first.
// None for a job that had to give way: it would permanently take what its claimant
// waits for. Nor, for a job that may borrow, those by which another tenant takes back its
// quota: it would take back what the job borrows of that in the next round.
func (r *Contest) claimsBelow(j *draft.Job, q place.Request) (below []*claim) {
	if len(r.Claims) == 0 || j.Displaced {
		return nil
	}
	for k, c := range r.Claims { // in any order: sums are the same
		if q.MayBorrow && k.TenantName != j.TenantName && k.Tenant.Lends() && r.By(draft.RulesAgain) {
			continue
		}
		if k.Priority < j.Priority {
			below = append(below, c)
		}
	}
	return below
}

// Without calls f as if bookings were not kept. It is no try that is taken back: what f
// places stays, and what was kept is put back beneath it, whether or not it still fits.
func (r *Contest) Without(list []draft.Taken, f func()) {
	for _, b := range list {
		r.Shift(b.Place, b.Back())
	}
	f()
	for _, b := range list {
		r.Shift(b.Place, b.Kept())
	}
}

// withoutClaims calls f as if nothing were kept for claims.
func (r *Contest) withoutClaims(claims []*claim, f func()) {
	var booked []draft.Taken
	for _, c := range claims {
		booked = append(booked, c.booked...)
		c.charge(r, account.Change.Reverse)
	}
	r.Without(booked, f)
	for _, c := range claims {
		c.charge(r, account.Change.Again)
	}
}

// charge does something with what the claim keeps of its tenant's account.
func (cl *claim) charge(r *Contest, how func(account.Change) account.Change) {
	for _, ch := range cl.kept {
		r.Booked(how(ch))
	}
}

// WithoutBooked calls f as if nothing were kept for jobs.
func (r *Contest) WithoutBooked(jobs []*draft.Job, f func()) {
	var claims []*claim
	for _, j := range jobs {
		if c := r.Claims[j]; c != nil {
			claims = append(claims, c)
		}
	}
	r.withoutClaims(claims, f)
}

// WithoutReserved calls f as if nothing were kept for those that wait longest (reserve.go),
// WithoutClaimed as if nothing were for those that others give way to.
func (r *Contest) WithoutReserved(f func()) { r.withoutKind(true, f) }

// WithoutClaimed is described with WithoutReserved.
func (r *Contest) WithoutClaimed(f func()) { r.withoutKind(false, f) }

func (r *Contest) withoutKind(reserved bool, f func()) {
	var claims []*claim
	for _, c := range r.Claims {
		if (c.Reserved != nil) == reserved {
			claims = append(claims, c)
		}
	}
	r.withoutClaims(claims, f)
}

// Unbook gives back what was kept for a job.
func (r *Contest) Unbook(j *draft.Job) {
	c := r.Claims[j]
	if c == nil {
		return
	}
	for _, b := range c.booked {
		r.Shift(b.Place, b.Back())
	}
	c.charge(r, account.Change.Reverse)
	r.setClaim(j, nil)
}

// book keeps what is free already of a claimant's places for it: else those
// that come after it, its victims among them, would take it while it waits for
// the rest. So it is with what its tenant may hold and spend: a victim of the same
// tenant would spend elsewhere what its leaving makes room for.
func (r *Contest) book(c *claim, found rehearsed) {
	if r.By(draft.RulesClaimsKeepMoney) {
		for _, ch := range found.charged {
			ch = ch.Keep()
			r.Booked(ch)
			c.kept = append(c.kept, ch)
		}
	}
	c.booked = draft.KeepFree(&r.Draft, found.places)
}

// noticesFor are the contracts that have notice to give way to a job, or are being
// released for it: current versions.
func (r *Contest) noticesFor(j *draft.Job) (charged, leaving []*v1alpha1.Contract) {
	list := r.Notices[draft.KeyOf(j.TenantName, j.Name)]
	if old := r.NamedBefore(j); old != "" {
		list = append(slices.Clone(list), r.Notices[draft.KeyOf(j.TenantName, old)]...)
	}
	for _, c := range list {
		c = r.Latest(c)
		switch {
		case c.Status.Displaced == nil || r.OfferOf(c) == nil:
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			if r.isCountedOn(c) {
				leaving = append(leaving, c)
			}
		case c.Status.Phase.Charged() && r.causeFor(j, c) != "":
			charged = append(charged, c)
		}
	}
	return charged, leaving
}

// isCountedOn reports whether what is being released is waited for. What moved for another is
// for as long as nothing else would move: where its pods never leave, what is free already of
// the place is for others then.
func (r *Contest) isCountedOn(c *v1alpha1.Contract) bool {
	if c.Status.Displaced.Cause != v1alpha1.Moved {
		return true
	}
	until := v1alpha1.TimeOf(c.Status.Displaced.Noticed.Add(max(r.Hold(), r.Grace())))
	r.Due(until)
	return until.After(r.Now.Time)
}

// hasClaim reports whether others give way to a job, or have just done so.
func (r *Contest) hasClaim(j *draft.Job) bool {
	return slices.ContainsFunc(r.Notices[draft.KeyOf(j.TenantName, j.Name)], func(c *v1alpha1.Contract) bool {
		c = r.Latest(c)
		return c.Status.Displaced != nil && (c.Status.Phase.Held() || c.Status.Since == r.Now)
	})
}

// Displace gives notice to the victims of the claims, takes back what no claim
// needs any more, and releases what had notice for long enough. It reports
// whether anything changed, and the jobs that now have something to do.
func (r *Contest) Displace() (more []*draft.Job) {
	if r.W.Deaf || r.Fleet.Suspend {
		return nil
	}
	wanted := map[string]*claim{}
	var claims []*claim
	for _, j := range r.Jobs {
		if c := r.Claims[j]; c != nil {
			claims = append(claims, c)
			for _, v := range c.victims {
				wanted[v.Metadata.Name] = c
			}
		}
	}
	for _, by := range draft.SortedNames(r.Notices) {
		for _, c := range r.Notices[by] {
			if c = r.Latest(c); c.Status.Phase.Charged() && c.Status.Displaced != nil {
				if j := r.reviewNotice(c, wanted[c.Metadata.Name]); j != nil {
					more = append(more, j)
				}
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b *claim) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
	for _, c := range claims {
		for _, v := range c.victims {
			if v = r.Latest(v); v.Status.Displaced == nil && !c.job.Displaced {
				more = append(more, r.notice(c, v))
			}
		}
	}
	if r.turns != nil {
		more, r.turns.Left = append(more, r.turns.Left...), nil
	}
	slices.SortFunc(more, func(a, b *draft.Job) int { return draft.CompareNames(a.TenantName, a.Name, b.TenantName, b.Name) })
	return slices.Compact(more)
}

// reviewNotice decides what becomes of a notice that applies; it returns the job
// of a contract that changed.
func (r *Contest) reviewNotice(c *v1alpha1.Contract, cl *claim) *draft.Job {
	d := c.Status.Displaced
	j := r.JobOf(c.Metadata.Namespace, c.Spec.Intent.Name)
	if j == nil || !slices.Contains(j.Live, c) {
		return nil
	}
	if cl == nil {
		tenant, name, _ := strings.Cut(d.By, "/")
		if by := r.JobOf(tenant, name); by != nil && (by.Silent || by.Frozen) {
			return nil // what its claimant wants now is unknown
		}
		next := *c
		next.Status.Displaced = nil
		if was := r.Before[c.Metadata.Name]; was != nil && reflect.DeepEqual(was, &next) {
			r.replaceVictim(j, c, was) // its notice was of this round: nothing happened
			return j
		}
		r.replaceVictim(j, c, &next)
		return j
	}
	if d.Leaves.After(r.Now.Time) {
		r.Due(d.Leaves)
		return nil
	}
	r.vacate(j, c)
	return j
}

// vacate releases a contract whose notice is over, and wants its replica placed again.
func (r *Contest) vacate(j *draft.Job, c *v1alpha1.Contract) {
	code := string(c.Status.Displaced.Cause)
	r.Drop(j, c, v1alpha1.PhasePreempted, code, r.GaveWay(c)) // which writes the job down
	j.DropTasks(c)
	if j.Dec.Action == "" && !j.Refused {
		settle.KeepAway(&r.Settler, j)
		j.AddTask(draft.Task{Kind: draft.TaskFresh, Replica: c.Spec.Intent.Replica, Old: c, Part: c.Spec.Intent.Part, Units: c.Spec.Intent.Units, Of: c.Spec.Intent.Of})
	}
	j.Displaced, j.Displacing, j.Noticed = true, true, true
	r.NoteProgress()
}

// notice gives a contract notice to give way, and returns its job. Where
// its intent asks for no grace it is released at once.
func (r *Contest) notice(cl *claim, c *v1alpha1.Contract) *draft.Job {
	j := r.wake(c.Metadata.Namespace, c.Spec.Intent.Name)
	next := *c
	grace := r.GraceOf(c)
	next.Status.Displaced = &v1alpha1.Displacement{
		Cause: cl.causeOf(c), By: cl.key, Noticed: r.Now, Leaves: v1alpha1.TimeOf(r.Now.Add(grace)),
	}
	r.replaceVictim(j, c, &next)
	draft.SetKey(&r.Draft, r.Notices, cl.key, append(r.Notices[cl.key], r.W.Ledger.Contract(c.Metadata.Name)))
	j.Displaced, j.Displacing, j.Noticed = true, true, true
	if grace <= 0 {
		r.vacate(j, &next)
	}
	r.Due(next.Status.Displaced.Leaves)
	return j
}

// replaceVictim writes a contract's new notice, or that it has none any more,
// and what its replica needs in consequence.
func (r *Contest) replaceVictim(j *draft.Job, c, next *v1alpha1.Contract) {
	r.Change(c, next)
	r.EditJob(j)
	r.Replace(j, c, next)
	j.DropTasks(c)
	if j.Dec.Action == "" && !j.Refused {
		if t := r.TaskFor(j, next.Spec.Intent.Replica, next); t != nil {
			t.Part, t.Units, t.Of = next.Spec.Intent.Part, next.Spec.Intent.Units, next.Spec.Intent.Of
			settle.KeepAway(&r.Settler, j)
			j.AddTask(*t)
		}
	}
	for i, l := range j.Dec.Contracts {
		if l.Name == next.Metadata.Name {
			r.SetLine(j, i, r.Line(next, l.Action))
		}
	}
}

// wake is the job of an intent, made now when it was thought to need nothing: its decision
// then takes the place of what was kept.
func (r *Contest) wake(tenant, name string) *draft.Job {
	if j := r.JobOf(tenant, name); j != nil {
		return j
	}
	j := r.NewJob(r.Find(tenant, name), tenant, name)
	r.SettleJob(j)
	r.AddJob(j)
	return j
}

// Void reports whether the claimant of a notice is known, by now, not to need
// that contract's place any more: no contract moves for it then.
func (r *Contest) Void(c *v1alpha1.Contract) bool {
	d := c.Status.Displaced
	if d.Cause == v1alpha1.Interrupted {
		return false
	}
	tenant, name, _ := strings.Cut(d.By, "/")
	by := r.JobOf(tenant, name)
	switch {
	case by == nil:
		return r.Renamed[[2]string{tenant, name}] == nil // it is served as it asks, or goes by another name now
	case by.Silent || by.Frozen:
		return false // what it wants now is unknown
	case by.In == nil || len(by.Tasks) == 0 || r.TimedOut(by):
		return true
	}
	cl := r.Claims[by]
	if cl == nil {
		return by.TurnAt == r.Turns && r.Turns > 0
	}
	return !slices.ContainsFunc(cl.victims, func(v *v1alpha1.Contract) bool { return v.Metadata.Name == c.Metadata.Name })
}

// TellDisplaced writes, for an intent that has notice, that it has. It reports
// whether it wrote anything.
func (r *Contest) TellDisplaced(j *draft.Job) bool {
	at := slices.IndexFunc(j.Live, func(c *v1alpha1.Contract) bool { return c.Status.Displaced != nil })
	if at < 0 || slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind != draft.TaskLeave }) {
		return false
	}
	c := j.Live[at]
	action := draft.ActionOf(j.Dec.Contracts)
	if action == draft.Keep && j.Noticed {
		action = draft.Preempt
	}
	j.Settle(action, v1alpha1.IntentPlaced, string(c.Status.Displaced.Cause), "%s; it leaves %s unless it finds another place before",
		r.GaveWay(c), draft.Stamp(c.Status.Displaced.Leaves))
	return true
}

// setClaim makes a claim that of a job; nil: it has none.
func (r *Contest) setClaim(j *draft.Job, c *claim) {
	if c != nil {
		draft.SetKey(&r.Draft, r.Claims, j, c)
	} else if r.Claims[j] != nil {
		draft.Delete(&r.Draft, r.Claims, j)
	}
}
