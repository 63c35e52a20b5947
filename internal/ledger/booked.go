package ledger

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Sum is what contracts hold of a flavor at an instant that is not in the past, to which
// bookings are added one after the other. Nobody but its maker may use it meanwhile.
type Sum struct {
	f    *v1alpha1.Flavor
	at   v1alpha1.Time
	held v1alpha1.Resources
}

// SumAt is the sum of all contracts that hold or have booked a flavor, as Figures count them:
// of takes what they are at the instant, At or Later.
func SumAt(of func(*v1alpha1.Flavor, []*v1alpha1.Contract, v1alpha1.Time) Member, f *v1alpha1.Flavor, contracts []*v1alpha1.Contract, at v1alpha1.Time) *Sum {
	m := of(f, contracts, at)
	return &Sum{m.Flavor, at, held(m, "")}
}

// Add adds a booking of the flavor that was not among the contracts, and reports false where
// the flavor's report names it, so that it has to be summed up with all others.
func (s *Sum) Add(c *v1alpha1.Contract) bool {
	reported := s.f.Spec.Held
	if _, is := reported[c.Metadata.Name]; is {
		return false
	}
	if _, is := reported[c.Spec.Slice]; is {
		return false
	}
	if TakesAt(c, s.at) {
		for name, amount := range AsOffered(c, s.f) {
			s.held[name] = s.held[name].Add(amount)
		}
	}
	return true
}

// FiguresOf are what contracts hold of a flavor, and what the others of its pool take, as
// Figures have them; the sums may go on changing.
func FiguresOf(f *Sum, pool []*Sum) (of, ofPool v1alpha1.Resources) {
	of = maps.Clone(f.held)
	if f.f.Spec.Pool == "" {
		return of, nil
	}
	members, helds := []Member{{Flavor: f.f}}, []v1alpha1.Resources{of}
	for _, m := range pool {
		if m.f.Ref() != f.f.Ref() && samePool(m.f, f.f) {
			members, helds = append(members, Member{Flavor: m.f}), append(helds, m.held)
		}
	}
	return of, shareOf(members, helds)
}
