package planner

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// A provider that denies what it advertised itself sells nothing new for a
// while, to nobody: renaming its flavors, or denying another intent each time,
// does not help it. Of a provider's denials one a tenant and hour counts, so that
// no tenant alone puts it out of the market; the second that counts within a day
// keeps it out for refusalBackoff, each further one for twice as long, up to
// refusalBackoffMax. All of it follows from the ledger.
const (
	refusalWindow     = 24 * time.Hour
	refusalBackoff    = 10 * time.Minute
	refusalBackoffMax = time.Hour
)

// denialMemory is how long a denial can count: for its provider (refusalWindow), and
// for the offer or provider that its intent avoids (denialBackoffMax).
const denialMemory = max(refusalWindow, denialBackoffMax)

// keepEnded is how long a contract that has ended stays in the tree: retention.ended,
// and where its provider denied it as long as that counts. A fleet that keeps less
// must not forget who denied what.
func (r *round) keepEnded(c *v1alpha1.Contract) time.Duration {
	keep := r.fleet.Retention.Ended.Duration
	if keep <= 0 {
		keep = ledger.DefaultRetention
	}
	if keep >= denialMemory || !r.by(rulesDenialsKept) {
		return keep
	}
	_, refused := refusalOf(c)
	if _, denied := deniedAt(c); refused || denied {
		return denialMemory
	}
	return keep
}

// refusalRecord is one contract that its provider denied.
type refusalRecord struct {
	provider, flavor, tenant string
	at                       v1alpha1.Time
}

// refusalOf is the denial that a contract records, false when there is none.
func refusalOf(c *v1alpha1.Contract) (refusalRecord, bool) {
	code, at := lifecycle.Trouble(c)
	rec := refusalRecord{provider: c.Spec.Provider, flavor: c.Spec.Flavor, tenant: c.Metadata.Namespace, at: at}
	return rec, code == CodeRefused || code == CodeSliceDenied
}

func (r *round) noteRefusal(c *v1alpha1.Contract) {
	if rec, denied := refusalOf(c); denied {
		r.refusals[c.Metadata.Name] = rec
	}
}

// refusalMark says that a provider has denied what it advertised: so many of its
// denials counted, and until when it sells nothing new.
type refusalMark struct {
	count int
	last  v1alpha1.Time
	until v1alpha1.Time
}

// marksOf are the providers that are kept out of the market, or were within the
// last day, by name.
func marksOf(records map[string]refusalRecord, offers []*model.Offer) map[string]refusalMark {
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
		if !agents[rec.provider] || files[inventory.Key{Provider: rec.provider, Name: rec.flavor}] {
			continue
		}
		slots := counted[rec.provider]
		if slots == nil {
			slots = map[slot]v1alpha1.Time{}
			counted[rec.provider] = slots
		}
		k := slot{rec.tenant, rec.at.Unix() / 3600}
		if first, known := slots[k]; !known || rec.at.Before(first.Time) {
			slots[k] = rec.at
		}
	}
	marks := map[string]refusalMark{}
	for provider, slots := range counted {
		var m refusalMark
		for _, at := range slots {
			if at.After(m.last.Time) {
				m.last = at
			}
		}
		for _, at := range slots {
			if m.last.Sub(at.Time) < refusalWindow {
				m.count++
			}
		}
		if m.count < 2 {
			continue
		}
		wait := refusalBackoffMax
		if m.count <= 4 { // 10, 20, 40 minutes
			wait = refusalBackoff << (m.count - 2)
		}
		m.until = v1alpha1.TimeOf(m.last.Add(min(wait, refusalBackoffMax)))
		marks[provider] = m
	}
	return marks
}

// outOfMarket is until when a provider sells nothing new because of its
// refusals; zero when it sells.
func (r *round) outOfMarket(provider string) v1alpha1.Time {
	if m, marked := r.marks[provider]; marked && m.until.After(r.now.Time) {
		return m.until
	}
	return v1alpha1.Time{}
}

// finishRefusals tells of the marks, and has the round made again when a provider
// is let in again.
func (r *round) finishRefusals() {
	for _, m := range r.marks {
		r.due(m.until)
	}
	r.plan.Conditions = conditionsOf(r.w.Offers, r.marks, r.now)
}

// refusalsChanged looks again at the offers of providers that went out of the
// market or came back, and at those that were described by the marks of the
// round before, which may say otherwise by now.
func (u *update) refusalsChanged() {
	u.marks = marksOf(u.refusals, u.w.Offers)
	if len(u.marks)+len(u.last.marks) == 0 {
		return
	}
	for _, o := range u.inventory.Offers() {
		if u.blocked(o) != o.Blocked {
			u.described(o, o.Offer, false)
		}
	}
}

// Condition is something about a provider that people should look at.
type Condition struct {
	// Provider cluster.
	Provider string `json:"provider"`
	// Type is one of the Condition* words.
	Type string `json:"type"`
	// Message says it, and what to do.
	Message string `json:"message"`
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
func Conditions(w *World) []Condition {
	refusals := map[string]refusalRecord{}
	for c := range w.Ledger.Contracts() {
		if rec, denied := refusalOf(c); denied {
			refusals[c.Metadata.Name] = rec
		}
	}
	return conditionsOf(w.Offers, marksOf(refusals, w.Offers), w.Now)
}

// conditionsOf are the conditions in order of provider and type, one of each
// type: of a provider's flavors the first by name is the example.
func conditionsOf(offers []*model.Offer, marks map[string]refusalMark, now v1alpha1.Time) []Condition {
	type key struct{ provider, kind string }
	found := map[key]Condition{}
	flavors := map[key]string{}
	add := func(o *model.Offer, kind, text string) {
		k := key{o.Flavor.Metadata.Namespace, kind}
		if was, known := flavors[k]; known && was <= o.Flavor.Metadata.Name {
			return
		}
		flavors[k] = o.Flavor.Metadata.Name
		found[k] = Condition{k.provider, kind, "flavor " + o.Flavor.Metadata.Name + ": " + text}
	}
	for _, o := range offers {
		if said := o.Sources.LocationConflict; said != "" {
			add(o, ConditionLocation, "its agent reports "+said+"; what is stated holds: correct the agent, or the location in the Cluster file")
		}
		if said := o.Sources.PriceConflict; said != "" {
			add(o, ConditionPrice, "its agent reports "+said+"; what is stated holds: correct the agent, or the stated price")
		}
		if o.Sources.Shadows {
			add(o, ConditionShadowed, "its agent reports it, so that its file under flavors/"+o.Flavor.Metadata.Namespace+" states nothing: delete the file, and state place and price in the Cluster file or a price table")
		}
	}
	for provider, m := range marks {
		text := fmt.Sprintf("it denied contracts on what it advertised %d times within a day, last %s", m.count, stamp(m.last))
		switch {
		case m.until.After(now.Time):
			text += "; it sells nothing new until " + stamp(m.until)
		case now.Sub(m.last.Time) >= refusalWindow:
			continue
		}
		found[key{provider, ConditionRefuses}] = Condition{provider, ConditionRefuses, text + "; look at the log of its agent"}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b key) int { return compareNames(a.provider, a.kind, b.provider, b.kind) })
	if len(keys) == 0 {
		return nil
	}
	out := make([]Condition, len(keys))
	for i, k := range keys {
		out[i] = found[k]
	}
	return out
}
