package planner

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// A provider has one namespace of a name, and whoever maps to it may use and
// delete it. So no two mappings (tenant, consumer, namespace) have one remote
// namespace of a provider: the one that stands keeps it, the other is not placed
// there. What stands is what contracts that are or may be delivered say, and
// what this round has decided already.

// mapping is a namespace of a consumer that is offloaded.
type mapping struct{ tenant, consumer, namespace string }

// remoteKey is a namespace of a provider.
type remoteKey struct{ provider, name string }

// mappings count the contracts behind each mapping, by remote name and provider.
type mappings map[string]map[string]map[mapping]int

// add counts a contract in (n 1) or out (n -1).
func (m mappings) add(clusters map[string]*v1alpha1.Cluster, c *v1alpha1.Contract, n int) {
	if c == nil || c.Spec.Offload == nil || !mapsAway(c) {
		return
	}
	id := v1alpha1.LiqoID(clusters, c.Spec.Consumer)
	for i := range c.Spec.Offload.Namespaces {
		ns := &c.Spec.Offload.Namespaces[i]
		remote := ns.RemoteName(id)
		at := m[remote]
		if at == nil {
			at = map[string]map[mapping]int{}
			m[remote] = at
		}
		of := at[c.Spec.Provider]
		if of == nil {
			of = map[mapping]int{}
			at[c.Spec.Provider] = of
		}
		k := mapping{c.Metadata.Namespace, c.Spec.Consumer, ns.Name}
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

// readMappings goes through the ledger again, because consumers have other ids.
func (r *round) readMappings() {
	r.mapped = mappings{}
	for c := range r.w.Ledger.Contracts() {
		r.mapped.add(r.w.Clusters, c, 1)
	}
}

// holder is another mapping that has a remote namespace of a provider, false
// when there is none or when this one has it too: what shares one already is not
// mended by ending either.
func (r *round) holder(at remoteKey, own mapping) (other mapping, taken bool) {
	stands, now := r.mapped[at.name][at.provider], r.mappedNow[at.name][at.provider]
	if stands[own]+now[own] > 0 {
		return mapping{}, false
	}
	for _, of := range []map[mapping]int{stands, now} {
		for m := range of {
			if m != own && stands[m]+now[m] > 0 && (!taken || compareMappings(m, other) < 0) {
				other, taken = m, true
			}
		}
	}
	return other, taken
}

func compareMappings(a, b mapping) int {
	if c := compareNames(a.tenant, a.consumer, b.tenant, b.consumer); c != 0 {
		return c
	}
	return compareNames(a.namespace, "", b.namespace, "")
}

// bars keep a job from providers for what it names there: a remote namespace
// that another mapping has, a Secret that its tenant may not use. nil for none.
type bars struct {
	taken            map[string]string // provider → why
	tenant           *v1alpha1.TenantSpec
	clusters         map[string]*v1alpha1.Cluster
	consumer, secret string
}

// barsOf are a job's, as things stand.
func (r *round) barsOf(j *job) *bars {
	if j.in == nil || reserves(&j.in.Spec) {
		return nil
	}
	var b *bars
	if v := j.in.Spec.VirtualNode; v != nil && v.KubeconfigSecretRef != nil {
		b = &bars{tenant: j.tenant.Spec, clusters: r.w.Clusters, consumer: j.consumer, secret: v.KubeconfigSecretRef.Name}
	}
	if j.in.Spec.Offload == nil {
		return b
	}
	id := v1alpha1.LiqoID(r.w.Clusters, j.consumer)
	for i := range j.in.Spec.Offload.Namespaces {
		ns := &j.in.Spec.Offload.Namespaces[i]
		remote, own := ns.RemoteName(id), mapping{j.tenantName, j.consumer, ns.Name}
		for _, at := range []map[string]map[mapping]int{r.mapped[remote], r.mappedNow[remote]} {
			for provider := range at {
				other, taken := r.holder(remoteKey{provider, remote}, own)
				if !taken {
					continue
				}
				if b == nil {
					b = &bars{}
				}
				if b.taken == nil {
					b.taken = map[string]string{}
				}
				if why := takenText(provider, remote, own, other); b.taken[provider] == "" || why < b.taken[provider] {
					b.taken[provider] = why
				}
			}
		}
	}
	return b
}

func takenText(provider, remote string, own, other mapping) string {
	return fmt.Sprintf("%s at %s is what namespace %s of tenant %s in %s is mapped to: namespace %s needs another name there", remote, provider, other.namespace, other.tenant, other.consumer, own.namespace)
}

// breaks is the requirement that a provider fails, "" for none.
func (b *bars) breaks(provider string) string {
	switch {
	case b == nil:
	case b.taken[provider] != "":
		return match.ReqRemoteNamespace
	case b.secret != "" && (b.tenant == nil || !b.tenant.MayUseSecret(b.consumer, v1alpha1.PeeringNamespace(b.clusters, b.consumer, provider), b.secret)):
		return match.ReqSecret
	}
	return ""
}

// detail says it with names.
func (b *bars) detail(provider, req string) string {
	switch {
	case b == nil:
		return ""
	case req == match.ReqRemoteNamespace:
		return b.taken[provider]
	}
	return fmt.Sprintf("its tenant may not use Secret %s/%s of %s: declare it under spec.secrets of its file", v1alpha1.PeeringNamespace(b.clusters, b.consumer, provider), b.secret, b.consumer)
}

// brokenText says of the first offer that only a bar keeps out why; "" for what
// is no bar.
func (b *bars) brokenText(s *match.Class, l *limits, req string) string {
	if b == nil || req != match.ReqRemoteNamespace && req != match.ReqSecret {
		return ""
	}
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Fails == "" && l.breaks(c) == req {
			return req + ": " + b.detail(c.Offer.Provider, req)
		}
	}
	return ""
}

// remapped says why a change of an intent's namespaces or Secret cannot be
// written into its contracts, "" when it can: another mapping stands where one of
// them would go.
func (r *round) remapped(j *job) (code, why string) {
	if j.in.Spec.Offload == nil && (j.in.Spec.VirtualNode == nil || j.in.Spec.VirtualNode.KubeconfigSecretRef == nil) {
		return "", ""
	}
	b := r.barsOf(j)
	for _, c := range j.live {
		if !c.Status.Phase.Charged() || c.Spec.Intent.Digest == j.in.Digest {
			continue
		}
		switch req := b.breaks(c.Spec.Provider); req {
		case match.ReqRemoteNamespace:
			return CodeRemoteNamespace, "its change is not made, what stands is kept: " + b.detail(c.Spec.Provider, req)
		case match.ReqSecret:
			if v := c.Spec.VirtualNode; v == nil || v.KubeconfigSecretRef == nil || *v.KubeconfigSecretRef != *j.in.Spec.VirtualNode.KubeconfigSecretRef {
				return CodeSecret, "its change is not made, what stands is kept: " + b.detail(c.Spec.Provider, req)
			}
		}
	}
	return "", ""
}

// renames reports whether an intent chooses what a namespace of it is called at
// providers: two that are placed at once may choose the same.
func (j *job) renames() bool {
	if j.in == nil || j.in.Spec.Offload == nil {
		return false
	}
	for i := range j.in.Spec.Offload.Namespaces {
		if s := j.in.Spec.Offload.Namespaces[i].NamespaceMappingStrategy; s != "" && s != "DefaultName" {
			return true
		}
	}
	return false
}
