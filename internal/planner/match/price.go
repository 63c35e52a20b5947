package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// unitPrices are prices an hour in 10⁻¹² of the fleet's currency: for a GPU
// unit, a core, a GiB of memory and of storage, and a unit of each extended
// resource. Converted prices are rounded to that many places.
type unitPrices struct {
	gpu, cpu, memory, storage int64
	extended                  map[int]int64
	// priced are the well-known resources of which a price is named, be it nothing. whole:
	// the flavor has one price.
	priced uint8
	whole  bool
	// flat for the whole flavor, taken by the share of its GPU units, or of
	// its CPU where it has no GPUs.
	flat int64
}

const (
	pricedGPU = 1 << iota
	pricedCPU
	pricedMemory
	pricedStorage
)

// pricePlaces and the common denominator of a price: thousandths of a core,
// bytes of a GiB, and from 10⁻¹² down to 10⁻⁶.
const (
	pricePlaces = 12
	gibi        = 1 << 30
	milli       = 1000
	picoOfMicro = 1_000_000
)

// hourly is what size costs an hour, rounded half up to a millionth: exact
// products, one division.
func (u *unitPrices) hourly(size quantity.Vector, capacity quantity.Vector) quantity.Micro {
	if u.flat > 0 {
		part, whole := size.At(quantity.GPU), capacity.At(quantity.GPU)
		if whole <= 0 {
			part, whole = size.At(quantity.CPU), capacity.At(quantity.CPU)
		}
		if whole <= 0 {
			return quantity.Micro((u.flat + picoOfMicro/2) / picoOfMicro)
		}
		return quantity.Micro(quantity.Wide{}.AddProduct(u.flat, part, 1).Div(uint64(whole) * picoOfMicro))
	}
	sum := quantity.Wide{}.
		AddProduct(u.gpu, size.At(quantity.GPU), gibi*milli).
		AddProduct(u.cpu, size.At(quantity.CPU), gibi).
		AddProduct(u.memory, size.At(quantity.Memory), milli).
		AddProduct(u.storage, size.At(quantity.Storage), milli)
	for i, p := range u.extended {
		sum = sum.AddProduct(p, size.At(i), gibi*milli)
	}
	return quantity.Micro(sum.Div(gibi * milli * picoOfMicro))
}

// Tariff is an offer's price in the fleet's currency.
type Tariff struct {
	// number distinguishes those that are in use at once.
	number int
	// why there is no price to go by, "" when there is.
	why string
	// unpriced: nobody named a price (a missing rate is another matter: the
	// price is then unknown, not absent).
	unpriced bool
	// rate by which it was converted, nil when it needed none.
	rate *v1alpha1.Rate

	onDemand       unitPrices
	spot, reserved *unitPrices
	// commit is the term of the reserved price in seconds.
	commit  int64
	windows []tariffWindow
}

type tariffWindow struct {
	window v1alpha1.Window
	prices unitPrices
}

// Why there is no price to go by, "" when there is.
func (t *Tariff) Why() string { return t.why }

// Spot reports whether it is sold as spot capacity.
func (t *Tariff) Spot() bool { return t.spot != nil }

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
			t.number = len(m.tariffs)
			m.tariffs[o.Price] = t
		}
		*at = t
	}
	return *at
}

func (m *Matcher) newTariff(p *v1alpha1.Price) *Tariff {
	t := &Tariff{}
	if p == nil || (len(p.PerHour) == 0 && p.Flat == nil) {
		t.unpriced, t.why = true, "it has no price"
		return t
	}
	factor := one
	if p.Currency != "" && p.Currency != m.facts.Books.Currency {
		t.rate = m.facts.Books.RateOf(p.Currency, m.facts.Books.Currency, m.facts.Now)
		if t.rate == nil {
			t.why = "there is no rate from " + p.Currency + " to " + m.facts.Books.Currency
			return t
		}
		factor = t.rate.Rate
	}
	t.onDemand = m.unitPrices(p.PerHour, nil, factor)
	if p.Flat != nil {
		t.onDemand.flat, t.onDemand.whole = pico(*p.Flat, factor), true
	}
	if len(p.Spot) > 0 {
		u := m.unitPrices(p.PerHour, p.Spot, factor)
		t.spot = &u
	}
	if p.Reserved != nil && len(p.Reserved.UnitPrices) > 0 {
		u := m.unitPrices(p.PerHour, p.Reserved.UnitPrices, factor)
		t.reserved, t.commit = &u, int64(p.Reserved.Term.Seconds())
	}
	for _, w := range p.Windows {
		t.windows = append(t.windows, tariffWindow{w.Window, m.unitPrices(p.PerHour, w.PerHour, factor)})
	}
	return t
}

// unitPrices converts prices, those of over in place of base's key by key.
func (m *Matcher) unitPrices(base, over v1alpha1.UnitPrices, factor v1alpha1.Decimal) unitPrices {
	var u unitPrices
	put := func(name string, d v1alpha1.Decimal) {
		switch n := pico(d, factor); name {
		case "gpu":
			u.gpu, u.priced = n, u.priced|pricedGPU
		case "cpu":
			u.cpu, u.priced = n, u.priced|pricedCPU
		case "memoryGi":
			u.memory, u.priced = n, u.priced|pricedMemory
		case "storageGi":
			u.storage, u.priced = n, u.priced|pricedStorage
		default:
			if u.extended == nil {
				u.extended = map[int]int64{}
			}
			u.extended[m.facts.Names.Of(name)] = n
		}
	}
	for name, d := range base {
		put(name, d)
	}
	for name, d := range over {
		put(name, d)
	}
	return u
}

// one converts nothing.
var one = v1alpha1.DecimalFromInt(1)

// pico is d × factor in 10⁻¹². Prices above nine millions a unit saturate.
func pico(d, factor v1alpha1.Decimal) int64 {
	if factor.Cmp(one) != 0 { // a price in another currency than the fleet's
		d = d.Mul(factor)
	}
	shifted := d.MulInt(picoOfMicro) // Micro shifts by the other six places
	return max(shifted.Micro(), 0)
}

// Quote is what a size costs in one price class.
type Quote struct {
	Class v1alpha1.PriceClass
	// Hourly outside windows, List the on-demand price, Now what holds at the
	// moment, Peak the most it ever is.
	Hourly, List, Now, Peak quantity.Micro
	// Transfer of the intent's data, an hour (transfer.go). It is no part of the
	// others.
	Transfer quantity.Micro
}

// Current is what an intent pays an hour now, its data's transfer included.
func (q *Quote) Current() quantity.Micro { return q.Now + q.Transfer }

// Most is the most that an intent ever pays an hour, its data's transfer included.
func (q *Quote) Most() quantity.Micro { return q.Peak + q.Transfer }

// quoteFor prices a size in a class; ok is false when the class is not sold
// for so long, or has no price for an accelerator of it, which free then names.
func (m *Matcher) quoteFor(o *inventory.Offer, class v1alpha1.PriceClass, size quantity.Vector, seconds int64) (q Quote, free string, ok bool) {
	q, u := m.quoteIn(o, class, size, seconds)
	if u == nil {
		return q, "", false
	}
	free = m.free(u, size)
	return q, free, free == ""
}

// quoteIn is quoteFor with the prices of the class, nil when it is not sold for so long.
func (m *Matcher) quoteIn(o *inventory.Offer, class v1alpha1.PriceClass, size quantity.Vector, seconds int64) (q Quote, u *unitPrices) {
	t := m.TariffOf(o)
	q = Quote{Class: class, List: t.onDemand.hourly(size, o.Capacity)}
	switch class {
	case v1alpha1.OnDemand:
		q.Hourly = q.List
		q.Now, q.Peak = q.Hourly, q.Hourly
		for i := len(t.windows) - 1; i >= 0; i-- {
			p := t.windows[i].prices.hourly(size, o.Capacity)
			q.Peak = max(q.Peak, p)
			if open, _ := m.facts.Books.InWindow(t.windows[i].window, m.facts.Now); open {
				q.Now = p // the first that is open holds
			}
		}
		return q, &t.onDemand
	case v1alpha1.Spot:
		if u = t.spot; u == nil {
			return q, nil
		}
		q.Hourly = t.spot.hourly(size, o.Capacity)
	case v1alpha1.Reserved:
		if t.reserved == nil || (seconds != 0 && seconds < t.commit) || (seconds == 0 && t.commit > 0) {
			return q, nil
		}
		u = t.reserved
		q.Hourly = t.reserved.hourly(size, o.Capacity)
	default:
		return q, nil
	}
	q.Now, q.Peak = q.Hourly, q.Hourly
	return q, u
}

// ContractPrice is a quote as a contract records it.
func (m *Matcher) ContractPrice(o *inventory.Offer, q Quote, size quantity.Vector) v1alpha1.ContractPrice {
	t := m.TariffOf(o)
	p := v1alpha1.ContractPrice{
		Hourly: q.Hourly.Decimal(), List: q.List.Decimal(), Currency: m.facts.Books.Currency, Class: q.Class, Rate: t.rate,
	}
	if q.Class == v1alpha1.OnDemand {
		for i := range t.windows {
			p.Windows = append(p.Windows, v1alpha1.ContractPriceWindow{
				Window: t.windows[i].window, Hourly: t.windows[i].prices.hourly(size, o.Capacity).Decimal(),
			})
		}
	}
	return p
}
