package market

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What people have reviewed goes before what an agent reports. A location is one
// thing: a Cluster file that states any key of it states all of it, and the keys
// that it leaves out are unknown. A price is stated class by class (on-demand,
// spot, reserved). What nobody states is the agent's word, and is marked so.
// Flavors of files are reviewed themselves: they go before their Cluster file
// as its more precise part.

// place is where a flavor stands, who says so, and what its agent says
// otherwise.
func (m *Market) place(f *v1alpha1.Flavor, static bool, src *v1alpha1.Sources) v1alpha1.Location {
	said := f.Spec.Location
	c := m.inputs.Clusters[f.Metadata.Namespace]
	var stated v1alpha1.Location
	if c != nil {
		stated = c.Spec.Location
	}
	none := v1alpha1.Location{}
	switch {
	case static:
		src.Location = v1alpha1.SourceStated
		said = stated.Over(said)
	case stated == none || c.Trusts(v1alpha1.TrustLocation):
		src.Location = v1alpha1.SourceReported
		if said == none {
			src.Location = v1alpha1.SourceStated
		}
		said = stated.Over(said)
	default:
		src.Location = v1alpha1.SourceStated
		src.LocationConflict = otherPlace(stated, said)
		return stated
	}
	if said == none {
		src.Location = ""
	}
	return said
}

// otherPlace is what an agent says of its place otherwise than its Cluster file.
func otherPlace(stated, said v1alpha1.Location) string {
	var out []string
	for _, k := range []struct{ name, stated, said string }{
		{"region", stated.Region, said.Region}, {"zone", stated.Zone, said.Zone},
		{"country", stated.Country, said.Country}, {"city", stated.City, said.City}, {"network", stated.Network, said.Network},
	} {
		if k.stated != "" && k.said != "" && k.stated != k.said {
			out = append(out, fmt.Sprintf("%s %s, stated %s", k.name, k.said, k.stated))
		}
	}
	return strings.Join(out, "; ")
}

// price is what holds for a flavor and who says so, nil when nobody does.
func (m *Market) price(f *v1alpha1.Flavor, static bool, src *v1alpha1.Sources) *v1alpha1.Price {
	c := m.inputs.Clusters[f.Metadata.Namespace]
	own := f.Spec.Price
	if own != nil && (static || c.Trusts(v1alpha1.TrustPrice)) {
		src.Price = v1alpha1.SourceReported
		if static {
			src.Price = v1alpha1.SourceStated
		}
		return m.currency(*own)
	}
	stated := m.priced(f) // the flavor's own file goes before tables, and those before its cluster's
	if row, currency := m.row(f); row != nil {
		stated = joined(stated, m.currency(*row.Price(currency)))
	}
	if c != nil && c.Spec.Price != nil {
		stated = joined(stated, m.currency(*c.Spec.Price))
	}
	switch {
	case stated != nil && own != nil:
		said := m.currency(*own)
		src.PriceConflict = otherPrice(stated, said)
		src.Price = v1alpha1.SourceStated
		if !sellsOnDemand(stated) {
			src.Price = v1alpha1.SourceReported
		}
		return joined(stated, said)
	case stated != nil:
		src.Price = v1alpha1.SourceStated
		return stated
	case own != nil:
		src.Price = v1alpha1.SourceReported
		return m.currency(*own)
	case c != nil && c.Spec.DefaultPrice != nil:
		src.Price = v1alpha1.SourceDefault
		return m.currency(*c.Spec.DefaultPrice)
	}
	return nil
}

// row is the first price table's row (by name of table) for a flavor's provider, model,
// MIG profile and memory, else the first that names no profile, or no memory, with its
// currency.
func (m *Market) row(f *v1alpha1.Flavor) (found *v1alpha1.TablePrice, currency string) {
	model, profile, memory := "", "", v1alpha1.Amount{}
	if g := f.Spec.GPU; g != nil {
		profile = g.Profile
		model, memory = g.Model, g.Memory.Mul(max(int64(g.UnitsPerGPU), 1))
	}
	for _, t := range m.inputs.Prices {
		for i := range t.Spec.Prices {
			row := &t.Spec.Prices[i]
			if row.Provider != f.Metadata.Namespace || !sameModel(row.Model, model) || !row.Memory.IsZero() && row.Memory.Amount != memory ||
				row.Profile != "" && !strings.EqualFold(row.Profile, profile) {
				continue
			}
			if found == nil || found.Profile == "" && row.Profile != "" || (found.Profile == "") == (row.Profile == "") && found.Memory.IsZero() && !row.Memory.IsZero() {
				found, currency = row, t.Spec.Currency
			}
		}
	}
	return found, currency
}

// sameModel: a table's row without a model is for flavors without GPUs.
func sameModel(row, model string) bool {
	if row == "" || model == "" {
		return row == model
	}
	return gpunames.Match(row, model)
}

// sellsOnDemand reports whether a price names its on-demand class.
func sellsOnDemand(p *v1alpha1.Price) bool { return len(p.PerHour) > 0 || p.Flat != nil }

// joined is first, with the classes that only next names (first may be nil).
// Windows belong to the on-demand class. Prices in two currencies are not
// joined: a price has one.
func joined(first, next *v1alpha1.Price) *v1alpha1.Price {
	if first == nil {
		return next
	}
	if first.Currency != next.Currency {
		return first
	}
	out := *first
	if !sellsOnDemand(first) {
		out.PerHour, out.Flat, out.Windows = next.PerHour, next.Flat, next.Windows
	}
	if len(first.Spot) == 0 {
		out.Spot = next.Spot
	}
	if first.Reserved == nil {
		out.Reserved = next.Reserved
	}
	return &out
}

// otherPrice is what an agent asks otherwise than it is stated.
func otherPrice(stated, said *v1alpha1.Price) string {
	if stated.Currency != said.Currency {
		return fmt.Sprintf("prices in %s, stated in %s", said.Currency, stated.Currency)
	}
	var out []string
	if sellsOnDemand(stated) && sellsOnDemand(said) {
		flat := stated.Flat == nil && said.Flat == nil || stated.Flat != nil && said.Flat != nil && stated.Flat.Cmp(*said.Flat) == 0
		if !flat || !samePrices(stated.PerHour, said.PerHour) {
			out = append(out, "on-demand "+amounts(said)+", stated "+amounts(stated))
		}
		if len(said.Windows) > 0 && len(stated.Windows) == 0 {
			out = append(out, "price windows, which the stated price does not have")
		}
	}
	if len(stated.Spot) > 0 && len(said.Spot) > 0 && !samePrices(stated.Spot, said.Spot) {
		out = append(out, "spot "+unitAmounts(said.Spot)+", stated "+unitAmounts(stated.Spot))
	}
	if a, b := stated.Reserved, said.Reserved; a != nil && b != nil && (a.Term != b.Term || !samePrices(a.UnitPrices, b.UnitPrices)) {
		out = append(out, "reserved "+unitAmounts(b.UnitPrices)+", stated "+unitAmounts(a.UnitPrices))
	}
	return strings.Join(out, "; ")
}

func samePrices(a, b v1alpha1.UnitPrices) bool {
	return maps.EqualFunc(a, b, func(x, y v1alpha1.Decimal) bool { return x.Cmp(y) == 0 })
}

func amounts(p *v1alpha1.Price) string {
	if p.Flat != nil {
		return p.Flat.String() + " flat"
	}
	return unitAmounts(p.PerHour)
}

func unitAmounts(u v1alpha1.UnitPrices) string {
	out := make([]string, 0, len(u))
	for _, k := range slices.Sorted(maps.Keys(u)) {
		out = append(out, k+" "+u[k].String())
	}
	return strings.Join(out, ", ")
}
