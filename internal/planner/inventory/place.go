package inventory

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Place is where capacity is taken: at which offer. An offer is one place and what is
// taken of it is taken from now on; from when to when would be a further field. On which
// of its nodes is part of what is taken (Delta).
type Place struct {
	Offer *Offer
}

// Place is the offer as a place.
func (o *Offer) Place() Place { return Place{Offer: o} }

// Delta is what changes of what is taken of a place.
type Delta struct {
	// Size more is taken, less where negative. nil is nothing.
	Size quantity.Vector
	// Back are the units that are given back to their cards, Taken those that are
	// taken of theirs.
	Back, Taken []v1alpha1.CardUnits
	// Off is what is given back to nodes, On what is taken of theirs.
	Off, On nodes.Holding
}

// Inverse is the delta that brings back what was.
func (d Delta) Inverse() Delta {
	return Delta{Size: d.Size.Negative(), Back: d.Taken, Taken: d.Back, Off: d.On, On: d.Off}
}

// Take changes what is held of a place, and marks everything that has less or more now.
func (in *Inventory) Take(p Place, d Delta) {
	o := p.Offer
	if len(d.Back)+len(d.Taken) > 0 {
		o.cards.book(d.Back, -1)
		o.cards.book(d.Taken, 1)
		in.touch(o) // even where the sum stays as it was
	}
	o.cards.adjust(&d)
	in.bookOn(o, &d.Off, -1)
	in.bookOn(o, &d.On, 1)
	zero := true
	for _, n := range d.Size {
		zero = zero && n == 0
	}
	if zero {
		return
	}
	o.free, o.held = o.free.Sub(d.Size), o.held.Add(d.Size)
	o.stir()
	in.touch(o)
	for _, m := range o.PoolPeers {
		for i := quantity.CPU; i <= quantity.Storage && i < len(d.Size); i++ {
			if d.Size[i] == 0 {
				continue
			}
			m.free = m.free.Set(i, m.free.At(i)-d.Size[i])
			m.pool = m.pool.Set(i, m.pool.At(i)+d.Size[i])
		}
		m.stir()
		in.touch(m)
	}
}

// Lend makes a place seem to have size more free (less where negative), its peers more
// of what they share, and so many units of its cards and so much of its nodes. What is held
// stays as it is. Unlend with the same brings back what was.
func (in *Inventory) Lend(p Place, l Loan) {
	p.Offer.cards.book(l.Cards, -1)
	in.bookOn(p.Offer, &l.On, -1)
	in.bookOn(p.Offer, &l.Off, 1)
	in.seem(p.Offer, l.Size, 1)
}

// Unlend ends what Lend began.
func (in *Inventory) Unlend(p Place, l Loan) {
	p.Offer.cards.book(l.Cards, 1)
	in.bookOn(p.Offer, &l.Off, -1)
	in.bookOn(p.Offer, &l.On, 1)
	in.seem(p.Offer, l.Size, -1)
}

// Loan is what seems free of a place.
type Loan struct {
	// Size more, less where negative.
	Size  quantity.Vector
	Cards []v1alpha1.CardUnits
	// On is what of nodes seems free, Off what of them seems taken.
	On, Off nodes.Holding
}

func (in *Inventory) seem(o *Offer, size quantity.Vector, sign int64) {
	for i, n := range size {
		if n == 0 {
			continue
		}
		o.free = o.free.Set(i, o.free.At(i)+sign*n)
		if i > quantity.Storage {
			continue
		}
		for _, m := range o.PoolPeers {
			m.free = m.free.Set(i, m.free.At(i)+sign*n)
		}
	}
	o.stir()
	in.touch(o)
	for _, m := range o.PoolPeers {
		m.stir()
		in.touch(m)
	}
}

// bookOn takes what is held of an offer's nodes (1), there and at its peers, or gives it
// back (-1).
func (in *Inventory) bookOn(o *Offer, h *nodes.Holding, sign int64) {
	if h.IsZero() {
		return
	}
	o.nodes.Book(h, sign)
	in.touch(o)
	for _, m := range o.PoolPeers {
		if m.nodes != nil {
			shared := h.Only(Shared)
			m.nodes.Book(&shared, sign)
			in.touch(m)
		}
	}
}

func (in *Inventory) touch(o *Offer) {
	in.touched = append(in.touched, int32(o.Index)) //nolint:gosec // their number
}
