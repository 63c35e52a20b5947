package draft

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/ordered"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Observations are what clusters report of contracts, by name. A value never
// changes and may be shared; With makes the next one, at the cost of what is
// different. The zero value holds nothing.
type Observations struct {
	m ordered.Map[*v1alpha1.Observation] // of values that never change
}

// Of is what clusters report of a contract; of one that nobody reports anything
// of, the zero value.
func (o Observations) Of(contract string) v1alpha1.Observation {
	if x, there := o.m.Get(contract); there {
		return *x
	}
	return v1alpha1.Observation{}
}

// With is the observations with some that are new and without those that are
// gone.
func (o Observations) With(news map[string]v1alpha1.Observation, gone ...string) Observations {
	next := o.m.Edit()
	for _, name := range slices.Sorted(maps.Keys(news)) { // in order: nodes that are full
		x := news[name]
		next.Set(name, &x)
	}
	for _, name := range gone {
		next.Delete(name)
	}
	return Observations{next.Done()}
}

// Differs are the contracts of which o reports something else than before, by name.
// It costs what has changed.
func (o Observations) Differs(before Observations) []string {
	return slices.Collect(o.m.Differs(before.m, func(a, b *v1alpha1.Observation) bool { return a == b || SameObservation(*a, *b) }))
}

// SameObservation reports whether two observations report the same. Nothing granted
// is not the same as nothing known of it.
func SameObservation(a, b v1alpha1.Observation) bool {
	return a.ProviderSeen == b.ProviderSeen && a.ProviderHolds.Same(b.ProviderHolds) && a.Consumer.Equal(&b.Consumer)
}
