package market

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// stored is a provider's rows in the tables.
type stored struct {
	offers []*offerRow
	usage  []*usageRow
}

// write brings a provider's rows in line with what is known of it. Rows that
// say the same stay, so that a report costs what it changes.
func (m *Market) write(txn *memdb.Txn, name string, have stored) {
	offers, usage := m.desired(name)
	for _, old := range have.offers {
		if offers[old.name] == nil {
			drop(txn, tableOffer, old)
		} else if sameOffer(old, offers[old.name]) {
			delete(offers, old.name)
		}
	}
	for _, old := range have.usage {
		if usage[old.name] == nil {
			drop(txn, tableUsage, old)
		} else if sameUsage(old, usage[old.name]) {
			delete(usage, old.name)
		}
	}
	for _, row := range offers {
		put(txn, tableOffer, row)
	}
	for _, row := range usage {
		put(txn, tableUsage, row)
	}
}

func sameOffer(a, b *offerRow) bool {
	return a.static == b.static && a.withdrawn == b.withdrawn && a.location == b.location &&
		(a.flavor == b.flavor || reflect.DeepEqual(a.flavor, b.flavor)) && reflect.DeepEqual(a.price, b.price)
}

func sameUsage(a, b *usageRow) bool {
	if !a.used.Equal(b.used) || len(a.held) != len(b.held) || !maps.Equal(a.refused, b.refused) ||
		!maps.EqualFunc(a.inUse, b.inUse, v1alpha1.Resources.Equal) {
		return false
	}
	for name, r := range a.held {
		if o, ok := b.held[name]; !ok || !r.Equal(o) {
			return false
		}
	}
	return true
}

// desired is the rows that a provider should have: what its agent reports,
// what it has withdrawn, and what files say of names that the agent does not
// report.
func (m *Market) desired(name string) (map[string]*offerRow, map[string]*usageRow) {
	offers, usage := map[string]*offerRow{}, map[string]*usageRow{}
	add := func(f *v1alpha1.Flavor, static bool, withdrawn v1alpha1.Time) {
		if offers[f.Metadata.Name] != nil {
			return
		}
		row := m.row(f)
		row.static, row.withdrawn = static, withdrawn
		offers[row.name] = row
		usage[row.name] = &usageRow{provider: name, name: row.name, used: f.Spec.Used, held: f.Spec.Held, refused: f.Spec.Refused, inUse: f.Spec.Usage}
	}
	p := m.providers[name]
	if p != nil {
		for _, f := range p.reported {
			add(f, false, v1alpha1.Time{})
		}
	}
	for _, f := range m.files[name] {
		add(f, true, v1alpha1.Time{})
	}
	if p != nil {
		for _, w := range p.withdrawn {
			add(w.flavor, false, w.at)
		}
	}
	return offers, usage
}

// row is a flavor with what the inputs add to it.
func (m *Market) row(f *v1alpha1.Flavor) *offerRow {
	bare := *f
	bare.Spec.Used, bare.Spec.Held, bare.Spec.Refused, bare.Spec.Usage = nil, nil, nil, nil
	r := &offerRow{provider: f.Metadata.Namespace, name: f.Metadata.Name, flavor: &bare, location: f.Spec.Location}
	if c := m.inputs.Clusters[r.provider]; c != nil {
		r.location = c.Spec.Location.Over(f.Spec.Location)
	}
	r.price = m.price(f)
	return r
}

// price is what holds for a flavor: its own, else the first price table's (by
// name of table) of its provider, model and memory, else the first that names
// no memory, else its cluster's default, else
// none.
func (m *Market) price(f *v1alpha1.Flavor) *v1alpha1.Price {
	if f.Spec.Price != nil {
		return m.currency(*f.Spec.Price)
	}
	model, memory := "", v1alpha1.Amount{}
	if g := f.Spec.GPU; g != nil {
		model, memory = g.Model, g.Memory.Mul(max(int64(g.UnitsPerGPU), 1))
	}
	var found *v1alpha1.TablePrice
	currency := ""
	for _, t := range m.inputs.Prices {
		for i := range t.Spec.Prices {
			row := &t.Spec.Prices[i]
			if row.Provider != f.Metadata.Namespace || !sameModel(row.Model, model) || !row.Memory.IsZero() && row.Memory.Amount != memory {
				continue
			}
			if found == nil || found.Memory.IsZero() && !row.Memory.IsZero() {
				found, currency = row, t.Spec.Currency
			}
		}
	}
	if found != nil {
		return m.currency(v1alpha1.Price{Currency: currency, PerHour: found.PerHour, Spot: found.Spot, Reserved: found.Reserved})
	}
	if c := m.inputs.Clusters[f.Metadata.Namespace]; c != nil && c.Spec.DefaultPrice != nil {
		return m.currency(*c.Spec.DefaultPrice)
	}
	return nil
}

// sameModel: a table's row without a model is for flavors without GPUs.
func sameModel(row, model string) bool {
	if row == "" || model == "" {
		return row == model
	}
	return gpunames.Match(row, model)
}

// currency names the fleet's currency where a price names none.
func (m *Market) currency(p v1alpha1.Price) *v1alpha1.Price {
	if p.Currency == "" {
		p.Currency = m.fleetCurrency()
	}
	return &p
}

func (m *Market) fleetCurrency() string {
	if c := m.inputs.Fleet.Currency; c != "" {
		return c
	}
	return "EUR"
}

// normalised is flavors of files with their GPUs under the names that agents
// report, sorted.
func normalised(flavors []*v1alpha1.Flavor) []*v1alpha1.Flavor {
	out := make([]*v1alpha1.Flavor, 0, len(flavors))
	for _, f := range flavors {
		c := *f
		normaliseGPU(&c)
		out = append(out, &c)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Flavor) int {
		return slices.Compare([]string{a.Metadata.Namespace, a.Metadata.Name}, []string{b.Metadata.Namespace, b.Metadata.Name})
	})
	return out
}

// normaliseGPU brings model and vendor to the table's names. The size stays
// when one is given: it is the size of a sellable unit, which may be a part of
// a card.
func normaliseGPU(f *v1alpha1.Flavor) {
	if f.Spec.GPU == nil {
		return
	}
	g := *f.Spec.GPU
	vendor, model, memory := gpunames.Normalize(g.Model, 0)
	if vendor != "" {
		g.Vendor = vendor
	}
	g.Model = model
	if g.Memory.IsZero() && g.UnitsPerGPU <= 1 {
		g.Memory.Amount = memory
	}
	f.Spec.GPU = &g
}
