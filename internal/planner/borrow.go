package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A tenant with quota.maxBorrow may hold more than its quota of GPUs, CPU or
// memory: as much as the tenants with a quota of that resource leave of all
// their quotas together, and maxBorrow at the most. So, for each resource, with
// sums over the tenants that have a quota of it,
//
//	held(t) + n ≤ quota(t)                                      is always within quota
//	held(t) + n ≤ quota(t) + maxBorrow(t)  and  Σ held + n ≤ Σ quota   is borrowed
//
// Borrowing comes last: every intent has its turn within its tenant's quota
// before any has one beyond it. What is above quota is marked in the contract
// (spec.borrowed). When an intent within its own tenant's quota fits nowhere
// else, marked contracts of tenants above their quota give way to it, of any
// priority, with their grace, the least disturbing first (displace.go). Limits
// by model are never exceeded, and nobody preempts or reclaims in order to
// borrow: both would go round in circles.

// quotaKind is a resource that can be borrowed.
type quotaKind int

const (
	quotaCards  quotaKind = iota // thousandths
	quotaCPU                     // thousandths of cores
	quotaMemory                  // bytes
	quotaKinds
)

var quotaNames = [quotaKinds]string{quotaCards: v1alpha1.GPU, quotaCPU: v1alpha1.CPU, quotaMemory: v1alpha1.Memory}

// quotaOf is a tenant's quota of a resource; ok is false when it has none.
func (t *tenant) quotaOf(k quotaKind) (n int64, ok bool) {
	q := t.spec.Quota
	switch {
	case q == nil:
	case k == quotaCards && q.GPU != nil:
		return *q.GPU * 1000, true
	case k == quotaCPU && q.CPU != nil:
		return q.CPU.Amount(v1alpha1.CPU).Int64(), true
	case k == quotaMemory && q.Memory != nil:
		return q.Memory.Amount(v1alpha1.Memory).Int64(), true
	}
	return 0, false
}

// mayBorrow is the most that a tenant may hold above its quota.
func (t *tenant) mayBorrow(k quotaKind) int64 {
	if t.spec.Quota == nil {
		return 0
	}
	m := t.spec.Quota.MaxBorrow
	switch k {
	case quotaCards:
		return m[v1alpha1.GPU].Int64() * 1000
	case quotaCPU:
		return m[v1alpha1.CPU].Int64()
	case quotaMemory:
		return m[v1alpha1.Memory].Int64()
	}
	return 0
}

func (t *tenant) heldOf(k quotaKind) int64 {
	switch k {
	case quotaCards:
		if t.cardsAt != t.changes+1 {
			t.cards, t.cardsAt = t.totals.MilliCards().Int64(), t.changes+1
		}
		return t.cards
	case quotaCPU:
		return t.totals.CPU.Int64()
	}
	return t.totals.Memory.Int64()
}

// excess is what a tenant holds above its quota.
func (t *tenant) excess(k quotaKind) int64 {
	quota, ok := t.quotaOf(k)
	if !ok {
		return 0
	}
	return max(t.heldOf(k)-quota, 0)
}

func (t *tenant) borrows() bool { return t.spec.Quota != nil && len(t.spec.Quota.MaxBorrow) > 0 }

// unusedQuota is what all tenants together leave of their quotas; negative when
// they hold more.
func (r *round) unusedQuota(k quotaKind) int64 {
	var sum int64
	for _, name := range r.tenantNames() {
		t := r.tenantOf(name)
		if quota, ok := t.quotaOf(k); ok {
			sum += quota - t.heldOf(k) - t.leavingOf(k)
		}
	}
	return sum
}

func (r *round) tenantNames() []string {
	if r.allTenants == nil {
		r.allTenants = sortedNames(r.w.Tenants)
	}
	return r.allTenants
}

// borrow widens limits by what a tenant may borrow, when it is time to.
func (r *round) borrow(l *limits) {
	t := l.tenant
	if !r.borrowing || !t.borrows() {
		return
	}
	widen := func(k quotaKind, own int64) int64 {
		if _, ok := t.quotaOf(k); !ok || t.mayBorrow(k) <= 0 {
			return own
		}
		return max(own, min(own+t.mayBorrow(k), r.unusedQuota(k)))
	}
	own := l.gpu
	l.gpu = widen(quotaCards, l.gpu)
	l.borrowed = l.gpu - own
	l.cpu, l.memory = widen(quotaCPU, l.cpu), widen(quotaMemory, l.memory)
}

// markBorrowed is what of a contract of some size is above its tenant's quota;
// old is the version that it replaces on the account: what that held of the
// tenant's own quota is not borrowed because others borrow since.
func (r *round) markBorrowed(t *tenant, o *inventory.Offer, size quantity.Vector, old *v1alpha1.Contract) v1alpha1.Resources {
	if !t.borrows() {
		return nil
	}
	out := v1alpha1.Resources{}
	for k, name := range quotaNames {
		kind := quotaKind(k)
		quota, ok := t.quotaOf(kind)
		if !ok {
			continue
		}
		unit, n, had := int64(1), size.At(r.names.Of(name)), int64(0)
		if old != nil {
			had = old.Spec.Resources[name].Int64()
		}
		if kind == quotaCards {
			unit, n = 1000, (size.At(quantity.GPU)*1000+o.UnitsPerCard-1)/o.UnitsPerCard
			if old != nil && old.Spec.GPUs != nil {
				had = old.Spec.GPUs.Count * 1000 / o.UnitsPerCard
			}
		}
		above := min(t.heldOf(kind)-had+n-quota, n)
		if old != nil {
			above = min(above, old.Spec.Borrowed[name].Int64()*unit+max(n-had, 0))
		}
		if above > 0 {
			out[name] = v1alpha1.AmountOf((above + unit - 1) / unit)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// reclaims reports whether a job's tenant may have had capacity borrowed from
// it.
func (r *round) reclaims(j *job) bool {
	if len(r.borrowed) == 0 {
		return false
	}
	for k := range quotaKinds {
		if _, ok := j.tenant.quotaOf(k); ok {
			return true
		}
	}
	return false
}

// reclaimable reports whether a contract holds what its tenant borrowed, of
// which a job's tenant has a quota. Of tenants that are above their quota no
// longer, nothing is.
func (r *round) reclaimable(j *job, c *v1alpha1.Contract) bool {
	if len(c.Spec.Borrowed) == 0 || c.Metadata.Namespace == j.tenantName {
		return false
	}
	t := r.tenantOf(c.Metadata.Namespace)
	for k, name := range quotaNames {
		if _, owns := j.tenant.quotaOf(quotaKind(k)); owns && c.Spec.Borrowed[name].Int64() > 0 && t.excess(quotaKind(k)) > 0 {
			return true
		}
	}
	return false
}

// askedBack reports whether somebody waits who would ask a size on an offer back
// at once if a job's tenant borrowed for it. What is free he would have taken
// himself; what is kept warm only becomes his to ask for by being lent.
func (r *round) askedBack(j *job, o *inventory.Offer, size quantity.Vector) bool {
	lent := r.markBorrowed(j.tenant, o, size, nil)
	if len(lent) == 0 {
		return false
	}
	for _, k := range r.jobs {
		if len(k.tasks) == 0 || k.tenantName == j.tenantName || k.warm() || k.silent || k.finding() || !k.tenant.ownsAny(lent) {
			continue
		}
		for alt := range k.alternatives() {
			if c := r.shapeOf(k, alt).of(o); c != nil && c.money == "" && makesRoom(c, size) {
				return true
			}
		}
	}
	return false
}

// ownsAny reports whether a tenant has a quota of some of what is lent.
func (t *tenant) ownsAny(lent v1alpha1.Resources) bool {
	for k, name := range quotaNames {
		if _, owns := t.quotaOf(quotaKind(k)); owns && lent[name].Int64() > 0 {
			return true
		}
	}
	return false
}

// borrowText is what of an intent's contracts is borrowed, "" for nothing.
func borrowText(list []*v1alpha1.Contract) string {
	sum := v1alpha1.Resources{}
	for _, c := range list {
		for name, n := range c.Spec.Borrowed {
			sum[name] = sum[name].Add(n)
		}
	}
	var parts []string
	for _, name := range sum.Names() {
		label := name
		if name == v1alpha1.GPU {
			if label = "GPUs"; sum[name].Int64() == 1 {
				label = "GPU"
			}
		}
		parts = append(parts, sum[name].Canonical(name)+" "+label)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "borrows " + strings.Join(parts, ", ") + " of quota that others leave unused, until they ask for it"
}

// borrowLimit is how a tenant's limit reads when it may borrow.
func (r *round) borrowLimit(t *tenant, k quotaKind, name string) string {
	most := t.mayBorrow(k)
	if most <= 0 {
		return ""
	}
	unit := int64(1)
	if k == quotaCards {
		unit = 1000
	}
	return fmt.Sprintf(" and may borrow %s, of which others leave %s", v1alpha1.AmountOf(most/unit).Canonical(name),
		v1alpha1.AmountOf(max(r.unusedQuota(k), 0)/unit).Canonical(name))
}

// makesRoom reports whether a candidate would fit if so much were given back.
func makesRoom(c *candidate, back quantity.Vector) bool {
	for i, n := range c.offer.Free() {
		if n+back.At(i) < max(c.size.At(i), 0) {
			return false
		}
	}
	return len(c.size) <= len(c.offer.Free()) || c.size[len(c.offer.Free()):].Within(nil)
}
