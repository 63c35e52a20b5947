package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// site is one flavor as the simulation itself keeps its books: by card, which
// no policy can talk it out of.
type site struct {
	flavor *v1alpha1.Flavor
	ref    string
	// units that a card makes, and the memory of a whole card.
	units  int64
	memory v1alpha1.Amount
	// free now, and all there is: milli-cores, bytes, and units by card.
	cpu, mem         int64
	cards            []int64
	allCPU, allMem   int64
	allUnits         int64
	min, step        size
	priced           bool
	perGPU           v1alpha1.Decimal
	perCPU, perMemGi v1alpha1.Decimal
	// version grows with every booking.
	version uint32
}

// size is what a placement takes.
type size struct{ cpu, mem, units int64 }

// sharing is what the simulation calls its own cutting of cards into
// thousandths.
const (
	sharing   = "mps"
	thousands = 1000
)

// sitesOf opens the books of flavors.
func sitesOf(flavors []*v1alpha1.Flavor, convert func(v1alpha1.Decimal, string) (v1alpha1.Decimal, error)) ([]site, error) {
	out := make([]site, 0, len(flavors))
	for _, f := range flavors {
		s := site{flavor: f, ref: f.Ref(), units: 1, allUnits: f.Spec.Capacity[v1alpha1.GPU].Int64()}
		s.cpu, s.mem = f.Spec.Capacity[v1alpha1.CPU].Int64(), f.Spec.Capacity[v1alpha1.Memory].Int64()
		s.allCPU, s.allMem = s.cpu, s.mem
		if g := f.Spec.GPU; g != nil {
			s.units = max(int64(g.UnitsPerGPU), 1)
			s.memory = g.Memory.Mul(s.units)
			if g.Sharing == sharing && s.units == thousands {
				s.memory = cardMemory(g)
			}
		}
		for left := s.allUnits; left > 0; left -= s.units {
			s.cards = append(s.cards, min(left, s.units))
		}
		if p := f.Spec.Partition; p != nil {
			s.min, s.step = sizeOf(p.Min), sizeOf(p.Step)
		}
		if p := f.Spec.Price; p != nil {
			s.priced = true
			for name, into := range map[string]*v1alpha1.Decimal{"gpu": &s.perGPU, "cpu": &s.perCPU, "memoryGi": &s.perMemGi} {
				d, err := convert(p.PerHour[name], p.Currency)
				if err != nil {
					return nil, fmt.Errorf("price %s: %w", s.ref, err)
				}
				*into = d
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b site) int { return cmp.Compare(a.ref, b.ref) })
	return out, nil
}

// cardMemory is the memory of the card whose thousandths a flavor sells:
// rounded to whole GiB, which the division lost.
func cardMemory(g *v1alpha1.FlavorGPU) v1alpha1.Amount {
	return g.Memory.Mul(thousands).RoundUp(v1alpha1.Amount{}, v1alpha1.AmountOf(1<<30))
}

func sizeOf(r v1alpha1.Resources) size {
	return size{r[v1alpha1.CPU].Int64(), r[v1alpha1.Memory].Int64(), r[v1alpha1.GPU].Int64()}
}

// cut makes the cards of whole-card nodes shareable, by the thousandth.
func cut(flavors []*v1alpha1.Flavor) []*v1alpha1.Flavor {
	out := make([]*v1alpha1.Flavor, len(flavors))
	for i, f := range flavors {
		out[i] = f
		if f.Spec.GPU == nil || f.Spec.Partition != nil || f.Spec.GPU.UnitsPerGPU > 1 {
			continue
		}
		c, g := *f, *f.Spec.GPU
		c.Spec.Capacity = f.Spec.Capacity.Clone()
		c.Spec.Capacity[v1alpha1.GPU] = f.Spec.Capacity[v1alpha1.GPU].Mul(thousands)
		g.UnitsPerGPU, g.Sharing = thousands, sharing
		g.Memory.Amount = v1alpha1.AmountOf(g.Memory.Int64() / thousands)
		c.Spec.GPU = &g
		c.Spec.Price = priceOfCut(f.Spec.Price)
		out[i] = &c
	}
	return out
}

// priceOfCut is a price of which the GPU's is that of a thousandth.
func priceOfCut(p *v1alpha1.Price) *v1alpha1.Price {
	if p == nil {
		return nil
	}
	part := func(u v1alpha1.UnitPrices) v1alpha1.UnitPrices {
		out := maps.Clone(u)
		if d, priced := u["gpu"]; priced {
			out["gpu"] = d.DivInt(thousands, 12)
		}
		return out
	}
	c := *p
	c.PerHour, c.Spot = part(p.PerHour), part(p.Spot)
	c.Windows = slices.Clone(p.Windows)
	for i := range c.Windows {
		c.Windows[i].PerHour = part(p.Windows[i].PerHour)
	}
	if p.Reserved != nil {
		r := *p.Reserved
		r.UnitPrices = part(r.UnitPrices)
		c.Reserved = &r
	}
	return &c
}

// accepts reports whether a site's cards are what a row asks for.
func (s *site) accepts(d *market.Demand) bool {
	if d.GPUs == 0 {
		return true
	}
	g := s.flavor.Spec.GPU
	if g == nil || s.allUnits == 0 {
		return false
	}
	if d.MilliGPU == thousands && s.units > 1 && g.Sharing != sharing {
		return false // parts of cards are no whole cards
	}
	for _, want := range d.Models {
		if gpunames.Match(want, g.Model) {
			if n := gpunames.Named(want); n.IsZero() || s.memory.IsZero() || n == s.memory {
				return true
			}
		}
	}
	return len(d.Models) == 0
}

// sizeFor is what a row takes of the site, rounded up to a legal size.
func (s *site) sizeFor(d *market.Demand) size {
	z := size{cpu: d.CPU.Int64(), mem: d.Memory.Int64()}
	if d.GPUs > 0 {
		z.units = (d.Milli()*s.units + thousands - 1) / thousands
	}
	up := func(n *int64, least, step int64) {
		if least != 0 || (step != 0 && *n != 0) {
			*n = v1alpha1.AmountOf(*n).RoundUp(v1alpha1.AmountOf(least), v1alpha1.AmountOf(step)).Int64()
		}
	}
	up(&z.cpu, s.min.cpu, s.step.cpu)
	up(&z.mem, s.min.mem, s.step.mem)
	up(&z.units, s.min.units, s.step.units)
	return z
}

// fits reports whether a size fits now: a part of a card on one card, more on
// cards of their own.
func (s *site) fits(z size) bool {
	return z.cpu <= s.cpu && z.mem <= s.mem && s.hosts(z.units)
}

// hosts reports whether the cards have so many units.
func (s *site) hosts(units int64) bool {
	if units == 0 {
		return true
	}
	whole, part := units/s.units, units%s.units
	var empty int64
	spare := false
	for _, free := range s.cards {
		if free == s.units {
			empty++
		} else if free >= part {
			spare = true
		}
	}
	if part == 0 {
		return empty >= whole
	}
	return empty > whole || (empty == whole && spare)
}

// share is what a placement has of one card.
type share struct {
	card  int
	units int64
}

// deal says which cards a size takes: empty ones for whole cards, for a part
// the card given, or else the fullest that holds it.
func (s *site) deal(units int64, card int) []share {
	var out []share
	whole, part := units/s.units, units%s.units
	for i := 0; i < len(s.cards) && whole > 0; i++ {
		if s.cards[i] == s.units {
			out = append(out, share{i, s.units})
			whole--
		}
	}
	if part == 0 {
		return out
	}
	if card < 0 {
		taken := map[int]bool{}
		for _, t := range out {
			taken[t.card] = true
		}
		for i, free := range s.cards {
			if free >= part && !taken[i] && (card < 0 || free < s.cards[card]) {
				card = i
			}
		}
	}
	return append(out, share{card, part})
}

// take books a placement; it fails where the site has less than it takes.
func (s *site) take(z size, on []share) error {
	if z.cpu > s.cpu || z.mem > s.mem {
		return fmt.Errorf("%s has %d milli-cores and %d bytes left, less than %d and %d", s.ref, s.cpu, s.mem, z.cpu, z.mem)
	}
	var sum int64
	for _, t := range on {
		if t.card < 0 || t.card >= len(s.cards) || s.cards[t.card] < t.units {
			return fmt.Errorf("no card of %s has %d of %d units left: %v", s.ref, t.units, s.units, s.cards)
		}
		s.cards[t.card] -= t.units
		sum += t.units
	}
	if sum != z.units {
		return fmt.Errorf("no cards of %s have %d units left: %v", s.ref, z.units, s.cards)
	}
	s.cpu -= z.cpu
	s.mem -= z.mem
	s.version++
	return nil
}

// give takes a placement off the books.
func (s *site) give(z size, on []share) {
	for _, t := range on {
		s.cards[t.card] += t.units
	}
	s.cpu += z.cpu
	s.mem += z.mem
	s.version++
}

// hourly is what a size costs an hour, in micro-units of the currency.
func (s *site) hourly(z size) int64 {
	sum := s.perGPU.MulInt(z.units)
	sum = sum.Add(s.perCPU.MulInt(z.cpu).DivInt(1000, 12))
	sum = sum.Add(s.perMemGi.MulInt(z.mem).DivInt(1<<30, 12))
	return sum.Micro()
}

// milli is so many units in thousandths of a card.
func (s *site) milli(units int64) int64 { return units * thousands / s.units }

// idle is what is free of the cards, in thousandths.
func (s *site) idle() int64 {
	var sum int64
	for _, free := range s.cards {
		sum += free
	}
	return s.milli(sum)
}
