package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// pricing is what of a candidate its size and its price decide. Candidates that
// have both in common share one: it does not change once its shape is made.
type pricing struct {
	size  quantity.Vector
	quote quote
	// money is the requirement of money it fails, "" when it fails none.
	money string
	// vague: no price is known of it or of moving the intent's data there.
	vague bool
	// milliCards are the thousandths of cards that the size takes.
	milliCards int64
	terms      terms
}

// pricer prices the candidates of a shape.
type pricer struct {
	round *round
	wish  *wish
	// own: each candidate has a pricing of its own, as its terms say more of it
	// than its price; alone: so has it, as next to nobody has a tariff in common.
	own, alone bool
	// sizes by trait, of offers that are not sold in steps; said by the number of
	// the tariff.
	sizes []quantity.Vector
	said  []said
	all   []*pricing
	// block is where the next are made, chunk how many at once.
	block []pricing
	chunk int
}

// said is what was said of a tariff the last time.
type said struct {
	tariff  *tariff
	region  string
	pricing *pricing
}

func newPricer(r *round, w *wish, candidates int) *pricer {
	p := &pricer{round: r, wish: w, own: w.weights.beyondPrice(), alone: 4*len(r.tariffs) > len(r.inventory.Offers()), sizes: make([]quantity.Vector, len(r.traits.stepped)), chunk: 16}
	if p.own || p.alone {
		p.chunk = max(candidates, 1)
	}
	return p
}

// of is the pricing of an offer.
func (p *pricer) of(o *inventory.Offer) *pricing {
	trait, size := p.round.traits.of[o.Index], quantity.Vector(nil)
	stepped := p.round.traits.stepped[trait]
	if !stepped {
		size = p.sizes[trait]
	}
	if size == nil {
		size = p.wish.size(o)
		if !stepped {
			p.sizes[trait] = size
		}
	}
	t := p.round.tariffOf(o)
	// A flat price is shared out by the offer's capacity.
	if p.alone || stepped || t.onDemand.flat > 0 {
		return p.next(o, t, size)
	}
	for len(p.said) <= t.number {
		p.said = append(p.said, make([]said, t.number+1)...)
	}
	was, region := &p.said[t.number], ""
	if p.wish.moves() {
		region = o.Location.Region
	}
	switch {
	case was.tariff != t || &was.pricing.size[0] != &size[0] || was.region != region:
		*was = said{t, region, p.next(o, t, size)}
	case p.own:
		*p.room() = *was.pricing
	}
	if p.own {
		return p.all[len(p.all)-1]
	}
	return was.pricing
}

// next is the pricing of an offer made anew.
func (p *pricer) next(o *inventory.Offer, t *tariff, size quantity.Vector) *pricing {
	out := p.room()
	*out = p.round.choosePrice(p.wish, o, size)
	out.vague = t.unpriced || p.round.transferUnknown(p.wish, o)
	out.milliCards = size.At(quantity.GPU) * 1000 / o.UnitsPerCard
	return out
}

// room is an empty pricing.
func (p *pricer) room() *pricing {
	if len(p.block) == cap(p.block) {
		p.block = make([]pricing, 0, p.chunk)
	}
	p.block = append(p.block, pricing{})
	out := &p.block[len(p.block)-1]
	p.all = append(p.all, out)
	return out
}

// finish says what the pricings of all candidates together tell of each.
func (p *pricer) finish(s *shape) {
	w := p.wish
	s.cheapest, s.least = quantity.Unlimited, floor{noLimit, noLimit, noLimit, quantity.Unlimited}
	for _, x := range p.all {
		if x.money == "" {
			s.cheapest = min(s.cheapest, x.quote.most())
		}
	}
	var dearest quantity.Micro
	for _, x := range p.all {
		if x.money == "" {
			// What the other replicas cost at the least is not there for this one.
			x.money = w.affordable(x.quote, x.size, (w.replicas-1)*int64(s.cheapest))
		}
		if x.money == "" {
			dearest = max(dearest, x.quote.current())
			s.least.lower(x)
		}
	}
	for _, x := range p.all {
		x.terms.cost = costTerm(x.quote.current(), dearest, x.vague)
	}
	if !p.own {
		return
	}
	scale := scaleOf(s)
	for i := range s.cands {
		c := &s.cands[i]
		// A term without weight is no part of any score.
		if w.weights.latency > 0 {
			c.terms.latency = latencyTerm(p.round.latency(w.consumer, c.offer))
		}
		if w.weights.reliability > 0 {
			c.terms.reliability = reliabilityTerm(c.offer.Flavor.Spec.Properties)
		}
		goalTerms(w, c, &scale)
	}
}

// choosePrice is a size on an offer in the cheapest acceptable price class that
// the intent can afford, else with what of money fails.
func (r *round) choosePrice(w *wish, o *inventory.Offer, size quantity.Vector) pricing {
	t := r.tariffOf(o)
	transfer, known := r.transfer(w, o)
	p := pricing{size: size, quote: quote{transfer: transfer}}
	if !known && w.money.limited {
		p.money = ReqTransfer
		return p
	}
	if t.why != "" {
		p.quote.class = v1alpha1.OnDemand
		if !t.unpriced || w.money.limited {
			p.money = ReqPrice
		}
		return p
	}
	p.money = ReqPurchase
	for _, class := range w.purchase {
		q, sold := r.quoteFor(o, class, size, w.seconds)
		if !sold {
			continue
		}
		q.transfer = transfer
		fails := w.affordable(q, size, 0)
		better := p.money == ReqPurchase || (fails == "") != (p.money == "") && fails == "" || (fails == "") == (p.money == "") && q.now < p.quote.now
		if better {
			p.quote, p.money = q, fails
		}
	}
	return p
}

// priced is a size on an offer as a candidate, of which only the price is known.
func (r *round) priced(w *wish, o *inventory.Offer, size quantity.Vector) candidate {
	p := r.choosePrice(w, o, size)
	return candidate{offer: o, pricing: &p}
}

// affordable is the limit of the intent's budget that a price breaks, when
// others micro an hour go to its other replicas.
func (w *wish) affordable(q quote, size quantity.Vector, others int64) string {
	limit, name := w.money.hourly, ReqMaxHourly
	if q.class == v1alpha1.Spot && w.money.hourlySpot != limit { // without one of its own, the other is what its author wrote
		limit, name = w.money.hourlySpot, ReqMaxHourlySpot
	}
	if q.most()+quantity.Micro(others) > limit {
		return name
	}
	if n := size.At(quantity.GPU); n > 0 && w.money.perGPU < quantity.Unlimited && int64(q.peak) > int64(w.money.perGPU)*n {
		return ReqMaxHourlyPerGPU
	}
	if w.money.total < quantity.Unlimited {
		// Open-ended intents run until the money is spent: a minute at the least.
		if (q.most() + quantity.Micro(others)).ForSeconds(max(w.seconds, 60)) > w.money.total {
			return ReqMaxTotal
		}
	}
	return ""
}
