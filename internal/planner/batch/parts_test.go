package batch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// drawnInParts is a problem of two resources some of whose seats may be in parts.
func drawnInParts(t *rapid.T) *Problem {
	number := func(name string, from, to int) int64 { return int64(rapid.IntRange(from, to).Draw(t, name)) }
	p := &Problem{Pooled: []bool{false, true}}
	for range number("rows", 1, 5) {
		r := Row{Free: []int64{number("units", 0, 8), number("cores", 0, 16)}}
		if number("deck", 0, 3) == 0 {
			r.Per = 2
			for left := r.Free[0]; left > 0; left -= r.Per {
				r.Cards = append(r.Cards, min(left, r.Per))
			}
		}
		p.Rows = append(p.Rows, r)
	}
	if len(p.Rows) > 1 && rapid.Bool().Draw(t, "pool") {
		p.Rows[0].Mates, p.Rows[1].Mates = []int32{1}, []int32{0}
		p.Rows[1].Free[1] = p.Rows[0].Free[1]
	}
	p.Accounts = [][]int64{{number("money", 0, 60), number("quota", 0, 20)}}
	for range number("kinds", 1, 3) {
		of, cores := number("of", 1, 9), number("cores", 0, 2)
		k := Kind{Nowhere: 1000, Cards: of}
		if of > 1 && number("split", 0, 3) > 0 {
			k.Split = &Split{Most: int32(number("parts", 2, 4)), Least: number("least", 1, int(of)/2), Of: of}
		}
		for r := range p.Rows {
			price := number("price", 1, 5)
			if rapid.IntRange(0, 3).Draw(t, "place") > 0 {
				k.Places = append(k.Places, Place{Price: quantity.Micro(price * of), Row: int32(r)})
			}
			if k.Split == nil || rapid.IntRange(0, 5).Draw(t, "part") == 0 {
				continue
			}
			d := PartDeal{}
			for units := range number("sold", int(k.Split.Least), int(of)) + 1 {
				d.Sizes, d.Charges = append(d.Sizes, units, units*cores), append(d.Charges, price*units, units)
				d.Prices = append(d.Prices, quantity.Micro(price*units))
			}
			k.Split.Deals = append(k.Split.Deals, d)
			k.Split.Rows = append(k.Split.Rows, PartRow{Row: int32(r), Deal: int32(len(k.Split.Deals) - 1)})
		}
		slices.SortStableFunc(k.Places, func(a, b Place) int { return int(a.Price - b.Price) })
		for _, pl := range k.Places {
			k.Sizes, k.Charges = append(k.Sizes, of, of*cores), append(k.Charges, int64(pl.Price), of)
		}
		if k.Split != nil {
			slices.SortStableFunc(k.Split.Rows, func(a, b PartRow) int {
				return int(k.Split.Deals[a.Deal].Prices[k.Split.Least] - k.Split.Deals[b.Deal].Prices[k.Split.Least])
			})
		}
		p.Kinds = append(p.Kinds, k)
	}
	for range number("seats", 2, 8) {
		kind := int32(rapid.IntRange(0, len(p.Kinds)-1).Draw(t, "kind"))
		p.Seats = append(p.Seats, Seat{Kind: kind, At: Nowhere, Group: Nowhere, Shares: Nowhere, Account: int32(rapid.IntRange(-1, 0).Draw(t, "account")), Rule: Nowhere})
	}
	return p
}

// judgeParts returns what an answer to a problem whose seats begin without places breaks, and
// what it costs; units are judged as what a row has in total, and on cards one by one.
func (p *Problem) judgeParts(a *Answer) (broken string, cost quantity.Micro) {
	rooms, left := make([][]int64, len(p.Rows)), slices.Clone(p.Accounts[0])
	cards := make([][]int64, len(p.Rows))
	for r := range p.Rows {
		rooms[r], cards[r] = slices.Clone(p.Rows[r].Free), slices.Clone(p.Rows[r].Cards)
	}
	take := func(row int32, size, charges []int64, on []Units, account int32, sign int64) {
		for x, n := range size {
			rooms[row][x] -= sign * n
			for _, m := range p.Rows[row].Mates {
				if p.Pooled[x] {
					rooms[m][x] -= sign * n
				}
			}
		}
		for _, u := range on {
			cards[row][u.Card] -= sign * u.N
		}
		for x, n := range charges {
			if account >= 0 {
				left[x] -= sign * n
			}
		}
	}
	short := func(list []int64) bool { return len(list) > 0 && slices.Min(list) < 0 }
	over := func() bool {
		return short(left) || slices.ContainsFunc(rooms, short) || slices.ContainsFunc(cards, short)
	}
	each := func(i int, sign int64) {
		s, k := &p.Seats[i], &p.Kinds[p.Seats[i].Kind]
		if at := a.At[i]; at >= 0 {
			take(k.Places[at].Row, p.size(k, at), p.charges(k, at), a.On[i], s.Account, sign)
		}
		for _, part := range a.Parts[i] {
			d := k.Split.Deals[k.Split.Rows[part.Row].Deal]
			take(k.Split.Rows[part.Row].Row, d.Sizes[part.Units*2:][:2], d.Charges[part.Units*2:][:2], part.On, s.Account, sign)
		}
	}
	for i := range p.Seats {
		k := &p.Kinds[p.Seats[i].Kind]
		switch at := a.At[i]; {
		case at >= 0:
			cost += k.Places[at].Price
		case at == Nowhere:
			cost += k.Nowhere
		}
		units, rows := int64(0), map[int32]bool{}
		for _, part := range a.Parts[i] {
			units += part.Units
			rows[k.Split.Rows[part.Row].Row] = true
			cost += k.Split.Deals[k.Split.Rows[part.Row].Deal].Prices[part.Units]
			if part.Units < k.Split.Least {
				return "a part has too few units", 0
			}
		}
		if (a.At[i] == InParts) != (len(rows) > 1) || len(rows) != len(a.Parts[i]) || units > 0 && (units != k.Split.Of || len(rows) > int(k.Split.Most)) {
			return "the parts are not what they should be", 0
		}
		each(i, 1)
	}
	if over() {
		return "a row, a card or an account has too little", 0
	}
	for i := range p.Seats {
		if a.At[i] != InParts {
			continue
		}
		s, k := &p.Seats[i], &p.Kinds[p.Seats[i].Kind]
		each(i, -1)
		for n := range k.Places {
			row, size := k.Places[n].Row, p.size(k, int32(n))
			take(row, size, p.charges(k, int32(n)), nil, s.Account, 1)
			fits := !over() && p.Rows[row].hosts(cards[row], size[0], false)
			if take(row, size, p.charges(k, int32(n)), nil, s.Account, -1); fits {
				return "a seat is in parts that a place holds", 0
			}
		}
		each(i, 1)
	}
	return "", cost
}

// Parts are as many, as large and where they can be, none where a place holds the whole, and
// they are found again.
func TestPartsCanBe(t *testing.T) {
	inParts := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawnInParts(t)
		found := Solve(p, 5_000)
		broken, cost := p.judgeParts(&found)
		if broken != "" {
			t.Fatalf("%s: %v, %v", broken, found.At, found.Parts)
		}
		if nothing := p.cost(); found.Cheaper != (cost < nothing) {
			t.Fatalf("cheaper %v: %d, %d before", found.Cheaper, cost, nothing)
		}
		again := Solve(p, 5_000)
		if !slices.Equal(again.At, found.At) || !slices.EqualFunc(again.Parts, found.Parts, EqualParts) {
			t.Fatalf("found %v %v, and then %v %v", found.At, found.Parts, again.At, again.Parts)
		}
		if slices.Contains(found.At, InParts) {
			inParts++
		}
		for i := range p.Seats { // from what was found on, nothing is more expensive
			s := &p.Seats[i]
			s.At, s.On, s.Parts = found.At[i], found.On[i], found.Parts[i]
		}
		p.fillAll()
		if next := Solve(p, 5_000); next.Cheaper && p.costOf(&next) >= cost {
			t.Fatalf("%d is told as cheaper than %d", p.costOf(&next), cost)
		}
	})
	if inParts == 0 {
		t.Error("no seat was ever in parts")
	}
}

// fillAll takes what its seats have from rows and accounts: problems are given with what is
// left next to them.
func (p *Problem) fillAll() {
	was := make([]Seat, len(p.Seats))
	for i := range p.Seats {
		was[i] = p.Seats[i]
		p.Seats[i].At, p.Seats[i].On, p.Seats[i].Parts = Nowhere, nil, nil
	}
	none := make([][]int32, len(p.Kinds))
	x := p.begin(none, none, 1<<30)
	for i, s := range was {
		x.vacate(int32(i))
		x.seated(int32(i), s.state())
	}
	copy(p.Seats, was)
	for r := range p.Rows {
		copy(p.Rows[r].Free, x.room(int32(r)))
		copy(p.Rows[r].Cards, x.cards[r])
	}
	copy(p.Accounts[0], x.left[0])
}

func (p *Problem) costOf(a *Answer) (sum quantity.Micro) {
	for i := range p.Seats {
		switch k := &p.Kinds[p.Seats[i].Kind]; a.At[i] {
		case Nowhere:
			sum += k.Nowhere
		case InParts:
			sum += k.Split.price(a.Parts[i])
		default:
			sum += k.Places[a.At[i]].Price
		}
	}
	return sum
}

// Two whole seats and one in parts that fit in one way alone: the cheapest parts would take
// what another must have.
func TestPartsGiveWay(t *testing.T) {
	deal := func(price int64) PartDeal {
		d := PartDeal{}
		for units := range int64(8) {
			d.Sizes, d.Prices = append(d.Sizes, units), append(d.Prices, quantity.Micro(price*units))
		}
		return d
	}
	p := &Problem{
		Pooled: []bool{false},
		Rows:   []Row{{Free: []int64{6}}, {Free: []int64{6}}, {Free: []int64{4}}},
		Kinds: []Kind{
			{Cards: 8, Nowhere: 1000, Split: &Split{Most: 2, Least: 1, Of: 8, Rows: []PartRow{{Row: 0}, {Row: 1, Deal: 1}, {Row: 2, Deal: 2}}, Deals: []PartDeal{deal(1), deal(2), deal(5)}}},
			{Cards: 6, Nowhere: 900, Places: []Place{{Price: 30, Row: 0}}, Sizes: []int64{6}},
			{Cards: 2, Nowhere: 500, Places: []Place{{Price: 40, Row: 1}}, Sizes: []int64{2}},
		},
	}
	for kind := range int32(3) {
		p.Seats = append(p.Seats, Seat{Kind: kind, At: Nowhere, Group: Nowhere, Shares: Nowhere, Account: Nowhere, Rule: Nowhere})
	}
	found := Solve(p, 100_000)
	want := []Part{{Row: 1, Units: 4}, {Row: 2, Units: 4}}
	if found.At[0] != InParts || !EqualParts(found.Parts[0], want) || found.At[1] != 0 || found.At[2] != 0 {
		t.Errorf("got %v with %v, want parts %v and the others placed", found.At, found.Parts, want)
	}
}
