// Package beyond is what exists beyond what the fleet allows now, because that came later:
// limits of replicas and contracts, older rules, domains that replicas share. It is kept,
// and counted here for people.
//
// Called by planner and, through it, by the commands. Pure functions of a world.
package beyond

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// LimitsBy are the limits of a world's fleet, by the rules that it is decided by.
func LimitsBy(w *draft.World) v1alpha1.Limits {
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
	fleet := w.Fleet
	if fleet == nil {
		fleet = &v1alpha1.FleetSpec{}
	}
	offers := make(map[[2]string]*model.Offer, len(w.Offers))
	for _, o := range w.Offers {
		offers[[2]string{o.Flavor.Metadata.Namespace, o.Flavor.Metadata.Name}] = o
	}
	for _, in := range w.Intents {
		kind, ok := domain.Of(fleet, in)
		if !ok || !kind.Required || len(out) == apartShown {
			continue
		}
		at := map[string]bool{}
		for _, c := range w.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if o := offers[[2]string{c.Spec.Provider, c.Spec.Flavor}]; c.Status.Phase.Charged() {
				at[match.DomainOf(w.Clusters[c.Spec.Provider], c.Spec.Provider, o, kind.By, kind.Label)] = true
			}
		}
		if len(at) > 1 {
			out = append(out, fmt.Sprintf("%s/%s is in %d domains by %s, and its replicas share one (placement.within): what exists is kept where it is, and the next to be placed or moved goes to where most of it is", in.Metadata.Namespace, in.Metadata.Name, len(at), kind.String()))
		}
	}
	return out
}

// Limits names what exists beyond a limit of the fleet or of its tenant, because
// that came later: it is kept to its end, and nothing new is placed. What was placed
// under older rules is counted.
func Limits(w *draft.World) []string {
	limits := LimitsBy(w)
	var out []string
	for _, name := range draft.SortedNames(w.Tenants) {
		if text := Tenant(w, name, limits); text != "" {
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

// Tenant names a tenant that holds more contracts than it may, "" for others.
func Tenant(w *draft.World, name string, limits v1alpha1.Limits) string {
	most, field := account.MostContracts(limits, &w.Tenants[name].Spec, name)
	if n := int64(w.Ledger.ChargedContracts(name)); n > most {
		return fmt.Sprintf("tenant %s holds %d contracts, and may hold %d (%s): %s", name, n, most, field, settle.KeptToItsEnd)
	}
	return ""
}
