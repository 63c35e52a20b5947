package draft

import (
	"iter"

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

// Mappings count the contracts behind each mapping, by remote name.
type Mappings map[string]*Mapped

// Mapped are the mappings to one remote name.
type Mapped struct {
	// At counts contracts by provider.
	At map[string]map[Mapping]int
	// Providers counts where each mapping is.
	Providers map[Mapping]int
}

// at are a provider's of a remote name.
func (m Mappings) at(k RemoteKey) map[Mapping]int {
	if of := m[k.Name]; of != nil {
		return of.At[k.Provider]
	}
	return nil
}

// others reports whether anybody else has a remote name, at any provider.
func (m Mappings) others(name string, own Mapping) bool {
	of := m[name]
	if of == nil {
		return false
	}
	_, has := of.Providers[own]
	return len(of.Providers) > 1 || !has
}

// Add counts a contract in (n 1) or out (n -1).
func (m Mappings) Add(clusters map[string]*v1alpha1.Cluster, c *v1alpha1.Contract, n int) {
	if c == nil || c.Spec.Offload == nil || !mapsAway(c) {
		return
	}
	id := v1alpha1.LiqoID(clusters, c.Spec.Consumer)
	for i := range c.Spec.Offload.Namespaces {
		ns := &c.Spec.Offload.Namespaces[i]
		remote := ns.RemoteName(id)
		if m[remote] == nil {
			m[remote] = &Mapped{At: map[string]map[Mapping]int{}, Providers: map[Mapping]int{}}
		}
		m[remote].add(c.Spec.Provider, Mapping{c.Metadata.Namespace, c.Spec.Consumer, ns.Name}, n)
		if len(m[remote].At) == 0 {
			delete(m, remote)
		}
	}
}

// add counts contracts of a mapping at a provider.
func (m *Mapped) add(provider string, k Mapping, n int) {
	of := m.At[provider]
	if of == nil {
		of = map[Mapping]int{}
		m.At[provider] = of
	}
	was := of[k]
	if of[k] += n; was == 0 && of[k] != 0 {
		m.Providers[k]++
	}
	if of[k] != 0 {
		return
	}
	if delete(of, k); len(of) == 0 {
		delete(m.At, provider)
	}
	if was == 0 {
		return
	}
	if m.Providers[k]--; m.Providers[k] == 0 {
		delete(m.Providers, k)
	}
}

// mapsAway reports whether a contract has, or may have, its namespaces at its
// provider.
func mapsAway(c *v1alpha1.Contract) bool {
	return c.Status.Phase.Held() && c.Spec.Stage != v1alpha1.StageReserve &&
		(c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Drained.IsZero())
}

// Holders are other mappings that have a remote name, by provider; none where this one
// has it there too: what shares one already is not fixed by ending either. A provider may
// come twice. The time is that of the providers only where anybody else has the name.
func (r *Draft) Holders(name string, own Mapping) iter.Seq2[string, Mapping] {
	return func(yield func(string, Mapping) bool) {
		if !r.Mapped.others(name, own) && !r.MappedNow.others(name, own) {
			return
		}
		for _, m := range []Mappings{r.Mapped, r.MappedNow} {
			if m[name] == nil {
				continue
			}
			for provider := range m[name].At {
				at := RemoteKey{provider, name}
				if other, taken := holder(r.Mapped.at(at), r.MappedNow.at(at), own); taken && !yield(provider, other) {
					return
				}
			}
		}
	}
}

// holder is the first of the other mappings that has a remote namespace of a provider.
func holder(was, now map[Mapping]int, own Mapping) (other Mapping, taken bool) {
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
