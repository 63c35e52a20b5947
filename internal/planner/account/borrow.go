package account

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// A tenant with quota.maxBorrow may hold more than its quota of GPUs, CPU or
// memory: as much as the tenants with a quota of that resource leave of all
// their quotas together, and maxBorrow at the most. So, for each resource, with
// sums over the tenants that have a quota of it,
//
//	held(t) + n ≤ quota(t)                                      is always within quota
//	held(t) + n ≤ quota(t) + maxBorrow(t)  and  Σ held + n ≤ Σ quota   is borrowed
//
// What is above quota is marked in the contract (spec.borrowed). Limits by model
// are never exceeded.

// Resource is one that can be borrowed.
type Resource int

// The resources.
const (
	GPUs   Resource = iota // in thousandths of a card
	CPU                    // in thousandths of a core
	Memory                 // in bytes
	resources
)

// names of the resources in contracts.
var names = [resources]string{GPUs: v1alpha1.GPU, CPU: v1alpha1.CPU, Memory: v1alpha1.Memory}

// Quota is the tenant's of a resource; ok is false when it has none.
func (t *Tenant) Quota(k Resource) (n int64, ok bool) {
	q := t.Spec.Quota
	switch {
	case q == nil:
	case k == GPUs && q.GPU != nil:
		return *q.GPU * 1000, true
	case k == CPU && q.CPU != nil:
		return q.CPU.Amount(v1alpha1.CPU).Int64(), true
	case k == Memory && q.Memory != nil:
		return q.Memory.Amount(v1alpha1.Memory).Int64(), true
	}
	return 0, false
}

// MayBorrow is the most that the tenant may hold above its quota.
func (t *Tenant) MayBorrow(k Resource) int64 {
	if t.Spec.Quota == nil {
		return 0
	}
	m := t.Spec.Quota.MaxBorrow
	switch k {
	case GPUs:
		return m[v1alpha1.GPU].Int64() * 1000
	case CPU:
		return m[v1alpha1.CPU].Int64()
	case Memory:
		return m[v1alpha1.Memory].Int64()
	}
	return 0
}

// Borrows reports whether the tenant may hold more than its quota of anything.
func (t *Tenant) Borrows() bool { return t.Spec.Quota != nil && len(t.Spec.Quota.MaxBorrow) > 0 }

func (t *Tenant) held(k Resource) int64 {
	switch k {
	case GPUs:
		if t.cardsAt != t.changes+1 {
			t.cards, t.cardsAt = t.totals.MilliCards().Int64(), t.changes+1
		}
		return t.cards
	case CPU:
		return t.totals.CPU.Int64()
	}
	return t.totals.Memory.Int64()
}

// amount is what totals hold of a resource.
func amount(of *ledger.Totals, k Resource) int64 {
	switch {
	case of.Contracts == 0:
		return 0
	case k == GPUs:
		return of.MilliCards().Int64()
	case k == CPU:
		return of.CPU.Int64()
	}
	return of.Memory.Int64()
}

// exceeds reports whether the tenant holds more than its quota.
func (t *Tenant) exceeds(k Resource) bool {
	quota, ok := t.Quota(k)
	return ok && t.held(k) > quota
}

// unused is what all tenants together leave of their quotas, and no claim keeps; negative when they
// hold more.
func (a *Accounts) unused(k Resource) int64 {
	var sum int64
	for _, name := range a.Names() {
		t := a.Of(name)
		if quota, ok := t.Quota(k); ok {
			sum += quota - t.held(k) - amount(&t.leaving, k) - amount(&t.kept.totals, k)
		}
	}
	return sum
}

// widen adds to limits what their tenant may borrow.
func (a *Accounts) widen(l *Limits) {
	t := l.Tenant
	if !t.Borrows() {
		return
	}
	more := func(k Resource, own int64) int64 {
		if _, ok := t.Quota(k); !ok || t.MayBorrow(k) <= 0 {
			return own
		}
		return max(own, min(own+t.MayBorrow(k), a.unused(k)))
	}
	own := l.GPU
	l.Borrows = true
	l.GPU = more(GPUs, l.GPU)
	l.borrowed = l.GPU - own
	l.CPU, l.Memory = more(CPU, l.CPU), more(Memory, l.Memory)
}

// Borrowed is what of a contract of some size would be above the tenant's quota,
// nil for nothing; old is the version that it replaces on the account: what that
// held of the tenant's own quota is not borrowed because others borrow since.
func (t *Tenant) Borrowed(size Size, old *v1alpha1.Contract) v1alpha1.Resources {
	if !t.Borrows() {
		return nil
	}
	var out v1alpha1.Resources
	for i, name := range names {
		k := Resource(i)
		quota, ok := t.Quota(k)
		if !ok {
			continue
		}
		unit, n, had := int64(1), [...]int64{GPUs: size.milliCards(), CPU: size.CPU, Memory: size.Memory}[k], int64(0)
		if old != nil {
			had = old.Spec.Resources[name].Int64()
		}
		if k == GPUs {
			unit = 1000
			if old != nil && old.Spec.GPUs != nil {
				had = old.Spec.GPUs.Count * 1000 / size.PerCard
			}
		}
		above := min(t.held(k)-had+n-quota, n)
		if old != nil {
			above = min(above, old.Spec.Borrowed[name].Int64()*unit+max(n-had, 0))
		}
		if above > 0 {
			if out == nil {
				out = v1alpha1.Resources{}
			}
			out[name] = v1alpha1.AmountOf((above + unit - 1) / unit)
		}
	}
	return out
}

// Lends reports whether the tenant has a quota of which others might borrow.
func (t *Tenant) Lends() bool {
	for k := range resources {
		if _, owns := t.Quota(k); owns {
			return true
		}
	}
	return false
}

// Owns reports whether the tenant has a quota of some of what is lent.
func (t *Tenant) Owns(lent v1alpha1.Resources) bool {
	for k, name := range names {
		if _, owns := t.Quota(Resource(k)); owns && lent[name].Int64() > 0 {
			return true
		}
	}
	return false
}

// Reclaimable reports whether a contract holds what its tenant borrowed, of which
// an owner has a quota. Of tenants that are above their quota no longer, nothing
// is.
func (a *Accounts) Reclaimable(owner *Tenant, c *v1alpha1.Contract) bool {
	if len(c.Spec.Borrowed) == 0 || c.Metadata.Namespace == owner.Name {
		return false
	}
	t := a.Of(c.Metadata.Namespace)
	for k, name := range names {
		if _, owns := owner.Quota(Resource(k)); owns && c.Spec.Borrowed[name].Int64() > 0 && t.exceeds(Resource(k)) {
			return true
		}
	}
	return false
}
