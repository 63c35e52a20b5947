package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A provider has one namespace of a name, and whoever maps to it may use and
// delete it. So no two mappings (tenant, consumer, namespace) have one remote
// namespace of a provider: the one that exists keeps it, the other is not placed
// there. What exists is what contracts that are or may be delivered have, and
// what this round has decided already.

// Mapping is a namespace of a consumer that is offloaded.
type Mapping struct{ Tenant, Consumer, Namespace string }

// RemoteKey is a namespace of a provider.
type RemoteKey struct{ Provider, Name string }

// Mappings count the contracts behind each mapping, by remote name and provider.
type Mappings map[string]map[string]map[Mapping]int

// Add counts a contract in (n 1) or out (n -1).
func (m Mappings) Add(clusters map[string]*v1alpha1.Cluster, c *v1alpha1.Contract, n int) {
	if c == nil || c.Spec.Offload == nil || !mapsAway(c) {
		return
	}
	id := v1alpha1.LiqoID(clusters, c.Spec.Consumer)
	for i := range c.Spec.Offload.Namespaces {
		ns := &c.Spec.Offload.Namespaces[i]
		remote := ns.RemoteName(id)
		at := m[remote]
		if at == nil {
			at = map[string]map[Mapping]int{}
			m[remote] = at
		}
		of := at[c.Spec.Provider]
		if of == nil {
			of = map[Mapping]int{}
			at[c.Spec.Provider] = of
		}
		k := Mapping{c.Metadata.Namespace, c.Spec.Consumer, ns.Name}
		if of[k] += n; of[k] != 0 {
			continue
		}
		if delete(of, k); len(of) == 0 {
			delete(at, c.Spec.Provider)
		}
		if len(at) == 0 {
			delete(m, remote)
		}
	}
}

// mapsAway reports whether a contract has, or may have, its namespaces at its
// provider.
func mapsAway(c *v1alpha1.Contract) bool {
	return c.Status.Phase.Held() && c.Spec.Stage != v1alpha1.StageReserve &&
		(c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Drained.IsZero())
}

// Holder is another mapping that has a remote namespace of a provider, false
// when there is none or when this one has it too: what shares one already is not
// fixed by ending either.
func (r *Draft) Holder(at RemoteKey, own Mapping) (other Mapping, taken bool) {
	was, now := r.Mapped[at.Name][at.Provider], r.MappedNow[at.Name][at.Provider]
	if was[own]+now[own] > 0 {
		return Mapping{}, false
	}
	for _, of := range []map[Mapping]int{was, now} {
		for m := range of {
			if m != own && was[m]+now[m] > 0 && (!taken || compareMappings(m, other) < 0) {
				other, taken = m, true
			}
		}
	}
	return other, taken
}

func compareMappings(a, b Mapping) int {
	if c := CompareNames(a.Tenant, a.Consumer, b.Tenant, b.Consumer); c != 0 {
		return c
	}
	return CompareNames(a.Namespace, "", b.Namespace, "")
}
