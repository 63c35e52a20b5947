package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
)

// Promised is what a tenant has and has booked in [from, to), brought up to date by each
// further booking of that time. It is good for as long as nothing else of its tenant changes.
type Promised struct {
	axis            Axis
	tenant          *account.Tenant
	version         int
	from, to        v1alpha1.Time
	booked, charged []*v1alpha1.Contract
	sums            []account.Sum
}

// PromisedIn sums it up.
func (r Axis) PromisedIn(t *account.Tenant, from, to v1alpha1.Time) *Promised {
	p := &Promised{axis: r, tenant: t, version: t.Version(), from: from, to: to, booked: r.bookingsOf(t.Name), charged: r.chargedOf(t.Name)}
	p.sums = r.sumsIn(t, p.booked, p.charged, from, to, true)
	return p
}

// Holds reports whether the tenant's account is still the one that was summed up.
func (p *Promised) Holds() bool { return p != nil && p.version == p.tenant.Version() }

// Add adds a booking for all of that time.
func (p *Promised) Add(c *v1alpha1.Contract) {
	p.booked = append(p.booked, c)
	for i := range p.sums {
		p.axis.Accounts.Book(&p.sums[i], c)
	}
}

// Limits is what the tenant's next booking may take.
func (p *Promised) Limits() account.Limits {
	l := p.axis.Accounts.LimitsAhead(p.tenant, p.from, p.to, p.charged, p.booked)
	for i := range p.sums {
		p.axis.Accounts.NarrowBy(&l, &p.sums[i])
	}
	return l
}
