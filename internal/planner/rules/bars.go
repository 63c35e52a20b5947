package rules

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Bars keep a job from providers for what it names there: a remote namespace
// that another mapping has, a Secret that its tenant may not use. nil for none.
type Bars struct {
	taken            map[string]string // provider → why
	tenant           *v1alpha1.TenantSpec
	clusters         map[string]*v1alpha1.Cluster
	consumer, secret string
}

// BarsOf are a job's, as of now.
func BarsOf(r *draft.Draft, j *draft.Job) *Bars {
	if j.In == nil || lifecycle.Reserves(&j.In.Spec) {
		return nil
	}
	var b *Bars
	if v := j.In.Spec.VirtualNode; v != nil && v.KubeconfigSecretRef != nil {
		b = &Bars{tenant: j.Tenant.Spec, clusters: r.W.Clusters, consumer: j.Consumer, secret: v.KubeconfigSecretRef.Name}
	}
	if j.In.Spec.Offload == nil {
		return b
	}
	id := v1alpha1.LiqoID(r.W.Clusters, j.Consumer)
	for i := range j.In.Spec.Offload.Namespaces {
		ns := &j.In.Spec.Offload.Namespaces[i]
		remote, own := ns.RemoteName(id), draft.Mapping{Tenant: j.TenantName, Consumer: j.Consumer, Namespace: ns.Name}
		for provider, other := range r.Holders(remote, own) {
			if b == nil {
				b = &Bars{}
			}
			if b.taken == nil {
				b.taken = map[string]string{}
			}
			if why := takenText(provider, remote, own, other); b.taken[provider] == "" || why < b.taken[provider] {
				b.taken[provider] = why
			}
		}
	}
	return b
}

func takenText(provider, remote string, own, other draft.Mapping) string {
	return fmt.Sprintf("%s at %s is what namespace %s of tenant %s in %s is mapped to: namespace %s needs another name there", remote, provider, other.Namespace, other.Tenant, other.Consumer, own.Namespace)
}

// Breaks is the requirement that a provider fails, "" for none.
func (b *Bars) Breaks(provider string) string {
	switch {
	case b == nil:
	case b.taken[provider] != "":
		return match.ReqRemoteNamespace
	case b.secret != "" && (b.tenant == nil || !b.tenant.MayUseSecret(b.consumer, v1alpha1.PeeringNamespace(b.clusters, b.consumer, provider), b.secret)):
		return match.ReqSecret
	}
	return ""
}

// Detail explains with names which requirement a provider fails.
func (b *Bars) Detail(provider, req string) string {
	switch {
	case b == nil:
		return ""
	case req == match.ReqRemoteNamespace:
		return b.taken[provider]
	}
	return fmt.Sprintf("its tenant may not use Secret %s/%s of %s: declare it under spec.secrets of its file", v1alpha1.PeeringNamespace(b.clusters, b.consumer, provider), b.secret, b.consumer)
}

// Broken is why the first offer that only a bar keeps out is kept out; "" for
// what is no bar.
func (b *Bars) Broken(s *match.Class, rejects func(*match.Candidate) string, req string) string {
	if b == nil || req != match.ReqRemoteNamespace && req != match.ReqSecret {
		return ""
	}
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Fails == "" && rejects(c) == req {
			return req + ": " + b.Detail(c.Offer.Provider, req)
		}
	}
	return ""
}
