package draft

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
)

// Promised is what a tenant has and has booked, summed up for each instant that is asked
// for and brought up to date by each further booking, and by each that is taken away. It is good for as long as nothing else
// of its tenant changes.
type Promised struct {
	axis            Axis
	tenant          *account.Tenant
	version         int
	booked, charged []*v1alpha1.Contract
	sums            map[v1alpha1.Time]*account.Sum
}

// PromisedTo is that of a tenant.
func (r Axis) PromisedTo(t *account.Tenant) *Promised {
	return &Promised{axis: r, tenant: t, version: t.Version(), booked: r.bookingsOf(t.Name), charged: r.chargedOf(t.Name), sums: map[v1alpha1.Time]*account.Sum{}}
}

// Holds reports whether the tenant's account is still the one that was summed up.
func (p *Promised) Holds() bool { return p != nil && p.version == p.tenant.Version() }

// Add adds a booking.
func (p *Promised) Add(c *v1alpha1.Contract) {
	p.booked = append(p.booked, c)
	for at, sum := range p.sums {
		if during(c, at) {
			p.axis.Accounts.Book(sum, c)
		}
	}
}

// Remove takes away a booking, by its name.
func (p *Promised) Remove(c *v1alpha1.Contract) {
	i := slices.IndexFunc(p.booked, func(b *v1alpha1.Contract) bool { return b.Metadata.Name == c.Metadata.Name })
	if i < 0 {
		return
	}
	p.booked = slices.Delete(p.booked, i, i+1)
	for at, sum := range p.sums {
		if during(c, at) {
			p.axis.Accounts.Unbook(sum, c)
		}
	}
}

// Limits is what the tenant's next booking of [from, to) may take.
func (p *Promised) Limits(from, to v1alpha1.Time) account.Limits {
	l := p.axis.Accounts.LimitsAhead(p.tenant, from, to, p.charged, p.booked)
	for _, at := range startsIn(p.booked, from, to, true) {
		sum := p.sums[at]
		if sum == nil {
			made := p.axis.sumAt(p.tenant, p.booked, p.charged, at)
			sum = &made
			p.sums[at] = sum
		}
		p.axis.Accounts.NarrowBy(&l, sum)
	}
	return l
}
