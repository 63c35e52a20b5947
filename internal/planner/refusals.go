package planner

import (
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
