package settle

import (
	"fmt"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// beyondLimits refuses what no intent of the fleet may ask for, before anything
// is done for each of its replicas.
func (r *Settler) beyondLimits(j *draft.Job) (code, why string) {
	n := int64(max(j.In.Spec.Replicas.Min, j.In.Spec.Replicas.Max))
	if most := r.Limits.Replicas; n > most {
		return lifecycle.CodeLimit, fmt.Sprintf("it asks for %d replicas, and an intent may have %d at most: ask for fewer, or raise spec.limits.replicas in fleet.yaml", n, most)
	}
	if n = int64(j.Replicas()); !j.Gang() && j.In.Spec.MinReplicas > 0 {
		n = int64(j.In.Spec.MinReplicas)
	}
	if most, field := r.Accounts.Most(j.Tenant); n > most {
		return lifecycle.CodeQuota, fmt.Sprintf("it asks for %d contracts, and tenant %s may hold %d: ask for fewer replicas, or raise %s", n, j.TenantName, most, field)
	}
	return "", ""
}

// ContractsBefore is what limits.contracts was before RulesThousandContracts.
const ContractsBefore = 20_000

// KeptToItsEnd is what becomes of what exists beyond a limit.
const KeptToItsEnd = "what stands is kept to its end, and nothing new is placed"

// beyondQuota refuses what its tenant's quota would not hold even if nothing
// else was there.
func (r *Settler) beyondQuota(j *draft.Job) (code, why string) {
	q := j.Tenant.Spec.Quota
	if q == nil {
		return "", ""
	}
	n := int64(j.Replicas())
	if m := j.In.Spec.MinReplicas; !j.Gang() && m > 0 {
		n = int64(m)
	}
	most := func(k account.Resource) int64 { own, _ := j.Tenant.Quota(k); return own + j.Tenant.MayBorrow(k) }
	for _, alt := range j.Alternatives() {
		w := r.RequestOf(j, alt)
		var over string
		if top := most(account.GPUs) / 1000; q.GPU != nil && w.GPU != nil && w.GPU.Share == 0 && w.GPU.Profile == "" && w.GPU.Sharing == "" && w.GPU.Count*n > top {
			over = quotaText(j, account.GPUs, fmt.Sprintf("%d GPUs", w.GPU.Count*n), strconv.FormatInt(top, 10))
		}
		if top := most(account.CPU); q.CPU != nil && w.Need.At(quantity.CPU)*n > top {
			over = quotaText(j, account.CPU, v1alpha1.AmountOf(w.Need.At(quantity.CPU)*n).Canonical(v1alpha1.CPU)+" CPU", v1alpha1.AmountOf(top).Canonical(v1alpha1.CPU))
		}
		if top := most(account.Memory); q.Memory != nil && w.Need.At(quantity.Memory)*n > top {
			over = quotaText(j, account.Memory, v1alpha1.AmountOf(w.Need.At(quantity.Memory)*n).Canonical(v1alpha1.Memory)+" memory", v1alpha1.AmountOf(top).Canonical(v1alpha1.Memory))
		}
		if over == "" {
			return "", ""
		}
		why = over
	}
	return lifecycle.CodeQuota, why
}

// quotaText is what an intent asks for, what its tenant may hold at most, and
// which line of which file states so.
func quotaText(j *draft.Job, k account.Resource, asks, most string) string {
	field, name := [...]string{account.GPUs: "gpu", account.CPU: "cpu", account.Memory: "memory"}[k], j.TenantName
	if j.Tenant.MayBorrow(k) > 0 {
		most += " with what it may borrow"
	}
	return fmt.Sprintf("it asks for %s, and tenant %s may hold %s: ask for less, or raise quota.%s in tenants/%s.yaml", asks, name, most, field, name)
}

// remapped is why a change of an intent's namespaces or Secret cannot be
// written into its contracts, "" when it can: another mapping is where one of
// them would go.
func (r *Settler) remapped(j *draft.Job) (code, why string) {
	if len(j.Live) == 0 || j.In.Spec.Offload == nil && (j.In.Spec.VirtualNode == nil || j.In.Spec.VirtualNode.KubeconfigSecretRef == nil) {
		return "", ""
	}
	b := rules.BarsOf(&r.Draft, j)
	for _, c := range j.Live {
		if !c.Status.Phase.Charged() || c.Spec.Intent.Digest == j.In.Digest {
			continue
		}
		switch req := b.Breaks(c.Spec.Provider); req {
		case match.ReqRemoteNamespace:
			return lifecycle.CodeRemoteNamespace, "its change is not made, what stands is kept: " + b.Detail(c.Spec.Provider, req)
		case match.ReqSecret:
			if v := c.Spec.VirtualNode; v == nil || v.KubeconfigSecretRef == nil || *v.KubeconfigSecretRef != *j.In.Spec.VirtualNode.KubeconfigSecretRef {
				return lifecycle.CodeSecret, "its change is not made, what stands is kept: " + b.Detail(c.Spec.Provider, req)
			}
		}
	}
	return "", ""
}
