package account

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Standing is the charged contracts of a ledger by tenant, and what they come to
// an hour. It is brought up to date by what changed, and is as the ledger shows
// whatever a round has decided since. The rates of exchange that it was counted
// by must hold as long as it is kept.
type Standing struct {
	tenants map[string]*standing
	hourly  quantity.Total
}

// standing is one tenant's.
type standing struct {
	contracts []*v1alpha1.Contract // by name
	peak      quantity.Total
}

// NewStanding is that of an empty ledger.
func NewStanding() *Standing { return &Standing{tenants: map[string]*standing{}} }

// Of are a tenant's charged contracts, by name. The caller does not modify them.
func (s *Standing) Of(tenant string) []*v1alpha1.Contract {
	if t := s.tenants[tenant]; t != nil {
		return t.contracts
	}
	return nil
}

// Hourly is what the charged contracts of all tenants cost an hour outside of
// price windows.
func (s *Standing) Hourly() quantity.Micro { return s.hourly.Micro() }

// peak is what a tenant's contracts cost an hour at their highest price.
func (s *Standing) peak(tenant string) quantity.Total {
	if t := s.tenants[tenant]; t != nil {
		return t.peak
	}
	return quantity.Total{}
}

// Add counts a contract in, unless its phase is not charged.
func (s *Standing) Add(c *v1alpha1.Contract, m *Money) {
	if !c.Status.Phase.Charged() {
		return
	}
	t := s.tenants[c.Metadata.Namespace]
	if t == nil {
		t = &standing{}
		s.tenants[c.Metadata.Namespace] = t
	}
	at, _ := t.find(c)
	t.contracts = slices.Insert(t.contracts, at, c)
	t.peak = t.peak.Plus(m.Peak(c))
	s.hourly = s.hourly.Plus(m.hourly(c))
}

// Remove counts a contract out that was counted in as it is.
func (s *Standing) Remove(c *v1alpha1.Contract, m *Money) {
	t := s.tenants[c.Metadata.Namespace]
	if t == nil || !c.Status.Phase.Charged() {
		return
	}
	at, found := t.find(c)
	if !found {
		return
	}
	t.contracts = slices.Delete(t.contracts, at, at+1)
	t.peak = t.peak.Minus(m.Peak(c))
	s.hourly = s.hourly.Minus(m.hourly(c))
}

func (t *standing) find(c *v1alpha1.Contract) (int, bool) {
	return slices.BinarySearchFunc(t.contracts, c.Metadata.Name, func(c *v1alpha1.Contract, name string) int {
		return strings.Compare(c.Metadata.Name, name)
	})
}
