package reconciler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// clashing are the intents, by "<tenant>/<intent>" with why, whose contracts would
// take what another mapping is called at a provider. A plan has none; it is looked
// at again before anything is written, because with Flux, Argo CD and agents what
// is committed is applied by others. What stood already is for who delivers.
func (r *Reconciler) clashing(in *inputs, keys []string, byKey map[string]*share) map[string]string {
	var changes []model.Change
	of := map[[2]string]string{} // consumer, namespace → key
	for _, key := range keys {
		changes = append(changes, byKey[key].Contracts...)
		for _, c := range byKey[key].Contracts {
			if c.After == nil || c.After.Spec.Offload == nil || !manifests.Rendered(c.After) || manifests.Alike(c.Before, c.After) {
				continue
			}
			for _, ns := range c.After.Spec.Offload.Namespaces {
				of[[2]string{c.After.Spec.Consumer, ns.Name}] = key
			}
		}
	}
	out := map[string]string{}
	if len(of) == 0 {
		return out
	}
	r.deliver.known.Follow(in.ledger, in.fleet)
	for at, why := range r.deliver.known.With(ledger.Changes{Contracts: changes}) {
		if key := of[at]; key != "" {
			out[key] = fmt.Sprintf("namespace %s of %s: %s", at[1], at[0], why)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		r.once.Log.Warn("a change is not written, because it clashes", "intent", key, "reason", out[key])
	}
	return out
}
