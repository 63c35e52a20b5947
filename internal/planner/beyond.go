package planner

import (
	"fmt"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// beyondLimits refuses what no intent of the fleet may ask for, before anything
// is done for each of its replicas.
func (r *round) beyondLimits(j *job) (code, why string) {
	n := int64(max(j.in.Spec.Replicas.Min, j.in.Spec.Replicas.Max))
	if most := r.limits.Replicas; n > most {
		return CodeLimit, fmt.Sprintf("it asks for %d replicas, and an intent may have %d at most: ask for fewer, or raise spec.limits.replicas in fleet.yaml", n, most)
	}
	if n = int64(j.replicas()); !j.gang() && j.in.Spec.MinReplicas > 0 {
		n = int64(j.in.Spec.MinReplicas)
	}
	if most, field := r.accounts.Most(j.tenant); n > most {
		return CodeQuota, fmt.Sprintf("it asks for %d contracts, and tenant %s may hold %d: ask for fewer replicas, or raise %s", n, j.tenantName, most, field)
	}
	return "", ""
}

// contractsBefore is what limits.contracts was before rulesThousandContracts.
const contractsBefore = 20_000

// limitsBy are the limits of a world's fleet, by the rules that it is decided by.
func limitsBy(w *World) v1alpha1.Limits {
	var limits v1alpha1.Limits
	if w.Fleet != nil {
		limits = w.Fleet.Limits
	}
	if limits.Contracts == 0 && w.Rules != 0 && w.Rules < rulesThousandContracts {
		limits.Contracts = contractsBefore
	}
	return limits.Filled()
}

// BeyondLimits names what stands beyond a limit of the fleet or of its tenant,
// because that came later: it is kept to its end, and nothing new is placed.
func BeyondLimits(w *World) []string {
	limits := limitsBy(w)
	var out []string
	for _, name := range sortedNames(w.Tenants) {
		if text := tenantBeyond(w, name, limits); text != "" {
			out = append(out, text)
		}
	}
	for _, in := range w.Intents {
		asks := int64(max(in.Spec.Replicas.Min, in.Spec.Replicas.Max))
		if asks <= limits.Replicas {
			continue
		}
		held := map[int32]bool{}
		for _, c := range w.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if c.Status.Phase.Charged() {
				held[c.Spec.Intent.Replica] = true
			}
		}
		if n := int64(len(held)); n > limits.Replicas {
			out = append(out, fmt.Sprintf("%s/%s holds %d replicas, and an intent may have %d (spec.limits.replicas in fleet.yaml): %s", in.Metadata.Namespace, in.Metadata.Name, n, limits.Replicas, keptToItsEnd))
		}
	}
	return out
}

const keptToItsEnd = "what stands is kept to its end, and nothing new is placed"

// tenantBeyond names a tenant that holds more contracts than it may, "" for others.
func tenantBeyond(w *World, name string, limits v1alpha1.Limits) string {
	most, field := account.MostContracts(limits, &w.Tenants[name].Spec, name)
	if n := int64(w.Ledger.Totals(name).Contracts); n > most {
		return fmt.Sprintf("tenant %s holds %d contracts, and may hold %d (%s): %s", name, n, most, field, keptToItsEnd)
	}
	return ""
}

// beyondQuota refuses what its tenant's quota would not hold even if nothing
// else stood.
func (r *round) beyondQuota(j *job) (code, why string) {
	q := j.tenant.Spec.Quota
	if q == nil {
		return "", ""
	}
	n := int64(j.replicas())
	if m := j.in.Spec.MinReplicas; !j.gang() && m > 0 {
		n = int64(m)
	}
	most := func(k account.Resource) int64 { own, _ := j.tenant.Quota(k); return own + j.tenant.MayBorrow(k) }
	for _, alt := range j.alternatives() {
		w := r.wishOf(j, alt)
		var over string
		if top := most(account.GPUs) / 1000; q.GPU != nil && w.GPU != nil && w.GPU.Share == 0 && w.GPU.Profile == "" && w.GPU.Sharing == "" && w.GPU.Count*n > top {
			over = j.overQuota(account.GPUs, fmt.Sprintf("%d GPUs", w.GPU.Count*n), strconv.FormatInt(top, 10))
		}
		if top := most(account.CPU); q.CPU != nil && w.Need.At(quantity.CPU)*n > top {
			over = j.overQuota(account.CPU, v1alpha1.AmountOf(w.Need.At(quantity.CPU)*n).Canonical(v1alpha1.CPU)+" CPU", v1alpha1.AmountOf(top).Canonical(v1alpha1.CPU))
		}
		if top := most(account.Memory); q.Memory != nil && w.Need.At(quantity.Memory)*n > top {
			over = j.overQuota(account.Memory, v1alpha1.AmountOf(w.Need.At(quantity.Memory)*n).Canonical(v1alpha1.Memory)+" memory", v1alpha1.AmountOf(top).Canonical(v1alpha1.Memory))
		}
		if over == "" {
			return "", ""
		}
		why = over
	}
	return CodeQuota, why
}

// overQuota says what an intent asks for, what its tenant may hold at most, and
// which line of which file says so.
func (j *job) overQuota(k account.Resource, asks, most string) string {
	field, name := [...]string{account.GPUs: "gpu", account.CPU: "cpu", account.Memory: "memory"}[k], j.tenantName
	if j.tenant.MayBorrow(k) > 0 {
		most += " with what it may borrow"
	}
	return fmt.Sprintf("it asks for %s, and tenant %s may hold %s: ask for less, or raise quota.%s in tenants/%s.yaml", asks, name, most, field, name)
}
