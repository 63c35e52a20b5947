package match

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/tariff"
)

// Tariff is an offer's price in the fleet's currency.
type Tariff = tariff.Tariff

// Quote is what a size costs by a tariff.
type Quote = tariff.Quote

// TariffOf is an offer's tariff, made on first use; offers with the very same
// price share one.
func (m *Matcher) TariffOf(o *inventory.Offer) *Tariff {
	at := &m.traits.tariffs[o.Index]
	if *at == nil {
		t := m.tariffs[o.Price]
		if t == nil {
			t = m.newTariff(o.Price)
			if len(m.tariffs) > len(m.inventory.Offers()) {
				clear(m.tariffs) // of prices that hold no more, too
			}
			t.Number = len(m.tariffs)
			m.tariffs[o.Price] = t
		}
		*at = t
	}
	return *at
}

func (m *Matcher) newTariff(p *v1alpha1.Price) *Tariff {
	return tariff.New(&tariff.Terms{Books: m.facts.Books, Names: m.facts.Names, Now: m.facts.Now, Counted: m.facts.PricesCounted}, p)
}

// quoteFor prices a size in a class; ok is false when the class is not sold
// for so long, or has no price for an accelerator of it, which free then names.
func (m *Matcher) quoteFor(o *inventory.Offer, class v1alpha1.PriceClass, size quantity.Vector, seconds int64) (q Quote, free string, ok bool) {
	q, u := m.TariffOf(o).Quote(&m.facts.Books, m.facts.Now, class, size, o.Capacity, seconds)
	if u == nil {
		return q, "", false
	}
	free = m.free(u, size)
	return q, free, free == ""
}

// ContractPrice is a quote as a contract records it.
func (m *Matcher) ContractPrice(o *inventory.Offer, q Quote, size quantity.Vector) v1alpha1.ContractPrice {
	return m.TariffOf(o).Contract(m.facts.Books.Currency, q, size, o.Capacity)
}

// free is an accelerator of a size that prices do not name, "" for none.
func (m *Matcher) free(u *tariff.Prices, size quantity.Vector) string {
	if u.Whole() || !m.facts.Asked {
		return ""
	}
	if size.At(quantity.GPU) > 0 && !u.Names(quantity.GPU) {
		return v1alpha1.GPU
	}
	for i := quantity.Extended; i < len(size); i++ {
		if size[i] > 0 && !u.Names(i) && m.isAccelerator(m.facts.Names.Name(i)) {
			return m.facts.Names.Name(i)
		}
	}
	return ""
}

// Unpriced are the resources of a size that an offer's prices leave out, in order: they
// cost nothing. They are none where the offer has one price, or none at all.
func (m *Matcher) Unpriced(o *inventory.Offer, class v1alpha1.PriceClass, size quantity.Vector) []string {
	t := m.TariffOf(o)
	u := t.In(class)
	if t.Why() != "" || u == nil || u.Whole() {
		return nil
	}
	var out []string
	for i, n := range size {
		if n > 0 && !u.Names(i) {
			out = append(out, m.facts.Names.Name(i))
		}
	}
	slices.Sort(out)
	return out
}
