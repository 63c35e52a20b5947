package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Types of conditions.
const (
	// ConditionLocation: its agent reports another place than its Cluster file states.
	ConditionLocation = "LocationContradicted"
	// ConditionPrice: its agent asks other prices than are stated.
	ConditionPrice = "PriceContradicted"
	// ConditionShadowed: its agent reports a flavor of which a file under flavors/ has the name.
	ConditionShadowed = "FlavorFileShadowed"
	// ConditionRefuses: it denies what it advertises.
	ConditionRefuses = "RefusesContracts"
)

// finishRefusals writes the marks into the plan, which is due again when a provider is let
// back in.
func (r *round) finishRefusals() {
	for _, m := range r.Marks {
		r.Due(m.Until)
	}
	r.Plan.Conditions = conditionsOf(r.W.Offers, r.Marks, r.Now)
}

// Conditions are those of all providers of a world, as its plan has them.
func Conditions(w *draft.World) []draft.Condition {
	refusals, facts := map[string]draft.RefusalRecord{}, draft.Facts{W: w}
	for c := range w.Ledger.Contracts() {
		if rec, denied := facts.RefusalOf(c); denied {
			refusals[c.Metadata.Name] = rec
		}
	}
	return conditionsOf(w.Offers, marksOf(refusals, w.Offers), w.Now)
}

// conditionsOf are the conditions in order of provider and type, one of each
// type: of a provider's flavors the first by name is the example.
func conditionsOf(offers []*model.Offer, marks map[string]draft.RefusalMark, now v1alpha1.Time) []draft.Condition {
	type key struct{ provider, kind string }
	found := map[key]draft.Condition{}
	flavors := map[key]string{}
	add := func(o *model.Offer, kind, text string) {
		k := key{o.Flavor.Metadata.Namespace, kind}
		if was, known := flavors[k]; known && was <= o.Flavor.Metadata.Name {
			return
		}
		flavors[k] = o.Flavor.Metadata.Name
		found[k] = draft.Condition{Provider: k.provider, Type: kind, Message: "flavor " + o.Flavor.Metadata.Name + ": " + text}
	}
	for _, o := range offers {
		if said := o.Sources.LocationConflict; said != "" {
			add(o, ConditionLocation, "its agent reports "+said+"; what is stated holds: correct the agent, or the location in the Cluster file")
		}
		if said := o.Sources.PriceConflict; said != "" {
			add(o, ConditionPrice, "its agent reports "+said+"; what is stated holds: correct the agent, or the stated price")
		}
		if o.Sources.Shadows {
			add(o, ConditionShadowed, "its agent reports it, and a file under flavors/"+o.Flavor.Metadata.Namespace+" offers it too: nothing new of it is sold until one of them is renamed; a file without capacity adds facts to what the agent reports")
		}
	}
	for provider, m := range marks {
		text := fmt.Sprintf("it denied contracts on what it advertised %d times within a day, last %s", m.Count, draft.Stamp(m.Last))
		switch {
		case m.Until.After(now.Time):
			text += "; it sells nothing new until " + draft.Stamp(m.Until)
		case now.Sub(m.Last.Time) >= draft.RefusalWindow:
			continue
		}
		found[key{provider, ConditionRefuses}] = draft.Condition{Provider: provider, Type: ConditionRefuses, Message: text + "; look at the log of its agent"}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b key) int { return draft.CompareNames(a.provider, a.kind, b.provider, b.kind) })
	if len(keys) == 0 {
		return nil
	}
	out := make([]draft.Condition, len(keys))
	for i, k := range keys {
		out[i] = found[k]
	}
	return out
}
