package match

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// unbounded is more than there is of anything.
const unbounded = int64(1) << 60

// Pricing is what of a candidate its size and its price decide. Candidates that
// have both in common share one: it does not change once its class is made.
type Pricing struct {
	Size  quantity.Vector
	Quote Quote
	// FailsMoney is the requirement of money it fails, "" when it fails none.
	FailsMoney string
	// Vague: no price is known of it or of moving the intent's data there.
	Vague bool
	// MilliCards are the thousandths of cards that the size takes.
	MilliCards int64
	Terms      Terms
	// number among the pricings of its class.
	number int32
}

// pricer prices the candidates of a class. A matcher has one, as it needs some room.
type pricer struct {
	matcher *Matcher
	request *Request
	// own: each candidate has a pricing of its own, as its terms need more of it than its
	// price.
	own bool
	// classes counts those that were priced. For the first no lots are numbered, which costs
	// about as much as the pricing of offers that are all different.
	classes int
	// lots are the numbers of the offers' lots, nil for the first class, said what was found
	// for each lot, all is all that was made.
	lots []int32
	said []said
	all  []*Pricing
	// block is where the next are made, chunk how many at once.
	block []Pricing
	chunk int
	in    *buffers
}

// said is what was found for a lot, from its first offer, and how many candidates it has.
type said struct {
	pricing *Pricing
	first   int32
	offers  int32
}

func newPricer(m *Matcher, w *Request, candidates int, in *buffers) *pricer {
	p := &m.pricer
	*p = pricer{
		matcher: m, request: w, in: in, own: w.Weights.beyondPrice(), chunk: max(candidates, 1),
		classes: p.classes + 1, said: p.said[:0], all: p.all[:0],
	}
	if p.classes == 1 {
		return p
	}
	lots, last := m.lots[flag(w.moves())].Of(m.inventory.Offers())
	p.lots, p.said = lots, slices.Grow(p.said, int(last)+1)[:last+1]
	clear(p.said)
	if !p.own && 4*int(last) <= len(lots) {
		p.chunk = 64
	}
	return p
}

// of is the pricing of the i-th offer; listed: it must be that of the offer.
func (p *pricer) of(o *inventory.Offer, i int32, listed bool) *Pricing {
	if p.lots == nil {
		p.said = append(p.said, said{pricing: p.next(o), first: i, offers: 1})
		return p.all[len(p.all)-1]
	}
	was := &p.said[p.lots[i]]
	switch was.offers++; {
	case was.pricing == nil:
		was.pricing, was.first = p.next(o), i
	case listed && p.own:
		out := p.room()
		*out = *was.pricing
		return out
	}
	return was.pricing
}

// next is the pricing of an offer, made again.
func (p *pricer) next(o *inventory.Offer) *Pricing {
	out, size, t := p.room(), p.request.Size(o), p.matcher.TariffOf(o)
	*out = p.matcher.choosePrice(p.request, o, size)
	out.Vague = t.Unpriced() || p.matcher.transferUnknown(p.request, o)
	out.MilliCards = size.At(quantity.GPU) * 1000 / o.UnitsPerCard
	return out
}

// room is an empty pricing.
func (p *pricer) room() *Pricing {
	if len(p.block) == cap(p.block) {
		p.block = p.in.pricings(p.chunk)
	}
	p.block = append(p.block, Pricing{})
	out := &p.block[len(p.block)-1]
	p.all = append(p.all, out)
	return out
}

// finish fills in what follows from the pricings of all candidates together; of a class
// without candidates, but for what compares them.
func (p *pricer) finish(s *Class) {
	w := p.request
	s.Cheapest, s.Least = quantity.Unlimited, Floor{unbounded, unbounded, unbounded, quantity.Unlimited}
	for i, x := range p.all {
		x.number = int32(i) //nolint:gosec // their number
		if x.FailsMoney == "" {
			s.Cheapest = min(s.Cheapest, x.Quote.Most())
		}
	}
	var most quantity.Micro
	for _, x := range p.all {
		if x.FailsMoney == "" {
			// What the other replicas cost at the least is not there for this one.
			x.FailsMoney = w.Affordable(x.Quote, x.Size, (w.Replicas-1)*int64(s.Cheapest))
		}
		if x.FailsMoney == "" {
			most = max(most, x.Quote.Current())
			s.Least.lower(x)
		}
	}
	for _, x := range p.all {
		x.Terms[termCost] = costTerm(x.Quote.Current(), most, x.Vague)
	}
	if !p.own || s.Candidates == nil {
		return
	}
	scale := scaleOf(s)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		scale.look(i)
		for t := range terms {
			// A term without weight is no part of any score.
			if value := terms[t].value; value != nil && w.Weights.of[t] > 0 {
				c.Terms[t] = value(p.matcher, w, c, &scale)
			}
		}
		if w.Weights.work && scale.fastest > 0 {
			c.Terms[termCost] = workCost(c, &scale)
		}
	}
}

// choosePrice is a size on an offer in the cheapest acceptable price class that
// the intent can afford, else with what of money fails.
func (m *Matcher) choosePrice(w *Request, o *inventory.Offer, size quantity.Vector) Pricing {
	t := m.TariffOf(o)
	transfer, known := m.Transfer(w, o)
	p := Pricing{Size: size, Quote: Quote{Transfer: transfer}}
	if !known && w.Money.Limited {
		p.FailsMoney = ReqTransfer
		return p
	}
	if t.Why() != "" {
		p.Quote.Class = v1alpha1.OnDemand
		if !t.Unpriced() || w.Money.Limited {
			p.FailsMoney = ReqPrice
		}
		return p
	}
	p.FailsMoney = ReqPurchase
	unpriced := ""
	for _, class := range w.Purchase {
		q, free, sold := m.quoteFor(o, class, size, w.Seconds)
		if !sold {
			if free != "" && p.FailsMoney == ReqPurchase {
				unpriced = free
			}
			continue
		}
		q.Transfer = transfer
		fails := w.Affordable(q, size, 0)
		better := p.FailsMoney == ReqPurchase || (fails == "") != (p.FailsMoney == "") && fails == "" || (fails == "") == (p.FailsMoney == "") && q.Now < p.Quote.Now
		if better {
			p.Quote, p.FailsMoney = q, fails
		}
	}
	if p.FailsMoney == ReqPurchase && unpriced != "" {
		p.FailsMoney = ReqPriceOf + unpriced
	}
	return p
}

// Priced is a size on an offer as a candidate, of which only the price is known.
func (m *Matcher) Priced(w *Request, o *inventory.Offer, size quantity.Vector) Candidate {
	p := m.choosePrice(w, o, size)
	return Candidate{Offer: o, Pricing: &p}
}

// Affordable is the limit of the intent's budget that a price breaks, when
// others micro an hour go to its other replicas.
func (w *Request) Affordable(q Quote, size quantity.Vector, others int64) string {
	limit, name := w.Money.Hourly, ReqMaxHourly
	if q.Class == v1alpha1.Spot && w.Money.HourlySpot != limit { // without one of its own, the other is what its author wrote
		limit, name = w.Money.HourlySpot, ReqMaxHourlySpot
	}
	if q.Most()+quantity.Micro(others) > limit {
		return name
	}
	if n := size.At(quantity.GPU); n > 0 && w.Money.PerGPU < quantity.Unlimited && int64(q.Peak) > int64(w.Money.PerGPU)*n {
		return ReqMaxHourlyPerGPU
	}
	if w.Money.Total < quantity.Unlimited {
		// Open-ended intents run until the money is spent: a minute at the least.
		if (q.Most() + quantity.Micro(others)).ForSeconds(max(w.Seconds, 60)) > w.Money.Total {
			return ReqMaxTotal
		}
	}
	return ""
}
