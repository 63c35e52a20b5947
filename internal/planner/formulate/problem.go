package formulate

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Problem is a batch in numbers, and what they stand for.
type Problem struct {
	batch.Problem
	// Replicas are the seats, in the problem's order.
	Replicas []*place.Seat
	placer   *place.Placer
	// deals are, for each kind, what its places are measured by.
	deals [][]deal
	// parts are, for each kind, what parts are measured by, measured how many are.
	parts    [][]*partRow
	measured int
	offers   []*inventory.Offer
	// rows are, by the offer's index, one more than its row, asked what rowOf said; 0 where
	// nobody asked.
	rows, asked []int32
	// asks are the requests of kinds.
	asks []*match.Request
	// counts are the resources by their number in the problem.
	counts []int
	// tenants are the accounts, seconds those that are left of this month.
	tenants map[*account.Tenant]int32
	seconds int64
	// domains are the kinds of domain by their number in the problem, each with the numbers
	// of its values.
	domains []numbered
}

// Offer is the offer of a place of the i-th replica.
func (b *Problem) Offer(i int, at int32) *inventory.Offer {
	return b.offers[b.Kinds[b.Seats[i].Kind].Places[at].Row]
}

// Of is the problem of seats, without those whose place cannot change. Plain:
// without those that limits of money hold, and without offers that sell parts of
// cards or tell their nodes.
func Of(p *place.Placer, seats []*place.Seat, plain bool) *Problem {
	offers := len(p.Inventory.Offers())
	b := &Problem{placer: p, rows: make([]int32, offers), asked: make([]int32, offers), counts: []int{quantity.GPU}, tenants: map[*account.Tenant]int32{}}
	if !plain {
		_, end := p.Books.MonthBounds(p.Now)
		b.seconds = int64(end.Sub(p.Now.Time).Seconds())
	}
	kinds := map[asked]int32{}
	seats = slices.DeleteFunc(slices.Clone(seats), func(s *place.Seat) bool { // those whose place cannot change
		return fixed(s, plain)
	})
	bound, kept := bindingsOf(p, seats), keptOf(p, seats)
	for _, s := range seats {
		if bound.stay[s.Job] {
			continue
		}
		asks := askedBy(p, s)
		kind, known := kinds[asks]
		if !known {
			kind = int32(len(b.Kinds)) //nolint:gosec // their number
			p.Match.Trim()
			p.Match.Refresh(s.Class)
			if b.addKind(asks, extras(p, seats, s.Class), kept.of(asks), plain); !b.divide(s, plain) {
				kind = batch.Nowhere
			}
			kinds[asks] = kind
		}
		if seat := (batch.Seat{Kind: kind}); kind >= 0 && b.sits(&seat, s) {
			if !plain {
				seat.Account = b.accountOf(s.Job)
			}
			b.Replicas, b.Seats = append(b.Replicas, s), append(b.Seats, seat)
		}
	}
	b.group(bound)
	b.Singly, b.Annealed = !p.By(draft.RulesFollowersWhole), p.By(draft.RulesAnnealed)
	b.measure()
	b.share()
	b.rule(bound)
	b.without()
	return b
}

// sits writes down where a replica is, and reports whether somebody would be sent there.
func (b *Problem) sits(seat *batch.Seat, s *place.Seat) (ok bool) {
	seat.At, seat.Group, seat.Shares, seat.Account, seat.Rule = batch.Nowhere, batch.Nowhere, batch.Nowhere, batch.Nowhere, batch.Nowhere
	if len(s.Parts) > 0 {
		seat.At = batch.InParts
		seat.Parts, ok = b.partsAt(seat.Kind, s)
		return ok
	}
	if s.At != nil {
		row := b.index(s.At.Offer)
		if seat.At = int32(slices.IndexFunc(b.Kinds[seat.Kind].Places, func(c batch.Place) bool { return c.Row == row })); seat.At < 0 { //nolint:gosec // their number
			return false
		}
	}
	if s.Contract != nil {
		seat.On = unitsOf(b.placer, s.Contract)
	}
	return true
}

// accountOf is the account of a job's tenant.
func (b *Problem) accountOf(j *draft.Job) int32 {
	at, known := b.tenants[j.Tenant]
	if !known {
		at = int32(len(b.Accounts)) //nolint:gosec // their number
		b.tenants[j.Tenant] = at
		l := b.placer.LimitsOf(j.Tenant, place.Request{}, 0)
		b.Accounts = append(b.Accounts, []int64{int64(l.Hourly), int64(l.Monthly), l.GPU, l.CPU, l.Memory, l.Contracts})
	}
	return at
}

// addKind adds the places of what is asked for that are kept, with what each counts for beside its price.
func (b *Problem) addKind(asks asked, extra []quantity.Micro, kept kept, plain bool) {
	of := asks.class
	byPrice := of.ByPrice()
	k := batch.Kind{
		Cards: wanted(of.Request), Cores: of.Request.Need.At(quantity.CPU),
		Places: make([]batch.Place, 0, len(byPrice)), Deals: make([]int32, 0, len(byPrice)),
	}
	var deals []deal
	dealt, last, at := map[*match.Pricing]int32{}, (*match.Pricing)(nil), int32(0)
	for n, i := range byPrice {
		c := &of.Candidates[i]
		if c.Vague || !kept.has(len(k.Places), c.Offer) || outside(asks.inside, c.Offer) {
			continue
		}
		row := b.rowOf(c.Offer, plain)
		if row < 0 {
			continue
		}
		if last != c.Pricing {
			var known bool
			last = c.Pricing
			if at, known = dealt[last]; !known {
				at = int32(len(deals)) //nolint:gosec // their number
				dealt[last], deals = at, append(deals, deal{c.Size, c.Quote.Peak, c.Offer.UnitsPerCard})
				b.countOf(c.Size)
			}
		}
		k.Places = append(k.Places, batch.Place{Price: c.Quote.Current() + extra[n], Most: c.Quote.Most(), Row: row, Loose: loose(of.Request, c.Offer)})
		k.Deals = append(k.Deals, at)
	}
	b.Kinds, b.deals, b.asks, b.parts = append(b.Kinds, k), append(b.deals, deals), append(b.asks, of.Request), append(b.parts, nil)
}

// group finds who must not lose its place, and which gangs are whole in the batch; those
// of intents that are together are one group.
func (b *Problem) group(bound *bindings) {
	members := map[*draft.Job][]int{}
	for i, s := range b.Replicas {
		members[s.Job] = append(members[s.Job], i)
	}
	next, numbers := int32(0), map[*draft.Job]int32{}
	for i, s := range b.Replicas {
		list := members[s.Job]
		if list[0] != i || s.Job.Replicas() == 1 && len(bound.with[s.Job]) == 0 {
			continue
		}
		placed := slices.ContainsFunc(list, func(i int) bool { return b.Replicas[i].Placed() })
		whole := all(s.Job) && (!placed || len(list) == int(s.Job.Replicas()))
		number := next
		for _, other := range bound.with[s.Job] {
			if n, known := numbers[other]; known {
				number = n
			}
		}
		for _, i := range list {
			switch {
			case whole:
				b.Seats[i].Group, b.Seats[i].Follows = number, len(bound.with[s.Job]) > 0 && bound.follows(s.Job) != nil
			case b.Replicas[i].Placed():
				b.Seats[i].Stays = true // others of its intent would stay behind
			}
		}
		if whole {
			numbers[s.Job] = number
			next = max(next, number+1)
		}
	}
}

// measure writes down rooms and sizes.
func (b *Problem) measure() {
	numbers := func(out []int64, v quantity.Vector) []int64 {
		for _, r := range b.counts {
			out = append(out, max(v.At(r), 0))
		}
		return out
	}
	for _, r := range b.counts {
		b.Pooled = append(b.Pooled, r >= quantity.CPU && r <= quantity.Storage)
	}
	for i, o := range b.offers {
		row := &b.Rows[i]
		for _, r := range b.counts {
			row.Free = append(row.Free, o.Free().At(r))
		}
		if o.Cards() != nil {
			row.Cards, row.Per = slices.Clone(o.Cards().Free()), o.Cards().PerCard()
		}
		if onNodes(o) { // a pod's GPUs lie on a node as a share does on a card; its cores are not seen here
			row.Cards, row.Per = o.Nodes().Units(quantity.GPU), max(o.Nodes().Most(quantity.GPU), 1)
		}
	}
	for i := range b.Kinds {
		k, deals := &b.Kinds[i], b.deals[i]
		k.Sizes = make([]int64, 0, len(deals)*len(b.counts))
		if len(b.Accounts) > 0 {
			k.Charges = make([]int64, 0, len(deals)*charged)
		}
		for at := range deals {
			k.Sizes = numbers(k.Sizes, deals[at].size)
			if len(b.Accounts) > 0 {
				x := b.charges(&deals[at])
				k.Charges = append(k.Charges, x[:]...)
			}
		}
		b.measureParts(i, numbers)
	}
}

// wanted is how many units of cards are asked for.
func wanted(w *match.Request) int64 {
	if w.GPU == nil {
		return 0
	}
	return w.GPU.Count
}

// What a replica without a place counts for, for each card or, where it asks for none, each
// core and hour, in the most expensive that a place in the batch comes to for one.
const unplaced = 20

// most bounds that, so that no sum exceeds its type.
const most = 100_000_000 * 1_000_000

// without writes down what those without a place count for: whatever the currency, placing
// more goes before placing cheaper.
func (b *Problem) without() {
	card, core := quantity.Micro(1), quantity.Micro(1)
	of := func(c *deal, price quantity.Micro, cards int64) {
		switch units, per := c.size.At(quantity.GPU), max(c.perCard, 1); {
		case units > 0:
			card = max(card, min(price, most)*quantity.Micro(per)/quantity.Micro(units))
		case cards == 0:
			core = max(core, min(price, most)*1000/quantity.Micro(max(c.size.At(quantity.CPU), 1000)))
		}
	}
	for i := range b.Kinds {
		for at, pl := range b.Kinds[i].Places {
			of(&b.deals[i][b.Kinds[i].Deals[at]], pl.Price, b.Kinds[i].Cards)
		}
		for _, x := range b.parts[i] {
			last := len(x.deals) - 1
			of(&x.deals[last], x.prices[last], b.Kinds[i].Cards)
		}
	}
	for i := range b.Kinds {
		k := &b.Kinds[i]
		switch g := b.asks[i].GPU; {
		case g == nil:
			k.Nowhere = core * unplaced * quantity.Micro(max(k.Cores/1000, 1))
		case g.Share > 0:
			k.Nowhere = max(card*unplaced*quantity.Micro(min(g.Share, 1_000_000))/1_000_000, 1)
		default:
			k.Nowhere = card * unplaced * quantity.Micro(min(g.Count, 1_000))
		}
		k.Nowhere = min(k.Nowhere, most)
	}
}
