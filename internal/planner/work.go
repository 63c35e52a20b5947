package planner

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// What a round may cost is counted in units of work, never in time, and as if no
// earlier round had left anything. So the daemon, a replay and a plan from memory
// agree. A unit is one offer that is looked at for one kind of request, some
// 0.1 µs; an intent that wants an offer is charged for
//
//	each alternative     every offer of the market; intents that ask for the same share this
//	itself               unitsOfIntent
//	each of its replicas unitsOfReplica, for as many as its tenant may still hold
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
// looked at before and found nothing. The order of tenants, and of the latter, is
// another one each minute, drawn from the round's instant alone: where the
// rotation stands is a function of World.Now, which each commit of the ledger
// records (trailer Now) and the recorded round of a market (round.json) repeats,
// and of what the ledger says of intents. A pointer of its own would have to be
// written by rounds that write nothing else, and a round that writes nothing
// must make no commit. An intent that has its turn is looked at whole, so that
// each one's turn comes, whatever it costs.
const (
	unitsOfIntent  = 100
	unitsOfReplica = 400
	// roundWork is how many times limits.work all tenants have together.
	roundWork = 20
	// turnsOf is how long one order of turns holds; unseenAgain is when what was
	// never looked at is.
	turnsOf     = time.Minute
	unseenAgain = 10 * time.Second
	// togetherTurns bounds how many intents have their turn with another one.
	togetherTurns = 64
)

const unworkedText = "the work of this round is used up (spec.limits.work of the fleet): it is looked at in one of the next rounds"

// bidder is a job that wants offers looked at.
type bidder struct {
	job  *job
	turn int // among its tenant's
	seen int // 0: was not looked at yet as it is now
	lot  uint64
}

// bill is what one round has charged so far.
type bill struct {
	round      *round
	tenants    map[string]int64
	all        int64
	conditions int64
	paid       map[string]bool
	paidWhere  map[string]bool
}

func (r *round) newBill() *bill {
	return &bill{round: r, tenants: map[string]int64{}, paid: map[string]bool{}, paidWhere: map[string]bool{}}
}

// over is why a job does not fit into the round any more, "" while it does.
func (b *bill) over(j *job) (code, text string) {
	l := &b.round.limits
	switch {
	case j.in.Where != nil && b.conditions >= l.Conditions:
		return CodeConditions, postponedText
	case b.tenants[j.tenantName] >= l.Work || b.all >= roundWork*l.Work:
		return CodeWork, unworkedText
	}
	return "", ""
}

// charge puts a job's alternatives on the bill, and so many replicas; those in
// except are about to be replaced.
func (b *bill) charge(j *job, replicas int, except ...*v1alpha1.Contract) {
	r := b.round
	j.budget(r, replicas, except...)
	offers := int64(len(r.inventory.Offers()))
	units := int64(unitsOfIntent)
	if most, _ := r.accounts.Most(j.tenant); replicas > 0 {
		units += unitsOfReplica * max(0, min(int64(replicas), most-int64(j.tenant.Contracts())))
	}
	for alt := range j.alternatives() {
		key := string(r.match.Key(j.ask(alt)))
		if !b.paid[key] {
			b.paid[key] = true
			units += offers
		}
		if j.in.Where != nil && !b.paidWhere[key] {
			b.paidWhere[key] = true
			b.conditions += workOf(j.in.Where) * offers
		}
	}
	b.tenants[j.tenantName] += units
	b.all += units
}

// ration puts off the intents that do not fit into the round.
func (r *round) ration() {
	b := r.newBill()
	r.bill = b
	granted := map[*job]bool{}
	var again v1alpha1.Time
	for _, x := range r.bidders() {
		j := x.job
		if code, text := b.over(j); code != "" && !granted[j] && !r.always(j) {
			r.postpone(j, code, text)
			next := v1alpha1.TimeOf(r.now.Truncate(turnsOf).Add(turnsOf))
			if code == CodeWork && x.seen == 0 {
				next = v1alpha1.TimeOf(r.now.Add(unseenAgain))
			}
			again = lifecycle.Earlier(again, next)
			continue
		}
		b.charge(j, len(j.tasks)+len(j.news))
		j.begin()
		if len(j.in.Spec.Placement.Together) == 0 {
			continue
		}
		names := r.relations().together[keyOfJob(j)]
		for _, name := range names[:min(len(names), togetherTurns)] {
			if other := r.jobOf(j.tenantName, name); other != nil {
				granted[other] = true
			}
		}
	}
	r.due(again)
}

// always reports whether a job has its turn whatever it costs.
func (r *round) always(j *job) bool {
	return j.leaves() || j.offered() || j.warm() || len(r.notices[keyOf(j.tenantName, j.name)]) > 0
}

// bidders are the jobs that want offers looked at, in the order of their turns.
func (r *round) bidders() []bidder {
	var list []bidder
	minute := r.now.Truncate(turnsOf).Unix()
	for _, j := range r.jobs {
		if j.in == nil || len(j.tasks)+len(j.news) == 0 || j.dec.Action != "" {
			continue
		}
		b := bidder{job: j}
		// Of stage find nothing is ever written: it must not go first each time.
		if s := j.state; j.finding() || s != nil && s.Status.Digest == j.in.Digest && s.Status.Reason != CodeConditions {
			b.seen, b.lot = 1, lot(minute, j.tenantName, j.name)
		}
		list = append(list, b)
	}
	if len(list) < 2 {
		return list
	}
	slices.SortFunc(list, func(a, b bidder) int {
		x, y := a.job, b.job
		if c := cmp.Or(strings.Compare(x.tenantName, y.tenantName), cmp.Compare(a.seen, b.seen)); c != 0 {
			return c
		}
		if a.seen > 0 {
			return cmp.Or(cmp.Compare(a.lot, b.lot), strings.Compare(x.name, y.name))
		}
		return cmp.Or(cmp.Compare(y.priority, x.priority), x.firstSeen.At.Compare(y.firstSeen.At.Time), strings.Compare(x.name, y.name))
	})
	for i := range list {
		if i > 0 && list[i].job.tenantName == list[i-1].job.tenantName {
			list[i].turn = list[i-1].turn + 1
		}
	}
	lots := map[string]uint64{}
	for i := range list {
		tenant := list[i].job.tenantName
		at, drawn := lots[tenant]
		if !drawn {
			at = lot(minute, tenant, "")
			lots[tenant] = at
		}
		list[i].lot = at
	}
	slices.SortStableFunc(list, func(a, b bidder) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.lot, b.lot), strings.Compare(a.job.tenantName, b.job.tenantName))
	})
	return list
}

// lot is a number drawn for a name at an instant.
func lot(at int64, tenant, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s/%s", at, tenant, name)
	x := h.Sum64()
	x ^= x >> 33 // FNV's upper bits hardly see the last letters
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// spare is what is left of a round's units for what only people read.
type spare struct{ work, conditions int64 }

// take takes what looking at so many offers for an intent costs, and reports
// whether that was left.
func (s *spare) take(in *model.Intent, offers int64) bool {
	where := workOf(in.Where) * offers
	if s.work < offers || s.conditions < where {
		return false
	}
	s.work -= offers
	s.conditions -= where
	return true
}
