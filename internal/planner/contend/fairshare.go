package contend

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Between tenants whose intents have equal priority turns go by dominant
// resource fairness (package account): the one that holds the smallest share of the
// fleet is next, and what it gets counts at once. Equal shares: in the order of the
// batch. Within a tenant the older intent is next, and an intent that fits nowhere
// holds up no other.
//
// Shares go up and down while an intent waits for much at once, and a tenant that
// has less for a moment would take a part of what is being kept for it
// (reserve.go), again and again. So the oldest that has waited for as long as
// patience, and asks for more than the smallest of its equals, goes first. One
// at a time does: that bounds how far it bends the shares.

// patience is how long turns go by shares alone.
const patience = 4 * time.Hour

// fleetTotals is all there is of what a share is made of. What flavors of a pool
// have in common counts once.
func (r *Contest) fleetTotals() *account.Fleet {
	if r.Whole != nil {
		return r.Whole
	}
	t := &account.Fleet{}
	seen := map[inventory.Key]bool{}
	for _, o := range r.Inventory.Offers() {
		t.AddCards(o.Capacity.At(quantity.GPU), o.UnitsPerCard)
		if p := o.Flavor.Spec.Pool; p != "" {
			k := inventory.Key{Provider: o.Provider, Name: p}
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		t.AddRest(o.Capacity.At(quantity.CPU), o.Capacity.At(quantity.Memory))
	}
	r.Whole = t
	return t
}

// turns are one tenant's jobs of one priority, in order.
type turns struct {
	tenant *account.Tenant
	jobs   []*draft.Job
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
func (r *Contest) serve(waiting []*draft.Job, q place.Request) {
	from := 0
	for ; from < len(waiting) && waiting[from].Offered(); from++ {
		r.turn(waiting[from], q)
	}
	for from < len(waiting) {
		to := from + 1
		for to < len(waiting) && waiting[to].Priority == waiting[from].Priority {
			to++
		}
		r.serveEquals(waiting[from:to], q)
		from = to
	}
}

func (r *Contest) serveEquals(group []*draft.Job, q place.Request) {
	if r.W.InOrder {
		for _, j := range group {
			r.turn(j, q)
		}
		return
	}
	senior := r.seniorFirst(group)
	byTenant := map[*account.Tenant]*turns{}
	var fair fairQueue
	next := 0
	for i, j := range group {
		if i == next && (j == senior || r.hasClaim(j)) {
			r.turn(j, q) // others give way to it: it goes before its equals
			next++
			continue
		}
		t := byTenant[j.Tenant]
		if t == nil {
			t = &turns{tenant: j.Tenant}
			byTenant[j.Tenant] = t
			fair = append(fair, t)
		}
		t.jobs, t.at = append(t.jobs, j), append(t.at, i)
	}
	if len(fair) < 2 {
		for _, j := range group[next:] {
			r.turn(j, q)
		}
		return
	}
	for _, t := range fair {
		t.share = t.tenant.Share(r.fleetTotals())
	}
	heap.Init(&fair)
	for out := group[next:next]; len(fair) > 0; {
		t := fair[0]
		j := t.jobs[0]
		t.jobs, t.at = t.jobs[1:], t.at[1:]
		r.turn(j, q)
		out = append(out, j)
		if len(t.jobs) == 0 {
			heap.Pop(&fair)
			continue
		}
		t.share = t.tenant.Share(r.fleetTotals())
		heap.Fix(&fair, 0)
	}
}

// seniorFirst puts the oldest of a group that has waited for too long in front
// of those for which no contract gives way, and returns it, nil for none.
func (r *Contest) seniorFirst(group []*draft.Job) *draft.Job {
	for _, j := range group {
		if j.Senior {
			r.EditJob(j)
			j.Senior = false
		}
	}
	if !slices.ContainsFunc(group, func(j *draft.Job) bool { return j.Tenant != group[0].Tenant }) {
		return nil // they go by age anyway
	}
	least := [2]int64{math.MaxInt64, math.MaxInt64}
	for _, j := range group {
		if size := r.SizeOf(j); slices.Compare(size[:], least[:]) < 0 {
			least = size
		}
	}
	claims := 0
	for i, j := range group {
		if r.hasClaim(j) {
			claims++
			continue
		}
		size := r.SizeOf(j)
		if slices.Compare(size[:], least[:]) <= 0 || !slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind == draft.TaskFresh }) {
			continue
		}
		until := v1alpha1.TimeOf(r.WaitingSince(j).Add(patience))
		if until.After(r.Now.Time) {
			r.Due(until)
			continue
		}
		r.EditJob(j)
		j.Senior = true
		copy(group[claims+1:i+1], group[claims:i])
		group[claims] = j
		return j
	}
	return nil
}

// SizeOf is what a job asks for in total: GPUs, then cores.
func (r *Contest) SizeOf(j *draft.Job) [2]int64 {
	if j.Known != nil {
		return j.Known.Size
	}
	s, n := place.KnownClass(&r.Placer, j, place.Request{}, 0), int64(j.Replicas())
	size := [2]int64{0, s.Request.Need.At(quantity.CPU) * n}
	if g := s.Request.GPU; g != nil {
		size[0] = g.Count * n
	}
	return size
}

// TellShares writes, for those that wait, whose turn comes before theirs, because
// another tenant holds less.
func (r *Contest) TellShares() {
	if r.W.InOrder {
		return
	}
	first := map[int32]*draft.Job{} // of each priority, the first that waits
	for _, j := range r.Waiting {
		if j.Dec.Action != draft.Queued {
			continue
		}
		if j.Senior {
			j.Dec.Reason += fmt.Sprintf("; it goes first, because it has waited for more than %d hours", patience/time.Hour)
		}
		ahead := first[j.Priority]
		if ahead == nil {
			first[j.Priority] = j
			continue
		}
		if ahead.Tenant == j.Tenant || !lacksRoom(j.Dec.Rejected) {
			continue
		}
		if why := ahead.Tenant.ServedBefore(j.Tenant, r.fleetTotals()); why != "" {
			j.Dec.Reason += "; " + why
		}
	}
}

// lacksRoom reports whether an offer would do if more of it were free: only then
// does it matter whose turn comes first.
func lacksRoom(rejected map[string]int) bool {
	for req := range rejected {
		if strings.HasPrefix(req, match.ReqCapacity) {
			return true
		}
	}
	return false
}
