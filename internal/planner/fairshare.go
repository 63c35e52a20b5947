package planner

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Between tenants whose intents have equal priority turns go by dominant
// resource fairness (Ghodsi et al., NSDI 2011), weighted: whoever holds the
// smallest share of the fleet is next, and what he gets counts at once.
//
//	share = max(cards ÷ all cards, CPU ÷ all CPU, memory ÷ all memory) ÷ weight
//
// over what is charged now. Equal shares: in the order of the batch. Within a
// tenant the older intent is next, and an intent that fits nowhere holds nobody
// up. Shares are integers in billionths.
//
// Shares go up and down while somebody waits for much at once, and whoever has
// less for a moment would take a part of what is being kept for it
// (reserve.go), again and again. So the oldest that has waited for as long as
// patience, and asks for more than the smallest of its equals, goes first. One
// at a time does: that bounds how far it bends the shares.

// patience is how long turns go by shares alone.
const patience = 4 * time.Hour

// fleetTotals is all there is of what a share is made of: thousandths of cards
// and of cores, bytes. What flavors of a pool have in common counts once.
type fleetTotals struct{ milliCards, cpu, memory int64 }

func (r *round) fleetTotals() *fleetTotals {
	if r.whole != nil {
		return r.whole
	}
	t := &fleetTotals{}
	seen := map[inventory.Key]bool{}
	for _, o := range r.inventory.Offers() {
		t.milliCards += wideQuo(o.Capacity.At(quantity.GPU), 1000, o.UnitsPerCard)
		if p := o.Flavor.Spec.Pool; p != "" {
			k := inventory.Key{Provider: o.Provider, Name: p}
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		t.cpu = v1alpha1.AmountOf(t.cpu).Add(v1alpha1.AmountOf(o.Capacity.At(quantity.CPU))).Int64()
		t.memory = v1alpha1.AmountOf(t.memory).Add(v1alpha1.AmountOf(o.Capacity.At(quantity.Memory))).Int64()
	}
	r.whole = t
	return t
}

// wideQuo is a × b ÷ c, 0 when there is nothing to divide by.
func wideQuo(a, b, c int64) int64 {
	if c <= 0 || a <= 0 {
		return 0
	}
	return quantity.Wide{}.AddProduct(a, b, 1).Quo(uint64(c))
}

// billionths a share is counted in.
const billionths = 1_000_000_000

// shareOf is a tenant's dominant share of the fleet, its weight aside, and of
// what.
func (r *round) shareOf(t *tenant) (share int64, of string) {
	if t.shareAt == t.changes+1 {
		return t.share, t.shareName
	}
	all := r.fleetTotals()
	share, of = wideQuo(t.totals.MilliCards().Int64(), billionths, all.milliCards), "GPUs"
	if s := wideQuo(t.totals.CPU.Int64(), billionths, all.cpu); s > share {
		share, of = s, "CPU"
	}
	if s := wideQuo(t.totals.Memory.Int64(), billionths, all.memory); s > share {
		share, of = s, "memory"
	}
	t.share, t.shareName, t.shareAt = share, of, t.changes+1
	return share, of
}

func (t *tenant) weight() int64 { return int64(max(t.spec.Weight, 1)) }

// turns are one tenant's jobs of one priority, in order.
type turns struct {
	tenant *tenant
	jobs   []*job
	at     []int // of each, its place in the group
	share  int64 // weighted
}

type fairQueue []*turns

func (q fairQueue) Len() int { return len(q) }
func (q fairQueue) Less(a, b int) bool {
	return cmp.Or(cmp.Compare(q[a].share, q[b].share), cmp.Compare(q[a].at[0], q[b].at[0])) < 0
}
func (q fairQueue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *fairQueue) Push(x any)   { *q = append(*q, x.(*turns)) }
func (q *fairQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// serve gives every waiting job its turn: those first that hold what waits for
// review, then by priority, and among equals by the shares of their tenants. It puts them into the order of their turns.
func (r *round) serve(waiting []*job) {
	from := 0
	for ; from < len(waiting) && waiting[from].offered(); from++ {
		r.turn(waiting[from])
	}
	for from < len(waiting) {
		to := from + 1
		for to < len(waiting) && waiting[to].priority == waiting[from].priority {
			to++
		}
		r.serveEquals(waiting[from:to])
		from = to
	}
}

func (r *round) serveEquals(group []*job) {
	r.seniorFirst(group)
	byTenant := map[*tenant]*turns{}
	var q fairQueue
	next := 0
	for i, j := range group {
		if i == next && (j.senior || r.hasClaim(j)) {
			r.turn(j) // others give way to it: it goes before its equals
			next++
			continue
		}
		t := byTenant[j.tenant]
		if t == nil {
			t = &turns{tenant: j.tenant}
			byTenant[j.tenant] = t
			q = append(q, t)
		}
		t.jobs, t.at = append(t.jobs, j), append(t.at, i)
	}
	if len(q) < 2 {
		for _, j := range group[next:] {
			r.turn(j)
		}
		return
	}
	for _, t := range q {
		s, _ := r.shareOf(t.tenant)
		t.share = s / t.tenant.weight()
	}
	heap.Init(&q)
	for out := group[next:next]; len(q) > 0; {
		t := q[0]
		j := t.jobs[0]
		t.jobs, t.at = t.jobs[1:], t.at[1:]
		r.turn(j)
		out = append(out, j)
		if len(t.jobs) == 0 {
			heap.Pop(&q)
			continue
		}
		s, _ := r.shareOf(t.tenant)
		t.share = s / t.tenant.weight()
		heap.Fix(&q, 0)
	}
}

// seniorFirst puts the oldest of a group that has waited for too long in front
// of those to whom nobody gives way.
func (r *round) seniorFirst(group []*job) {
	for _, j := range group {
		j.senior = false
	}
	if !slices.ContainsFunc(group, func(j *job) bool { return j.tenant != group[0].tenant }) {
		return // they go by age anyway
	}
	least := [2]int64{math.MaxInt64, math.MaxInt64}
	for _, j := range group {
		if size := r.sizeOf(j); slices.Compare(size[:], least[:]) < 0 {
			least = size
		}
	}
	claims := 0
	for i, j := range group {
		if r.hasClaim(j) {
			claims++
			continue
		}
		size := r.sizeOf(j)
		if slices.Compare(size[:], least[:]) <= 0 || !slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind == fresh }) {
			continue
		}
		until := v1alpha1.TimeOf(r.waitingSince(j).Add(patience))
		if until.After(r.now.Time) {
			r.due(until)
			continue
		}
		j.senior = true
		copy(group[claims+1:i+1], group[claims:i])
		group[claims] = j
		return
	}
}

// sizeOf is what a job asks for in all: GPUs, then cores.
func (r *round) sizeOf(j *job) [2]int64 {
	s, n := r.shapeOf(j, 0), int64(j.replicas())
	size := [2]int64{0, s.wish.need.At(quantity.CPU) * n}
	if g := s.wish.gpu; g != nil {
		size[0] = g.count * n
	}
	return size
}

// tellShares says of those that wait whose turn comes before theirs, because
// another tenant holds less.
func (r *round) tellShares() {
	first := map[int32]*job{} // of each priority, the first that waits
	for _, j := range r.waiting {
		if j.dec.Action != Queued {
			continue
		}
		if j.senior {
			j.dec.Reason += fmt.Sprintf("; it goes first, because it has waited for more than %d hours", patience/time.Hour)
		}
		ahead := first[j.priority]
		if ahead == nil {
			first[j.priority] = j
			continue
		}
		if ahead.tenant == j.tenant || !lacksRoom(j.dec.Rejected) {
			continue
		}
		theirs, of := r.shareOf(ahead.tenant)
		ours, ourOf := r.shareOf(j.tenant)
		if theirs/ahead.tenant.weight() < ours/j.tenant.weight() {
			if ourOf == of {
				ourOf = ""
			} else {
				ourOf = " of its " + ourOf
			}
			j.dec.Reason += fmt.Sprintf("; tenant %s is served first: it holds %s of the fleet's %s%s, %s %s%s%s",
				ahead.tenantName, percent(theirs), of, weightText(ahead.tenant), j.tenantName, percent(ours), ourOf, weightText(j.tenant))
		}
	}
}

// lacksRoom reports whether an offer would do if more of it were free: only then
// does it matter whose turn comes first.
func lacksRoom(rejected map[string]int) bool {
	for req := range rejected {
		if strings.HasPrefix(req, ReqCapacity) {
			return true
		}
	}
	return false
}

func weightText(t *tenant) string {
	if t.weight() == 1 {
		return ""
	}
	return fmt.Sprintf(" at weight %d", t.weight())
}

// percent is a share in words.
func percent(share int64) string {
	return fmt.Sprintf("%d.%d %%", share*100/billionths, share*1000/billionths%10)
}
