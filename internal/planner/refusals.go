package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// marksOf are the providers that are kept out of the market, or were within the
// last day, by name.
func marksOf(records map[string]draft.RefusalRecord, offers []*model.Offer) map[string]draft.RefusalMark {
	if len(records) == 0 {
		return nil
	}
	// A flavor of a file was not advertised by the one who denied it.
	agents, files := map[string]bool{}, map[inventory.Key]bool{}
	for _, o := range offers {
		if o.Static && !o.Sources.Agent {
			files[inventory.Key{Provider: o.Flavor.Metadata.Namespace, Name: o.Flavor.Metadata.Name}] = true
		} else {
			agents[o.Flavor.Metadata.Namespace] = true
		}
	}
	type slot struct {
		tenant string
		hour   int64
	}
	counted := map[string]map[slot]v1alpha1.Time{}
	for _, rec := range records {
		if !agents[rec.Provider] || files[inventory.Key{Provider: rec.Provider, Name: rec.Flavor}] {
			continue
		}
		slots := counted[rec.Provider]
		if slots == nil {
			slots = map[slot]v1alpha1.Time{}
			counted[rec.Provider] = slots
		}
		k := slot{rec.Tenant, rec.At.Unix() / 3600}
		if first, known := slots[k]; !known || rec.At.Before(first.Time) {
			slots[k] = rec.At
		}
	}
	marks := map[string]draft.RefusalMark{}
	for provider, slots := range counted {
		var m draft.RefusalMark
		for _, at := range slots {
			if at.After(m.Last.Time) {
				m.Last = at
			}
		}
		for _, at := range slots {
			if m.Last.Sub(at.Time) < draft.RefusalWindow {
				m.Count++
			}
		}
		if m.Count < 2 {
			continue
		}
		wait := draft.RefusalBackoffMax
		if m.Count <= 4 { // 10, 20, 40 minutes
			wait = draft.RefusalBackoff << (m.Count - 2)
		}
		m.Until = v1alpha1.TimeOf(m.Last.Add(min(wait, draft.RefusalBackoffMax)))
		marks[provider] = m
	}
	return marks
}

// finishRefusals writes the marks into the plan, and has the round made again when a provider
// is let in again.
func (r *round) finishRefusals() {
	for _, m := range r.Marks {
		r.Due(m.Until)
	}
	r.Plan.Conditions = conditionsOf(r.W.Offers, r.Marks, r.Now)
}

// refusalsChanged looks again at the offers of providers that went out of the
// market or came back, and at those that were described by the marks of the
// round before, which may be others by now. marks are those that hold, nil is by the
// ledger.
func (u *update) refusalsChanged(marks map[string]draft.RefusalMark) {
	if u.Marks = marks; marks == nil {
		u.Marks = marksOf(u.refusals, u.W.Offers)
	}
	if len(u.Marks)+len(u.last.draft.Marks) == 0 {
		return
	}
	for _, o := range u.Inventory.Offers() {
		if u.blocked(o) != o.Blocked {
			u.described(o, o.Offer, false)
		}
	}
}

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
