package providers

import (
	"iter"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Known is what is known at one ledger and fleet. The zero value knows nothing: Follow
// comes first.
type Known struct {
	ledger *ledger.Ledger
	fleet  *fleet.Fleet
	// clashing are the providers at which namespaces clash, conflicts what that means.
	clashing  map[string]bool
	conflicts map[[2]string]string
	// undescribed are the answers of Undescribed, by consumer.
	undescribed map[string]string
}

// Follow brings it to a ledger and a fleet.
func (k *Known) Follow(l *ledger.Ledger, f *fleet.Fleet) {
	switch {
	case k.ledger == nil || k.fleet != f && !maps.Equal(k.fleet.Clusters, f.Clusters):
		k.clashing, k.undescribed = map[string]bool{}, map[string]string{}
		for _, provider := range l.Providers() {
			k.look(l, f, provider)
		}
		k.conflicts = manifests.RemoteConflicts(heldBy(l, k.clashing), f.Clusters)
	case k.ledger != l:
		touched := map[string]bool{}
		for tenant, intent := range l.Differs(k.ledger) {
			for _, c := range slices.Concat(l.ByIntent(tenant, intent), k.ledger.ByIntent(tenant, intent)) {
				touched[c.Spec.Provider] = true
				delete(k.undescribed, c.Spec.Consumer)
			}
		}
		again := false
		for provider := range touched {
			was := k.clashing[provider]
			again = k.look(l, f, provider) || was || again
		}
		if again {
			k.conflicts = manifests.RemoteConflicts(heldBy(l, k.clashing), f.Clusters)
		}
	}
	k.ledger, k.fleet = l, f
}

// look notes whether namespaces clash at a provider.
func (k *Known) look(l *ledger.Ledger, f *fleet.Fleet, provider string) bool {
	clash := len(manifests.RemoteConflicts(slices.Values(l.HeldBy(provider)), f.Clusters)) > 0
	if clash {
		k.clashing[provider] = true
	} else {
		delete(k.clashing, provider)
	}
	return clash
}

// Conflicts are those of all contracts (manifests.RemoteConflicts). They must not be
// modified.
func (k *Known) Conflicts() map[[2]string]string { return k.conflicts }

// With are the conflicts that there are at the providers of some changes, once these are
// made, and of which Conflicts has none: what the changes bring.
func (k *Known) With(changes ledger.Changes) map[[2]string]string {
	touched := map[string]bool{}
	for _, change := range changes.Contracts {
		for _, c := range []*v1alpha1.Contract{change.Before, change.After} {
			if c != nil {
				touched[c.Spec.Provider] = true
			}
		}
	}
	out := manifests.RemoteConflicts(heldBy(k.ledger.With(changes), touched), k.fleet.Clusters)
	maps.DeleteFunc(out, func(at [2]string, _ string) bool { return k.conflicts[at] != "" })
	return out
}

// heldBy are the contracts that keep capacity of some providers.
func heldBy(l *ledger.Ledger, providers map[string]bool) iter.Seq[*v1alpha1.Contract] {
	return func(yield func(*v1alpha1.Contract) bool) {
		for provider := range providers {
			for _, c := range l.HeldBy(provider) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Undescribed is a provider of standing contracts of a consumer that has no Cluster file
// any more, "" when there is none: what Liqo calls it is not known, and what is rendered
// without that would tear down what stands.
func (k *Known) Undescribed(consumer string) string {
	if known, looked := k.undescribed[consumer]; looked {
		return known
	}
	out := ""
	for _, c := range k.ledger.Consumer(consumer) {
		if manifests.Rendered(c) && c.Status.Phase != v1alpha1.PhaseReleasing && k.fleet.Clusters[c.Spec.Provider] == nil {
			out = c.Spec.Provider
			break
		}
	}
	k.undescribed[consumer] = out
	return out
}

// Of are those of which contracts want something delivered.
func Of(contracts []*v1alpha1.Contract) map[string]bool {
	needed := map[string]bool{}
	for _, c := range contracts {
		if c.Status.Phase.Held() && c.Spec.Stage != v1alpha1.StageReserve && !needed[c.Spec.Provider] {
			needed[c.Spec.Provider] = true
		}
	}
	return needed
}
