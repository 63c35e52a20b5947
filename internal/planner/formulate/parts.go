package formulate

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// mostMeasured is how many parts, of so many units on one offer, a problem measures at most.
// Replicas that would need more stay as they were placed.
const mostMeasured = 1 << 18

// asked is what seats of one kind have in common.
type asked struct {
	class *match.Class
	split v1alpha1.Split
	// inside is the kind of domain outside of which none has a place; nothing for anywhere.
	inside domain.Kind
}

// askedBy is what a seat asks for.
func askedBy(p *place.Placer, s *place.Seat) asked {
	a := asked{class: s.Class, inside: inside(p, s.Job)}
	if split := s.Job.In.Spec.Split; split != nil {
		a.split = *split
	}
	return a
}

// partRow is what parts on a row are measured by, by units; what the smallest of them have
// too few units for is empty.
type partRow struct {
	row    int32
	loose  bool
	prices []quantity.Micro
	deals  []deal
}

// divide adds to the last kind how a seat of it is put together from parts, and reports
// whether that could be measured.
func (b *Problem) divide(s *place.Seat, plain bool) bool {
	d := place.DivisionOf(b.placer, s.Job, s.Alt)
	if d == nil {
		return s.Job.In.Spec.Split == nil
	}
	if b.measured += len(b.rows) * int(d.Of-2*d.Least+1); b.measured > mostMeasured {
		return false
	}
	var rows []*partRow
	at := map[int32]*partRow{}
	for units := d.Least; units <= d.Of-d.Least; units++ {
		b.placer.Match.Trim()
		of := d.Class(units)
		for _, i := range of.ByPrice() {
			c := &of.Candidates[i]
			row := int32(-1)
			if !c.Vague {
				row = b.rowOf(c.Offer, plain)
			}
			if row < 0 {
				continue
			}
			x := at[row]
			if x == nil && units == d.Least {
				x = &partRow{row: row, loose: loose(of.Request, c.Offer), prices: make([]quantity.Micro, d.Least), deals: make([]deal, d.Least)}
				at[row], rows = x, append(rows, x)
			}
			if x != nil && int64(len(x.prices)) == units {
				x.prices, x.deals = append(x.prices, c.Quote.Current()), append(x.deals, deal{c.Size, c.Quote.Peak, c.Offer.UnitsPerCard})
				b.countOf(c.Size)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b *partRow) int { // by what a unit costs in the largest part
		n, m := len(a.prices)-1, len(b.prices)-1
		return cmp.Compare(a.prices[n]*quantity.Micro(m), b.prices[m]*quantity.Micro(n))
	})
	split := &batch.Split{Most: d.Most, Least: d.Least, Of: d.Of}
	for i, x := range rows {
		split.Rows = append(split.Rows, batch.PartRow{Row: x.row, Deal: int32(i), Loose: x.loose}) //nolint:gosec // their number
		split.Deals = append(split.Deals, batch.PartDeal{Prices: x.prices})
	}
	last := len(b.Kinds) - 1
	b.Kinds[last].Split, b.parts[last] = split, rows
	return true
}

// measureParts writes down what parts take and cost.
func (b *Problem) measureParts(kind int, numbers func([]int64, quantity.Vector) []int64) {
	for i, x := range b.parts[kind] {
		d := &b.Kinds[kind].Split.Deals[i]
		for n := range x.deals {
			d.Sizes = numbers(d.Sizes, x.deals[n].size)
			if len(b.Accounts) > 0 {
				charges := b.charges(&x.deals[n])
				d.Charges = append(d.Charges, charges[:]...)
			}
		}
	}
}

// partsAt are the parts that a seat has, by rows of its kind; false where one is where nobody
// would be sent.
func (b *Problem) partsAt(kind int32, s *place.Seat) (out []batch.Part, ok bool) {
	split := b.Kinds[kind].Split
	if split == nil {
		return nil, false
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		row := b.index(p.At.Offer)
		at := slices.IndexFunc(split.Rows, func(r batch.PartRow) bool { return r.Row == row })
		if at < 0 || p.Units >= int64(len(split.Deals[split.Rows[at].Deal].Prices)) {
			return nil, false
		}
		part := batch.Part{Row: int32(at), Units: p.Units} //nolint:gosec // their number
		part.On = unitsOf(b.placer, p.Contract)
		out = append(out, part)
	}
	return out, true
}

// PartOffer is the offer of a part of the i-th replica.
func (b *Problem) PartOffer(i int, p batch.Part) *inventory.Offer {
	return b.offers[b.Kinds[b.Seats[i].Kind].Split.Rows[p.Row].Row]
}

// fixed reports whether a seat's place cannot change.
func fixed(s *place.Seat, plain bool) bool {
	stays := func(c *match.Candidate) bool {
		return unusable(c.Offer, plain) || c.Vague || c.Unasked || c.FailsMoney != "" || c.Offer.Growth != nil
	}
	return plain && place.Limited(s.Job) || s.At != nil && stays(s.At) ||
		slices.ContainsFunc(s.Parts, func(p place.SeatPart) bool { return stays(p.At) })
}
