package batch

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// The seats of a group choose one after the other with nobody in between. Where they share
// a domain each domain is tried, and the one in which all cost the least is taken.

// shared is the domain of those of a group that have places.
type shared struct {
	domain int32
	seats  int
}

// units is what is kept of groups that share a domain, and of the one that chooses.
type units struct {
	by      map[within]places
	found   [][]candidate // by group
	members []int32
	kept    []state
}

// within are a kind's places in one domain each.
type within struct{ domains, kind int32 }

// places are those in each domain, the cheapest first, and the best by shadow price first.
type places map[int32]*[2]order

// placesBy are the places of a kind by domain of a kind of domains, made on first use.
func (x *ruins) placesBy(key within) places {
	if list := x.by[key]; list != nil {
		return list
	}
	k, out := &x.Kinds[key.kind], places{}
	domains := x.Domains[key.domains]
	add := func(n int, at int32) {
		if d := domains[k.Places[at].Row]; d >= 0 {
			if out[d] == nil {
				out[d] = &[2]order{}
			}
			o := &out[d][n]
			o.places, o.rooms = append(o.places, at), append(o.rooms, k.Places[at].Row*int32(x.n)) //nolint:gosec // there are few resources
		}
	}
	for at := range k.Places {
		add(0, int32(at)) //nolint:gosec // their number
	}
	for _, at := range x.ranked[key.kind].places {
		add(1, at)
	}
	x.by[key] = out
	return out
}

// domainsOf are the domains in which each seat of a group has places, those with the least
// sum of cheapest prices first, with that sum.
func (x *ruins) domainsOf(g int32) []candidate {
	if known := x.found[g]; known != nil {
		return known
	}
	list, out := x.groups[g], []candidate{}
	first := &x.Seats[list[max(slices.IndexFunc(list, func(i int32) bool { return !x.Seats[i].Follows }), 0)]]
next:
	for d := range x.placesBy(within{first.Shares, first.Kind}) {
		sum, c := quantity.Micro(0), candidate{domain: d}
		for _, i := range list {
			s := &x.Seats[i]
			in := x.placesBy(within{s.Shares, s.Kind})[d]
			c.count(s, in)
			switch {
			case in != nil:
				sum += min(x.Kinds[s.Kind].Places[in[0].places[0]].Price, x.Kinds[s.Kind].Nowhere)
			case s.Follows:
				sum += x.Kinds[s.Kind].Nowhere
			default:
				continue next
			}
		}
		c.least = sum
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.domain, b.domain))
	})
	x.found[g] = out
	return out
}

// candidate is a domain, the least that a group costs there, and what each of its kinds has
// there.
type candidate struct {
	domain int32
	least  quantity.Micro
	kinds  []kindIn
}

// kindIn are a kind's places in a domain, nil for none, and how many of the group's seats must
// have one.
type kindIn struct {
	kind   int32
	must   int64
	places *[2]order
}

// count adds a seat to those of its kind.
func (c *candidate) count(s *Seat, in *[2]order) {
	at := slices.IndexFunc(c.kinds, func(k kindIn) bool { return k.kind == s.Kind })
	if at < 0 {
		at, c.kinds = len(c.kinds), append(c.kinds, kindIn{kind: s.Kind, places: in})
	}
	if !s.Follows {
		c.kinds[at].must++
	}
}

// of are a kind's places in the domain, nil for none.
func (c *candidate) of(kind int32) *[2]order {
	for i := range c.kinds {
		if c.kinds[i].kind == kind {
			return c.kinds[i].places
		}
	}
	return nil
}

// mayHoldAll reports whether a domain has room for all of each kind that must be there, if
// nobody else of the group was.
func (x *ruins) mayHoldAll(c *candidate) bool {
	for i := range c.kinds {
		in := &c.kinds[i]
		if in.must == 0 {
			continue
		}
		left := in.must
		list, fewest := in.places[0], x.fewest[in.kind]
		x.looks -= len(list.places) / placesALook
		for n, from := range list.rooms {
			if x.rooms[from] < fewest {
				continue
			}
			if left -= fitting(x.rooms[from:][:x.n], takes(x, in.kind, list.places[n]), left); left <= 0 {
				break
			}
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// fitting is how many of a size fit a room, at most most.
func fitting(room, size []int64, most int64) int64 {
	for r, takes := range size {
		if takes > room[r] {
			return 0
		}
		if takes > 0 && most > 1 {
			most = min(most, room[r]/takes)
		}
	}
	return most
}

// seatGroup gives all of a group places, or all but those that follow, and reports
// whether it could; else none has one.
func (x *ruins) seatGroup(g int32, shadow bool, blind int) bool {
	list := x.order(x.groups[g])
	if !x.shares(&x.Seats[list[0]]) {
		return x.seatAll(list, nil, shadow, blind, 0) == len(list)
	}
	leads := list[:x.follow(list)]
	if len(leads) == 0 {
		return false
	}
	best, cheapest, before := int32(Nowhere), quantity.Micro(0), x.cost
	x.kept = x.kept[:0]
	domains := x.domainsOf(g)
	for n := range domains {
		c := &domains[n]
		if best >= 0 && before+c.least >= cheapest {
			break
		}
		if x.draw(blind) == 0 || !x.mayHoldAll(c) {
			continue
		}
		if n := x.seatAll(leads, c, shadow, blind, cheapest); n < len(leads) {
			continue
		}
		step := len(list) - len(leads) // of those that follow all find a place or none
		if x.Singly {
			step = 1
		}
		for n := len(leads); n < len(list); n += step {
			seatFollowers(x, list[n:n+step], c, shadow, blind)
		}
		if best < 0 || x.cost < cheapest {
			best, cheapest, x.kept = c.domain, x.cost, x.kept[:0]
			for _, i := range list {
				x.kept = append(x.kept, x.seats[i])
			}
		}
		x.unseat(list)
	}
	if best < 0 {
		return false
	}
	for n, i := range list {
		x.seated(i, x.kept[n])
	}
	return true
}

// seatFollowers gives seats of a group that follow places in a domain, all of them or none.
func seatFollowers(x *ruins, list []int32, in *candidate, shadow bool, blind int) {
	none := func(i int32) bool { return in.of(x.Seats[i].Kind) == nil }
	if slices.ContainsFunc(list, none) || x.seatAll(list, in, shadow, blind, 0) < len(list) {
		for _, i := range list {
			x.put(i, Nowhere)
		}
	}
}

// follow puts those of a group that follow last, and returns how many do not.
func (x *ruins) follow(list []int32) (leads int) {
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Compare(x.behind(a), x.behind(b))
	})
	for leads < len(list) && !x.Seats[list[leads]].Follows {
		leads++
	}
	return leads
}

func (x *ruins) behind(i int32) int {
	if x.Seats[i].Follows {
		return 1
	}
	return 0
}

// order are seats in which they choose: the biggest first where they differ.
func (x *ruins) order(list []int32) []int32 {
	x.members = append(x.members[:0], list...)
	slices.SortStableFunc(x.members, func(a, b int32) int {
		return cmp.Compare(x.Kinds[x.Seats[b].Kind].Cards, x.Kinds[x.Seats[a].Kind].Cards)
	})
	return x.members
}

// seatAll seats all, in one domain where one is given, or none; it returns how many found a
// place. It gives up where it costs as much as most, if that is above 0.
func (x *ruins) seatAll(list []int32, in *candidate, shadow bool, blind int, most quantity.Micro) int {
	for n, i := range list {
		s := &x.Seats[i]
		among := x.among(s.Kind, shadow)
		if in != nil {
			by := 0
			if shadow {
				by = 1
			}
			among = in.of(s.Kind)[by]
		}
		sits := x.sit(i, among, shadow, in != nil, blind)
		if !sits || most > 0 && x.cost >= most {
			if sits {
				n++
			}
			x.unseat(list[:n])
			return n - 1
		}
	}
	return len(list)
}

// unseat takes seats from the places that they have.
func (x *ruins) unseat(list []int32) {
	for _, i := range list {
		x.vacate(i)
	}
}
