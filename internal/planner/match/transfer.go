package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/tariff"
)

// monthHours is the term by which moving the data of an open-ended intent is
// divided: a year's hours by twelve, as clouds do in their own price sheets.
const monthHours = 730

// transferPrice is the price of a GiB from one region to another, in 10⁻¹² of
// the fleet's currency; ok is false when nobody named one. Within a region
// nothing is paid.
func (m *Matcher) transferPrice(from, to string) (perGi int64, ok bool) {
	if from == to {
		return 0, true
	}
	for i := range m.facts.Fleet.Transfer {
		t := &m.facts.Fleet.Transfer[i]
		if t.From != from || t.To != to {
			continue
		}
		factor := v1alpha1.DecimalFromInt(1)
		if t.Currency != "" && t.Currency != m.facts.Books.Currency {
			rate := m.facts.Books.RateOf(t.Currency, m.facts.Books.Currency, m.facts.Now)
			if rate == nil {
				return 0, false
			}
			factor = rate.Rate
		}
		return tariff.Pico(t.PerGi, factor), true
	}
	return 0, false
}

// Transfer is what moving an intent's data to an offer costs an hour, for one
// replica or the part of it that is asked for:
//
//	perGi × (egressGiPerHour + sizeGi ÷ hours of the term)
//
// rounded up to a millionth; known is false when no price is known.
func (m *Matcher) Transfer(w *Request, o *inventory.Offer) (hourly quantity.Micro, known bool) {
	if !w.moves() {
		return 0, true
	}
	d := w.Intent.Spec.Data
	perGi, known := m.transferPrice(d.Region, o.Location.Region)
	if !known || perGi == 0 {
		return 0, known
	}
	seconds := w.Seconds
	if seconds <= 0 {
		seconds = monthHours * 3600
	}
	part, whole := w.share()
	sum := quantity.Wide{}.AddProduct(perGi, d.EgressGiPerHour, part*seconds).AddProduct(perGi, d.SizeGi, part*3600)
	by := uint64(whole) * tariff.PicoOfMicro * uint64(seconds)
	return quantity.Micro(min(sum.Add(by-1).Quo(by), int64(quantity.Unlimited)/4)), true
}

// moves reports whether an intent has data that is to be moved.
func (w *Request) moves() bool {
	d := w.Intent.Spec.Data
	return d != nil && (d.SizeGi > 0 || d.EgressGiPerHour > 0)
}

// share is which part of a replica is asked for: 1 of 1 but for the parts of a
// split one.
func (w *Request) share() (part, whole int64) {
	if w.of == 0 {
		return 1, 1
	}
	return w.units, w.of
}

// transferUnknown reports whether an intent has data and nobody stated what
// moving it to an offer costs.
func (m *Matcher) transferUnknown(w *Request, o *inventory.Offer) bool {
	_, known := m.Transfer(w, o)
	return !known
}

// TransferWhy is what is not known of moving a request's data to an offer.
func TransferWhy(w *Request, o *inventory.Offer) string {
	if o.Location.Region == "" {
		return "its region is not known, so that nobody can say what moving the data there costs"
	}
	return "no price is known for moving data from " + w.Intent.Spec.Data.Region + " to " + o.Location.Region + ": add it to spec.transfer of fleet.yaml"
}

// TransferEstimate is transfer as a contract's decision records it, nil when
// there is nothing to move or no price is known.
func (m *Matcher) TransferEstimate(w *Request, o *inventory.Offer) *v1alpha1.TransferEstimate {
	d := w.Intent.Spec.Data
	hourly, known := m.Transfer(w, o)
	if d == nil || !known {
		return nil
	}
	perGi, _ := m.transferPrice(d.Region, o.Location.Region)
	part, whole := w.share()
	once := quantity.Micro(quantity.Wide{}.AddProduct(perGi, d.SizeGi, part).Div(uint64(whole) * tariff.PicoOfMicro))
	return &v1alpha1.TransferEstimate{From: d.Region, To: o.Location.Region, Once: once.Decimal(), Hourly: hourly.Decimal(), Currency: m.facts.Books.Currency}
}
