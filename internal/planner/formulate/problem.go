package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// problem is a batch in numbers, and what they stand for.
type problem struct {
	batch.Problem
	seats []*place.Seat
	// places are where each kind can be, in its order.
	places [][]spot
	offers []*inventory.Offer
	rows   map[*inventory.Offer]int32
	// counts are the resources by their number in the problem.
	counts []int
	// tenants are the accounts, seconds those that are left of this month.
	tenants map[*account.Tenant]int32
	seconds int64
}

// spot is what a problem keeps of a candidate, whose class may be evicted before all kinds
// are known.
type spot struct {
	offer *inventory.Offer
	size  quantity.Vector
	peak  quantity.Micro
}

// What places charge to accounts: money an hour and this month, thousandths of cards,
// cores, bytes and contracts.
const charged = 6

// problemOf is the problem of seats, without those whose place cannot change. Plain:
// without those that limits of money hold, and without offers that sell parts of
// cards.
func (p *repairs) problemOf(seats []*place.Seat, plain bool) *problem {
	b := &problem{rows: map[*inventory.Offer]int32{}, counts: []int{quantity.GPU}, tenants: map[*account.Tenant]int32{}}
	if !plain {
		_, end := p.Books.MonthBounds(p.Now)
		b.seconds = int64(end.Sub(p.Now.Time).Seconds())
	}
	kinds := map[*match.Class]int32{}
	apart := p.apart(slices.DeleteFunc(slices.Clone(seats), func(s *place.Seat) bool { // those whose place cannot change
		return plain && place.Limited(s.Job) || s.At != nil && (unusable(s.At.Offer, plain) || s.At.Vague || s.At.Unasked || s.At.FailsMoney != "" || s.At.Offer.Growth != nil)
	}))
	for _, s := range seats {
		if apart[s.Job] || plain && place.Limited(s.Job) || s.At != nil && b.rowOf(s.At.Offer, plain) < 0 {
			continue
		}
		kind, known := kinds[s.Class]
		if !known {
			kind = int32(len(b.Kinds)) //nolint:gosec // their number
			kinds[s.Class] = kind
			p.Match.Trim()
			p.Match.Refresh(s.Class)
			b.addKind(s.Class, plain)
		}
		at := int32(batch.Nowhere)
		if s.At != nil {
			if at = int32(slices.IndexFunc(b.places[kind], func(c spot) bool { return c.offer == s.At.Offer })); at < 0 { //nolint:gosec // their number
				continue // it sits where nobody would be sent
			}
		}
		seat := batch.Seat{Kind: kind, At: at, Group: -1, Account: -1}
		if !plain {
			seat.Account = p.accountOf(b, s.Job)
		}
		if s.Contract != nil {
			for _, u := range inventory.CardsOf(s.Contract) {
				seat.On = append(seat.On, batch.Units{Card: u.Card, N: u.Units})
			}
		}
		b.seats, b.Seats = append(b.seats, s), append(b.Seats, seat)
	}
	b.group()
	b.measure()
	p.share(b)
	return b
}

// apart are the jobs that share a domain and are not in the batch as a whole, or are in
// several: they stay where they are.
func (p *repairs) apart(seats []*place.Seat) map[*draft.Job]bool {
	out := map[*draft.Job]bool{}
	members := map[*draft.Job][]*place.Seat{}
	for _, s := range seats {
		members[s.Job] = append(members[s.Job], s)
	}
	for j, list := range members {
		w, ok := place.Shares(&p.Placer, j)
		if !ok {
			continue
		}
		placed, at := 0, map[string]bool{}
		for _, s := range list {
			if s.At != nil {
				placed++
				at[match.Domain(s.At.Offer, w.By, w.Label)] = true
			}
		}
		whole := j.Gang() && (placed == 0 && len(j.Live) == 0 || placed == len(list)) && len(list) == int(j.Replicas())
		out[j] = !whole || len(at) > 1 || at[""]
	}
	return out
}

// share writes down which groups share a domain, and which row is in which.
func (p *repairs) share(b *problem) {
	kinds := map[domain.Kind]int32{}
	for i, s := range b.seats {
		b.Seats[i].Shares = batch.Nowhere
		w, ok := place.Shares(&p.Placer, s.Job)
		if !ok || b.Seats[i].Group < 0 {
			continue
		}
		w.Required = false
		at, known := kinds[w]
		if !known {
			at = int32(len(b.Domains)) //nolint:gosec // their number
			kinds[w] = at
			numbers, rows := map[string]int32{"": batch.Nowhere}, make([]int32, len(b.offers))
			for r, o := range b.offers {
				d := match.Domain(o, w.By, w.Label)
				if _, seen := numbers[d]; !seen {
					numbers[d] = int32(len(numbers)) //nolint:gosec // their number
				}
				rows[r] = numbers[d]
			}
			b.Domains = append(b.Domains, rows)
		}
		b.Seats[i].Shares = at
	}
}

// accountOf is the account of a job's tenant.
func (p *repairs) accountOf(b *problem, j *draft.Job) int32 {
	at, known := b.tenants[j.Tenant]
	if !known {
		at = int32(len(b.Accounts)) //nolint:gosec // their number
		b.tenants[j.Tenant] = at
		l := p.LimitsOf(j.Tenant, place.Request{}, 0)
		b.Accounts = append(b.Accounts, []int64{int64(l.Hourly), int64(l.Monthly), l.GPU, l.CPU, l.Memory, l.Contracts})
	}
	return at
}

// charges are what a place costs a tenant.
func (b *problem) charges(c *spot) [charged]int64 {
	units := c.size.At(quantity.GPU) * 1000
	per := max(c.offer.UnitsPerCard, 1)
	return [charged]int64{int64(c.peak), int64(c.peak.ForSeconds(b.seconds)), (units + per - 1) / per, c.size.At(quantity.CPU), c.size.At(quantity.Memory), 1}
}

// rowOf is the row of an offer, below 0 where nobody can be sent to.
func (b *problem) rowOf(o *inventory.Offer, plain bool) int32 {
	if unusable(o, plain) {
		return -1
	}
	return b.index(o)
}

// unusable reports whether nobody can be sent to an offer.
func unusable(o *inventory.Offer, plain bool) bool {
	return plain && o.Cards() != nil || o.Overdrawn() >= 0
}

// index is an offer among the rows, with its mates.
func (b *problem) index(o *inventory.Offer) int32 {
	at, known := b.rows[o]
	if known {
		return at
	}
	at = int32(len(b.offers)) //nolint:gosec // their number
	b.rows[o] = at
	b.offers, b.Rows = append(b.offers, o), append(b.Rows, batch.Row{})
	for _, m := range o.PoolPeers {
		mate := b.index(m)
		b.Rows[at].Mates = append(b.Rows[at].Mates, mate)
	}
	return at
}

// addKind adds a class's places.
func (b *problem) addKind(of *match.Class, plain bool) {
	k := batch.Kind{Nowhere: penalty(of), Cards: wanted(of.Request), Cores: of.Request.Need.At(quantity.CPU)}
	places := make([]spot, 0, len(of.ByPrice()))
	k.Places = make([]batch.Place, 0, len(of.ByPrice()))
	for _, i := range of.ByPrice() {
		c := &of.Candidates[i]
		if c.Vague {
			continue
		}
		row := b.rowOf(c.Offer, plain)
		if row < 0 {
			continue
		}
		g := of.Request.GPU
		k.Places = append(k.Places, batch.Place{Price: c.Quote.Current(), Row: row, Loose: g == nil || c.Offer.Cards() != nil && g.Loose(c.Offer.Flavor.Spec.GPU)})
		places = append(places, spot{c.Offer, c.Size, c.Quote.Peak})
		for r, n := range c.Size {
			if n > 0 && !slices.Contains(b.counts, r) {
				b.counts = append(b.counts, r)
			}
		}
	}
	b.Kinds, b.places = append(b.Kinds, k), append(b.places, places)
}

// group finds who must not lose its place, and which gangs are whole in the batch.
func (b *problem) group() {
	members := map[*draft.Job][]int{}
	for i, s := range b.seats {
		members[s.Job] = append(members[s.Job], i)
	}
	next := int32(0)
	for i, s := range b.seats {
		list := members[s.Job]
		if s.Job.Replicas() == 1 || list[0] != i {
			continue
		}
		placed := slices.ContainsFunc(list, func(i int) bool { return b.seats[i].At != nil })
		whole := s.Job.Gang() && (!placed || len(list) == int(s.Job.Replicas()))
		for _, i := range list {
			switch {
			case whole:
				b.Seats[i].Group = next
			case b.seats[i].At != nil:
				b.Seats[i].Stays = true // others of its intent would stay behind
			}
		}
		if whole {
			next++
		}
	}
}

// measure writes down rooms and sizes.
func (b *problem) measure() {
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
	}
	for i := range b.Kinds {
		k, places := &b.Kinds[i], b.places[i]
		k.Sizes = make([]int64, 0, len(places)*len(b.counts))
		if len(b.Accounts) > 0 {
			k.Charges = make([]int64, 0, len(places)*charged)
		}
		for at := range places {
			k.Sizes = numbers(k.Sizes, places[at].size)
			if len(b.Accounts) > 0 {
				x := b.charges(&places[at])
				k.Charges = append(k.Charges, x[:]...)
			}
		}
	}
}

// wanted is how many units of cards are asked for.
func wanted(w *match.Request) int64 {
	if w.GPU == nil {
		return 0
	}
	return w.GPU.Count
}
