package planner

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// limitsBy are the limits of a world's fleet, by the rules that it is decided by.
func limitsBy(w *draft.World) v1alpha1.Limits {
	var limits v1alpha1.Limits
	if w.Fleet != nil {
		limits = w.Fleet.Limits
	}
	if limits.Contracts == 0 && w.Rules != 0 && w.Rules < draft.RulesThousandContracts {
		limits.Contracts = settle.ContractsBefore
	}
	return limits.Filled()
}

// olderRules counts the contracts that were placed, or last resized, by rules older than
// these, "" for none.
func olderRules(w *draft.World) string {
	n := 0
	for c := range w.Ledger.Contracts() {
		if c.Status.Phase.Charged() && c.Decision.Rules < draft.Rules {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 contract was placed under older rules, and is kept on its terms"
	}
	return fmt.Sprintf("%d contracts were placed under older rules, and are kept on their terms", n)
}

// apartShown bounds how many intents are named whose replicas are in several domains.
const apartShown = 20

// apart names the intents whose replicas must share a domain and are in several, because
// they were placed before that was asked.
func apart(w *draft.World) (out []string) {
	r := newRound(w)
	for _, in := range w.Intents {
		within, ok := r.WithinOf(in)
		if !ok || !within.Required || len(out) == apartShown {
			continue
		}
		at := map[string]bool{}
		for _, c := range w.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if c.Status.Phase.Charged() {
				at[r.DomainOf(c, within.By, within.Label)] = true
			}
		}
		if len(at) > 1 {
			out = append(out, fmt.Sprintf("%s/%s is in %d domains by %s, and its replicas share one (placement.within): what exists is kept where it is, and the next to be placed or moved goes to where most of it is", in.Metadata.Namespace, in.Metadata.Name, len(at), match.KindOf(within.By, within.Label)))
		}
	}
	return out
}

// BeyondLimits names what exists beyond a limit of the fleet or of its tenant, because
// that came later: it is kept to its end, and nothing new is placed. What was placed
// under older rules is counted.
func BeyondLimits(w *draft.World) []string {
	limits := limitsBy(w)
	var out []string
	for _, name := range draft.SortedNames(w.Tenants) {
		if text := tenantBeyond(w, name, limits); text != "" {
			out = append(out, text)
		}
	}
	if text := olderRules(w); text != "" {
		out = append(out, text)
	}
	out = append(out, apart(w)...)
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
			out = append(out, fmt.Sprintf("%s/%s holds %d replicas, and an intent may have %d (spec.limits.replicas in fleet.yaml): %s", in.Metadata.Namespace, in.Metadata.Name, n, limits.Replicas, settle.KeptToItsEnd))
		}
	}
	return out
}

// tenantBeyond names a tenant that holds more contracts than it may, "" for others.
func tenantBeyond(w *draft.World, name string, limits v1alpha1.Limits) string {
	most, field := account.MostContracts(limits, &w.Tenants[name].Spec, name)
	if n := int64(w.Ledger.Totals(name).Contracts); n > most {
		return fmt.Sprintf("tenant %s holds %d contracts, and may hold %d (%s): %s", name, n, most, field, settle.KeptToItsEnd)
	}
	return ""
}
