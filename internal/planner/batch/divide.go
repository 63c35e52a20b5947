package batch

import (
	"cmp"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

const (
	// partSteps bounds the search for more than two parts.
	partSteps = 256
	// partsALook is how many rows of parts count as one look.
	partsALook = 16
	// lessOften is that one in so many parts takes less than it could.
	lessOften = 8
	// allSeen is of how many places one is overlooked where none is to be.
	allSeen = math.MaxInt32
)

// division is the search for the parts of one seat. Rows are looked at in an order; the
// parts on some rows are cheapest where each takes as much as it can, the cheapest first.
type division struct {
	x    *ruins
	sp   *Split
	seat int32
	// order are rows of the split, free for how many units each has room, most the most of
	// these from each of them on.
	order      []int32
	free, most []int64
	// byPrice: the order is that of prices, and the cheapest parts are looked for; else the
	// first that are found.
	byPrice bool
	// now are the parts that are tried, best the cheapest.
	now, best []Part
	cost      quantity.Micro
	steps     int
}

// divide finds parts for a seat, the fewest that hold it; nil for none. One in blind rows is
// overlooked.
func (x *ruins) divide(i int32, shadow bool, blind int) []Part {
	kind := x.Seats[i].Kind
	sp, d := x.Kinds[kind].Split, &x.division
	d.x, d.sp, d.seat, d.byPrice = x, sp, i, !shadow
	d.order, d.free = d.order[:0], d.free[:0]
	x.looks -= 1 + len(sp.Rows)/partsALook
	first, second := int64(0), int64(0)
	k := &x.forParts[kind]
	list := &k.byPrice
	if shadow {
		list = &k.ranked
	}
	for n, from := range list.rooms {
		if x.rooms[from] < k.fewest {
			continue
		}
		at := list.place(n)
		known := &k.known[at]
		if now := x.moves[sp.Rows[at].Row]; known.moves != now {
			*known = partRoom{now, x.roomForPart(sp, at)}
		}
		room := known.room
		if room < sp.Least || x.draw(blind) == 0 {
			continue
		}
		d.order, d.free = append(d.order, at), append(d.free, room)
		first, second = max(first, room), max(second, min(first, room))
	}
	d.most = append(d.most[:0], d.free...)
	for n := len(d.most) - 2; n >= 0; n-- {
		d.most[n] = max(d.most[n], d.most[n+1])
	}
	for n := int64(2); n <= min(int64(sp.Most), sp.Of/sp.Least, int64(len(d.order))); n++ {
		if first+(n-1)*second < sp.Of {
			continue
		}
		d.now, d.best, d.cost, d.steps = d.now[:0], nil, math.MaxInt64, partSteps
		if n == 2 {
			d.steps = math.MaxInt
		}
		if d.find(0, sp.Of, n); d.best != nil {
			return d.best
		}
	}
	return nil
}

// roomForPart is for how many units of a seat that is divided a row has room.
func (x *ruins) roomForPart(sp *Split, at int32) int64 {
	deal, row := sp.deal(at), &sp.Rows[at]
	room, cards := x.room(row.Row), x.cards[row.Row]
	fits := func(units int64) bool {
		size := deal.size(units, x.n)
		for r, takes := range size {
			if takes > room[r] {
				return false
			}
		}
		return cards == nil || x.Rows[row.Row].hosts(cards, size[0], row.Loose)
	}
	high := min(sp.Of-sp.Least, int64(len(deal.Prices))-1)
	if high < sp.Least || !fits(sp.Least) {
		return 0
	}
	for low := sp.Least; ; {
		mid := (low + high + 1) / 2
		switch {
		case low >= high:
			return high
		case fits(mid):
			low = mid
		default:
			high = mid - 1
		}
	}
}

// find looks for n parts of what is left, on rows from one of the order on.
func (d *division) find(from int, left, n int64) {
	for at := from; at < len(d.order) && d.steps > 0; at++ {
		d.steps--
		if n*d.most[at] < left {
			return
		}
		if d.byPrice && d.best != nil && d.sp.exceeds(d.order[at], left, d.cost-d.sp.price(d.now)) {
			return
		}
		units := left
		if n == 1 {
			if d.free[at] < left {
				continue
			}
		} else if units = d.units(at, left, n); units == 0 {
			continue
		}
		d.now = append(d.now, Part{Row: d.order[at], Units: units})
		if n == 1 {
			d.take()
		} else {
			d.find(at+1, left-units, n-1)
		}
		d.now = d.now[:len(d.now)-1]
		if n == 1 || d.best != nil && !d.byPrice {
			return
		}
	}
}

// units is how many of what is left the first of n parts takes on a row; 0 where the rows
// after it do not hold the rest.
func (d *division) units(at int, left, n int64) int64 {
	units := min(d.free[at], left-(n-1)*d.sp.Least)
	if d.x.draw(lessOften) == 0 {
		units = d.sp.Least + int64(d.x.draw(int(units-d.sp.Least+1)))
	}
	if at+1 == len(d.order) || (n-1)*d.most[at+1] < left-units {
		return 0
	}
	return units
}

// take keeps the parts that are tried if they are cheaper, affordable, and have room next to
// each other.
func (d *division) take() {
	if cost := d.sp.price(d.now); cost < d.cost && d.affords() && d.coexist() {
		d.best, d.cost = slices.Clone(d.now), cost
		slices.SortFunc(d.best, func(a, b Part) int { return cmp.Compare(a.Row, b.Row) })
	}
}

// affords reports whether the seat's account has what the parts cost.
func (d *division) affords() bool {
	account := d.x.Seats[d.seat].Account
	if account < 0 || !d.x.bounded[account] {
		return true
	}
	for c, left := range d.x.left[account] {
		for i := range d.now {
			left -= d.sp.deal(d.now[i].Row).charges(d.now[i].Units, len(d.x.left[account]))[c]
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// coexist reports whether parts have room next to each other, on rows that are cut from the
// same nodes, too.
func (d *division) coexist() bool {
	if !slices.ContainsFunc(d.now, func(p Part) bool { return len(d.x.Rows[d.sp.Rows[p.Row].Row].Mates) > 0 }) {
		return true // each is on a row of its own
	}
	fits := true
	for i := range d.now {
		row, size := d.sp.Rows[d.now[i].Row].Row, d.sp.deal(d.now[i].Row).size(d.now[i].Units, d.x.n)
		for r, free := range d.x.room(row) {
			fits = fits && size[r] <= free
		}
		d.x.take(row, size, 1)
	}
	for i := range d.now {
		d.x.take(d.sp.Rows[d.now[i].Row].Row, d.sp.deal(d.now[i].Row).size(d.now[i].Units, d.x.n), -1)
	}
	return fits
}
