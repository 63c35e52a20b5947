package settle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// What a round may cost is counted in units of work, never in time, and as if no
// earlier round had left anything. So the daemon, a replay and a plan from memory
// agree. A unit is one offer that is looked at for one kind of request, some
// 0.1 µs; an intent that wants an offer is charged for
//
//	each alternative     every offer of the market; intents that ask for the same share this
//	itself               unitsOfIntent
//	each of its replicas UnitsOfReplica, for as many as its tenant may still hold
//	spec.split           the offers that one search for parts looks at (place.LooksOfParts)
//	schedule.book        those that each replica looks at, and what is booked on them (booked.go)
//	placement.where      what it may cost on every offer, on an account of its own (conditions.go)
//
// A tenant has limits.work units a round, all together have roundWork times as
// much, and limits.conditions for their conditions. What does not fit has its
// turn in one of the next rounds; what is held costs nothing, and what has to go
// elsewhere because its provider fails, is drained or takes it back always has
// its turn, and so have who waits for others that make way for it, and intents
// that belong together with one that has it.
//
// Tenants take turns, one intent each. A tenant's intents that were never looked
// at, or have changed since, go first, by priority and age; then those that were
// looked at before and found nothing. The order of tenants, and of the latter,
// begins elsewhere each minute (turns.go): where the rotation is, is a function of
// World.Now, which each commit of the ledger records (trailer Now) and the recorded
// round of a market (round.json) repeats, and of what the ledger states of intents.
// A pointer of its own would have to be written by rounds that write nothing else,
// and a round that writes nothing must make no commit. An intent that has its turn is looked at whole, so that
// each one's turn comes, whatever it costs.
const (
	unitsOfIntent  = 100
	UnitsOfReplica = 400
	// roundWork is how many times limits.work all tenants have together.
	roundWork = 20
	// unseenAgain is when what was never looked at is.
	unseenAgain = 10 * time.Second
	// togetherTurns bounds how many intents have their turn with another one.
	togetherTurns = 64
)

const (
	unworkedText = "its tenant's work of this round is used up (spec.limits.work of the fleet): it is looked at in one of the next rounds"
	planningText = "it waits for its turn: this round is full (20 times spec.limits.work of the fleet); it is looked at in one of the next rounds, in the same order"
)

// bill is what one round has charged so far.
type bill struct {
	settler    *Settler
	tenants    map[string]int64
	all        int64
	Conditions int64
	paid       map[string]bool
	paidWhere  map[string]bool
}

func (r *Settler) newBill() *bill {
	return &bill{settler: r, tenants: map[string]int64{}, paid: map[string]bool{}, paidWhere: map[string]bool{}}
}

// Over is why a job does not fit into the round any more, "" while it does.
func (b *bill) Over(j *draft.Job) (code, text string) {
	l := &b.settler.Limits
	switch {
	case j.In.Where != nil && b.Conditions >= l.Conditions:
		return lifecycle.CodeConditions, postponedText
	case b.tenants[j.TenantName] >= l.Work:
		return lifecycle.CodeWork, unworkedText
	case b.all >= roundWork*l.Work:
		return lifecycle.CodePlanning, planningText
	}
	return "", ""
}

// Charge puts a job's alternatives on the bill, and so many replicas; those in
// except are about to be replaced.
func (b *bill) Charge(j *draft.Job, replicas int, except ...*v1alpha1.Contract) {
	r := b.settler
	var q place.Request
	if j.Known == nil {
		q = r.For(j, place.Request{}, replicas, except...)
	}
	offers := int64(len(r.Inventory.Offers()))
	units := unitsOfIntent + place.LooksOfParts(&r.Placer, j, replicas)
	if most, _ := r.Accounts.Most(j.Tenant); replicas > 0 {
		units += UnitsOfReplica * max(0, min(int64(replicas), most-int64(j.Tenant.Contracts())))
	}
	for alt := range j.Alternatives() {
		key := ""
		if j.Known != nil {
			key = j.Known.Class.Key()
		} else {
			key = string(r.Match.Key(r.AskOf(j, q, alt)))
		}
		if !b.paid[key] {
			b.paid[key] = true
			units += offers
		}
		if j.In.Where != nil && !b.paidWhere[key] {
			b.paidWhere[key] = true
			b.Conditions += workOf(j.In.Where)*offers + madeOf(r, j.In.Where)
		}
	}
	b.tenants[j.TenantName] += units
	b.all += units
}

// Ration puts off the intents that do not fit into the round.
func (r *Settler) Ration() {
	b := r.newBill()
	r.Bill = b
	granted, dropped, each := map[*draft.Job]bool{}, map[*draft.Job]bool{}, ahead.LooksOfReplica(&r.Placer)
	var again v1alpha1.Time
	for _, x := range r.bidders(each) {
		j := x.Job
		if code, text := b.Over(j); code != "" && !granted[j] && !r.always(j) {
			r.postpone(j, code, text)
			if x.books {
				dropped[j] = true
			}
			next := v1alpha1.TimeOf(r.Now.Truncate(TurnsOf).Add(TurnsOf))
			if lifecycle.AwaitsTurn(code) && x.seen == 0 {
				next = v1alpha1.TimeOf(r.Now.Add(unseenAgain))
			}
			again = lifecycle.Earlier(again, next)
			continue
		}
		b.Charge(j, x.asks())
		if x.books {
			b.chargeBooker(j, each)
			continue
		}
		j.Begin()
		if len(j.In.Spec.Placement.Together) == 0 {
			continue
		}
		names := r.Relations().Together[draft.KeyOfJob(j)]
		for _, name := range names[:min(len(names), togetherTurns)] {
			if other := r.JobOf(j.TenantName, name); other != nil {
				granted[other] = true
			}
		}
	}
	dropBookers(r, dropped)
	r.Due(again)
}

// always reports whether a job has its turn whatever it costs.
func (r *Settler) always(j *draft.Job) bool {
	return j.Leaves() || j.Offered() || j.Warm() || slices.ContainsFunc(r.Notices[draft.KeyOf(j.TenantName, j.Name)], func(c *v1alpha1.Contract) bool {
		return c.Status.Phase.Held() || !r.By(draft.RulesRoomMade) // what has been seen gone for a round is over
	})
}

// bidders are the jobs that want offers looked at, in the order of their turns; those that
// book look at each so many for each replica.
func (r *Settler) bidders(each int64) []Bidder {
	list := bookingBidders(r)
	minute := r.Now.Truncate(TurnsOf).Unix()
	for _, j := range r.Jobs {
		if j.In == nil || len(j.Tasks)+len(j.News) == 0 || j.Dec.Action != "" {
			continue
		}
		list = append(list, Bidder{Job: j})
	}
	for i := range list {
		// Of stage find nothing is ever written: it must not go first each time.
		j := list[i].Job
		if s := j.State; j.Finding() || s != nil && s.Status.Digest == j.In.Digest && s.Status.Reason != lifecycle.CodeConditions {
			list[i].seen = 1
		}
	}
	if len(list) < 2 || r.affords(list, each) {
		return list // in any order: all have their turn
	}
	t := turns{minute, r.By(draft.RulesTurnsRotate)}
	for i := range list {
		if j := list[i].Job; list[i].seen > 0 {
			list[i].Lot = t.lot(j.TenantName, j.Name)
		}
	}
	slices.SortFunc(list, func(a, b Bidder) int {
		x, y := a.Job, b.Job
		if c := cmp.Or(strings.Compare(x.TenantName, y.TenantName), cmp.Compare(a.seen, b.seen)); c != 0 {
			return c
		}
		if a.seen > 0 {
			return cmp.Or(cmp.Compare(a.Lot, b.Lot), strings.Compare(x.Name, y.Name))
		}
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), x.FirstSeen.At.Compare(y.FirstSeen.At.Time), strings.Compare(x.Name, y.Name))
	})
	t.rotateSeen(list)
	for i := range list {
		if i > 0 && list[i].Job.TenantName == list[i-1].Job.TenantName {
			list[i].turn = list[i-1].turn + 1
		}
	}
	t.lotTenants(list)
	slices.SortStableFunc(list, func(a, b Bidder) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.Lot, b.Lot), strings.Compare(a.Job.TenantName, b.Job.TenantName))
	})
	return list
}

// affords reports whether all bidders fit into the round, whatever of it they share.
func (r *Settler) affords(list []Bidder, each int64) bool {
	offers, all, tenants := int64(len(r.Inventory.Offers())), int64(0), map[string]int64{}
	for i := range list {
		j := list[i].Job
		if j.In.Where != nil {
			return false
		}
		n := list[i].asks()
		units := unitsOfIntent + UnitsOfReplica*int64(n) + offers*int64(len(j.Alternatives())) + place.LooksOfParts(&r.Placer, j, n)
		if list[i].books {
			units += looksOfBooker(r, j, each)
		}
		all += units
		if tenants[j.TenantName] += units; tenants[j.TenantName] >= r.Limits.Work {
			return false
		}
	}
	return all < roundWork*r.Limits.Work
}

// Spare is what is left of a round's units for what only people read.
type Spare struct{ Work, Conditions int64 }

// Take takes what looking at so many offers for an intent costs, and reports
// whether that was left.
func (s *Spare) Take(in *model.Intent, offers int64) bool {
	where := workOf(in.Where) * offers
	if s.Work < offers || s.Conditions < where {
		return false
	}
	s.Work -= offers
	s.Conditions -= where
	return true
}
