package tariff

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Prices are prices an hour in 10⁻¹² of the fleet's currency: for a GPU
// unit, a core, a GiB of memory and of storage, and a unit of each extended
// resource. Converted prices are rounded to that many places.
type Prices struct {
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

// The common denominator of a price.
const (
	Gibi        = 1 << 30   // bytes of a GiB
	Milli       = 1000      // thousandths of a core
	PicoOfMicro = 1_000_000 // from 10⁻¹² of the currency to 10⁻⁶
)

// Hourly is what size costs an hour, rounded half up to a millionth: exact
// products, one division.
func (u *Prices) Hourly(size quantity.Vector, capacity quantity.Vector) quantity.Micro {
	if u.flat > 0 {
		part, whole := size.At(quantity.GPU), capacity.At(quantity.GPU)
		if whole <= 0 {
			part, whole = size.At(quantity.CPU), capacity.At(quantity.CPU)
		}
		if whole <= 0 {
			return quantity.Micro((u.flat + PicoOfMicro/2) / PicoOfMicro)
		}
		return quantity.Micro(quantity.Wide{}.AddProduct(u.flat, part, 1).Div(uint64(whole) * PicoOfMicro))
	}
	sum := quantity.Wide{}.
		AddProduct(u.gpu, size.At(quantity.GPU), Gibi*Milli).
		AddProduct(u.cpu, size.At(quantity.CPU), Gibi).
		AddProduct(u.memory, size.At(quantity.Memory), Milli).
		AddProduct(u.storage, size.At(quantity.Storage), Milli)
	for i, p := range u.extended {
		sum = sum.AddProduct(p, size.At(i), Gibi*Milli)
	}
	return quantity.Micro(sum.Div(Gibi * Milli * PicoOfMicro))
}

// Whole reports whether there is one price for everything.
func (u *Prices) Whole() bool { return u.whole }

// Names reports whether prices name one of a resource. Nobody prices pods.
func (u *Prices) Names(resource int) bool {
	switch resource {
	case quantity.CPU:
		return u.priced&pricedCPU != 0
	case quantity.Memory:
		return u.priced&pricedMemory != 0
	case quantity.Storage:
		return u.priced&pricedStorage != 0
	case quantity.GPU:
		return u.priced&pricedGPU != 0
	case quantity.Pods:
		return true
	}
	_, priced := u.extended[resource]
	return priced
}

// Tariff is an offer's price in the fleet's currency.
type Tariff struct {
	// Number distinguishes those that are in use at once.
	Number int
	// why there is no price to go by, "" when there is.
	why string
	// unpriced: nobody named a price (a missing rate is another matter: the
	// price is then unknown, not absent).
	unpriced bool
	// rate by which it was converted, nil when it needed none.
	rate *v1alpha1.Rate

	onDemand       Prices
	spot, reserved *Prices
	// commit is the term of the reserved price in seconds.
	commit  int64
	windows []tariffWindow
}

type tariffWindow struct {
	window v1alpha1.Window
	prices Prices
}

// Why there is no price to go by, "" when there is.
func (t *Tariff) Why() string { return t.why }

// Unpriced reports whether nobody named a price.
func (t *Tariff) Unpriced() bool { return t.unpriced }

// Spot reports whether it is sold as spot capacity.
func (t *Tariff) Spot() bool { return t.spot != nil }

// In are the prices of a class, nil where it is not sold in that one.
func (t *Tariff) In(class v1alpha1.PriceClass) *Prices {
	switch class {
	case v1alpha1.Spot:
		return t.spot
	case v1alpha1.Reserved:
		return t.reserved
	}
	return &t.onDemand
}

// Terms are what of a round turns a price into a tariff.
type Terms struct {
	Books ledger.Books
	Names *quantity.Names
	// Now is the instant for which rates are looked up.
	Now v1alpha1.Time
	// Counted: a price beyond what is counted is none (draft.RulesPricesCounted). Else it is
	// the most that is counted.
	Counted bool
}

// New is the tariff of a price; nil is none.
func New(x *Terms, p *v1alpha1.Price) *Tariff {
	t := &Tariff{}
	if p == nil || (len(p.PerHour) == 0 && p.Flat == nil) {
		t.unpriced, t.why = true, "it has no price"
		return t
	}
	factor := one
	if p.Currency != "" && p.Currency != x.Books.Currency {
		t.rate = x.Books.RateOf(p.Currency, x.Books.Currency, x.Now)
		if t.rate == nil {
			t.why = "there is no rate from " + p.Currency + " to " + x.Books.Currency
			return t
		}
		factor = t.rate.Rate
	}
	t.onDemand = x.prices(p.PerHour, nil, factor)
	if p.Flat != nil {
		t.onDemand.flat, t.onDemand.whole = Pico(*p.Flat, factor), true
	}
	if len(p.Spot) > 0 {
		u := x.prices(p.PerHour, p.Spot, factor)
		t.spot = &u
	}
	if p.Reserved != nil && len(p.Reserved.UnitPrices) > 0 {
		u := x.prices(p.PerHour, p.Reserved.UnitPrices, factor)
		t.reserved, t.commit = &u, int64(p.Reserved.Term.Seconds())
	}
	for _, w := range p.Windows {
		t.windows = append(t.windows, tariffWindow{w.Window, x.prices(p.PerHour, w.PerHour, factor)})
	}
	if x.Counted {
		t.why = x.beyond(p, factor)
	}
	return t
}

// MostUnit is the highest price of a unit an hour that is counted, in the fleet's currency.
const MostUnit = 4_000_000

// beyond says that a price has one that is higher than is counted, "" for none.
func (x *Terms) beyond(p *v1alpha1.Price, factor v1alpha1.Decimal) string {
	most := v1alpha1.DecimalFromInt(MostUnit)
	lists := []v1alpha1.UnitPrices{p.PerHour, p.Spot}
	if p.Flat != nil {
		lists = append(lists, v1alpha1.UnitPrices{"flat": *p.Flat})
	}
	if p.Reserved != nil {
		lists = append(lists, p.Reserved.UnitPrices)
	}
	for i := range p.Windows {
		lists = append(lists, p.Windows[i].PerHour)
	}
	high := ""
	for _, list := range lists {
		for name, d := range list {
			if d.Mul(factor).Cmp(most) > 0 && (high == "" || name < high) {
				high = name
			}
		}
	}
	if high == "" {
		return ""
	}
	return fmt.Sprintf("its price of %s is over %d %s an hour, more than is counted; state prices, and the fleet's currency, in a larger one", high, MostUnit, x.Books.Currency)
}

// prices converts prices, those of over in place of base's key by key.
func (x *Terms) prices(base, over v1alpha1.UnitPrices, factor v1alpha1.Decimal) Prices {
	var u Prices
	put := func(name string, d v1alpha1.Decimal) {
		switch n := Pico(d, factor); name {
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
			u.extended[x.Names.Of(name)] = n
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

// Pico is d × factor in 10⁻¹². Prices above 4.6 millions a unit saturate.
func Pico(d, factor v1alpha1.Decimal) int64 {
	if factor.Cmp(one) != 0 { // a price in another currency than the fleet's
		d = d.Mul(factor)
	}
	shifted := d.MulInt(PicoOfMicro) // Micro shifts by the other six places
	return max(shifted.Micro(), 0)
}

// Quote is what a size costs in one price class.
type Quote struct {
	Class v1alpha1.PriceClass
	// Hourly outside windows, List the on-demand price, Now what holds at the
	// moment, Peak the most it ever is.
	Hourly, List, Now, Peak quantity.Micro
	// Transfer of the intent's data, an hour (match/transfer.go). It is no part of the
	// others.
	Transfer quantity.Micro
}

// Current is what an intent pays an hour now, its data's transfer included.
func (q *Quote) Current() quantity.Micro { return q.Now + q.Transfer }

// Most is the most that an intent ever pays an hour, its data's transfer included.
func (q *Quote) Most() quantity.Micro { return q.Peak + q.Transfer }

// Quote prices a size of an offer of such a capacity in a class, for so many seconds (0:
// open-ended), with the prices of that class: nil when it is not sold for so long.
func (t *Tariff) Quote(b *ledger.Books, now v1alpha1.Time, class v1alpha1.PriceClass, size, capacity quantity.Vector, seconds int64) (q Quote, u *Prices) {
	q = Quote{Class: class, List: t.onDemand.Hourly(size, capacity)}
	switch class {
	case v1alpha1.OnDemand:
		q.Hourly = q.List
		q.Now, q.Peak = q.Hourly, q.Hourly
		for i := len(t.windows) - 1; i >= 0; i-- {
			p := t.windows[i].prices.Hourly(size, capacity)
			q.Peak = max(q.Peak, p)
			if open, _ := b.InWindow(t.windows[i].window, now); open {
				q.Now = p // the first that is open holds
			}
		}
		return q, &t.onDemand
	case v1alpha1.Spot:
		if u = t.spot; u == nil {
			return q, nil
		}
		q.Hourly = t.spot.Hourly(size, capacity)
	case v1alpha1.Reserved:
		if t.reserved == nil || (seconds != 0 && seconds < t.commit) || (seconds == 0 && t.commit > 0) {
			return q, nil
		}
		u = t.reserved
		q.Hourly = t.reserved.Hourly(size, capacity)
	default:
		return q, nil
	}
	q.Now, q.Peak = q.Hourly, q.Hourly
	return q, u
}

// Contract is a quote as a contract records it, in the fleet's currency.
func (t *Tariff) Contract(currency string, q Quote, size, capacity quantity.Vector) v1alpha1.ContractPrice {
	p := v1alpha1.ContractPrice{
		Hourly: q.Hourly.Decimal(), List: q.List.Decimal(), Currency: currency, Class: q.Class, Rate: t.rate,
	}
	if q.Class == v1alpha1.OnDemand {
		for i := range t.windows {
			p.Windows = append(p.Windows, v1alpha1.ContractPriceWindow{
				Window: t.windows[i].window, Hourly: t.windows[i].prices.Hourly(size, capacity).Decimal(),
			})
		}
	}
	return p
}
