package batch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// drawn is a problem of two resources (units of cards and cores) whose seats are
// where they can be.
func drawn(t *rapid.T, rows, seats int) *Problem {
	number := func(name string, from, to int) int64 { return int64(rapid.IntRange(from, to).Draw(t, name)) }
	p := &Problem{Pooled: []bool{false, true}}
	for range rapid.IntRange(1, rows).Draw(t, "rows") {
		r := Row{Free: []int64{number("units", 0, 8), number("cores", 0, 8)}}
		if rapid.IntRange(0, 2).Draw(t, "deck") == 0 {
			r.Per = 4
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
	for range rapid.IntRange(1, 3).Draw(t, "kinds") {
		k := Kind{Nowhere: 100, Cards: number("cards", 0, 5), Cores: number("cpu", 0, 3)}
		for r := range p.Rows {
			if rapid.IntRange(0, 3).Draw(t, "place") > 0 {
				k.Places = append(k.Places, Place{Price: quantity.Micro(number("price", 1, 20)), Most: quantity.Micro(number("most", 1, 20)), Row: int32(r), Loose: rapid.IntRange(0, 3).Draw(t, "loose") == 0})
			}
		}
		slices.SortStableFunc(k.Places, func(a, b Place) int { return int(a.Price - b.Price) })
		deal := rapid.Bool().Draw(t, "deals")
		for i, pl := range k.Places {
			if deal && i > 0 && pl.Price == k.Places[i-1].Price {
				k.Deals = append(k.Deals, k.Deals[i-1])
				continue
			}
			if deal {
				k.Deals = append(k.Deals, int32(len(k.Sizes)/2))
			}
			k.Sizes, k.Charges = append(k.Sizes, k.Cards, k.Cores), append(k.Charges, int64(pl.Price), k.Cards)
		}
		p.Kinds = append(p.Kinds, k)
	}
	p.Accounts = [][]int64{{number("money", 0, 40), number("quota", 0, 12)}}
	p.Domains = drawnDomains(t, len(p.Rows))
	groups := int32(0)
	for len(p.Seats) < seats {
		kind, together := int32(rapid.IntRange(0, len(p.Kinds)-1).Draw(t, "kind")), rapid.IntRange(1, 3).Draw(t, "together")
		group := int32(-1)
		if together > 1 {
			group, groups = groups, groups+1
		}
		from, account := len(p.Seats), int32(rapid.IntRange(-1, 0).Draw(t, "account"))
		shares, rule := p.drawnRule(t, group)
		for range together {
			follows := shares >= 0 && len(p.Seats) > from && rapid.IntRange(0, 2).Draw(t, "follows") == 0
			p.Seats = append(p.Seats, Seat{Kind: kind, At: Nowhere, Group: group, Shares: shares, Follows: follows, Account: account, Rule: rule})
		}
		if rapid.Bool().Draw(t, "placed") {
			p.fill(from, group < 0 && rule < 0 && rapid.Bool().Draw(t, "stays"))
		}
	}
	return p
}

// fill seats those from one on wherever there is room, all or none.
func (p *Problem) fill(from int, stays bool) {
	none := make([][]int32, len(p.Kinds))
	x := p.begin(none, none, 1<<30)
	for i := from; i < len(p.Seats); i++ {
		at := int32(Nowhere)
		for n, pl := range p.Kinds[p.Seats[i].Kind].Places {
			size, fits := p.size(&p.Kinds[p.Seats[i].Kind], int32(n)), true
			for r, takes := range size {
				fits = fits && takes <= x.room(pl.Row)[r]
			}
			x.consider(&p.Seats[i])
			fits = fits && !x.apart(&p.Seats[i], pl.Row) && !x.breaks(&p.Seats[i], &pl)
			if fits && x.affords(int32(i), &p.Kinds[p.Seats[i].Kind], int32(n)) && p.Rows[pl.Row].hosts(x.cards[pl.Row], size[0], pl.Loose) {
				at = int32(n)
			}
		}
		if at < 0 {
			return
		}
		x.vacate(int32(i))
		x.put(int32(i), at)
	}
	for i := from; i < len(p.Seats); i++ {
		p.Seats[i].At, p.Seats[i].On, p.Seats[i].Stays = x.seats[i].at, x.seats[i].on(), stays
	}
	for r := range p.Rows {
		copy(p.Rows[r].Free, x.room(int32(r)))
		copy(p.Rows[r].Cards, x.cards[r])
	}
	copy(p.Accounts[0], x.left[0])
}

// judge returns what an answer breaks, and what it costs.
func (p *Problem) judge(at []int32) (broken string, cost quantity.Micro) {
	rooms, units := make([][]int64, len(p.Rows)), make([][][2]int64, len(p.Rows)) // units: number and whether loose
	cards := make([][]int64, len(p.Rows))
	for r := range p.Rows {
		rooms[r], cards[r] = slices.Clone(p.Rows[r].Free), slices.Clone(p.Rows[r].Cards)
	}
	take := func(row int32, size []int64, sign int64) {
		for x, n := range size {
			rooms[row][x] -= sign * n
			for _, m := range p.Rows[row].Mates {
				if p.Pooled[x] {
					rooms[m][x] -= sign * n
				}
			}
		}
	}
	placed, left := map[int32][2]int{}, slices.Clone(p.Accounts[0])
	parts := [2]map[int32][2]int{{}, {}} // leads and followers of each group, with a place and all
	charge := func(s *Seat, at int32, sign int64) {
		if s.Account >= 0 {
			for n, c := range p.charges(&p.Kinds[s.Kind], at) {
				left[n] -= sign * c
			}
		}
	}
	for i := range p.Seats {
		s := &p.Seats[i]
		k := &p.Kinds[s.Kind]
		if s.At >= 0 {
			take(k.Places[s.At].Row, p.size(k, s.At), -1)
			charge(s, s.At, -1)
			for _, u := range s.On {
				cards[k.Places[s.At].Row][u.Card] += u.N
			}
		}
		n := placed[s.Group]
		n[1]++
		if at[i] < 0 {
			if cost += k.Nowhere; s.Stays {
				return "a seat that stays has no place", 0
			}
		} else {
			n[0]++
			cost += k.Places[at[i]].Price
			take(k.Places[at[i]].Row, p.size(k, at[i]), 1)
			charge(s, at[i], 1)
			loose := int64(0)
			if k.Places[at[i]].Loose {
				loose = 1
			}
			row := k.Places[at[i]].Row
			units[row] = append(units[row], [2]int64{p.size(k, at[i])[0], loose})
		}
		placed[s.Group] = n
		kind := 0
		if s.Follows {
			kind = 1
		}
		l := parts[kind][s.Group]
		if l[1]++; at[i] >= 0 {
			l[0]++
		}
		parts[kind][s.Group] = l
	}
	for g, n := range placed {
		leads, followers := parts[0][g], parts[1][g]
		if g >= 0 && n[0] != 0 && (leads[0] != leads[1] || !p.Singly && followers[0] != 0 && followers[0] != followers[1]) {
			return "a group has places in part", 0
		}
	}
	if slices.Min(left) < 0 {
		return "an account has too little", 0
	}
	for r := range rooms {
		for _, n := range rooms[r] {
			if n < 0 {
				return "a row has too little", 0
			}
		}
		if p.Rows[r].Cards != nil && !lies(cards[r], p.Rows[r].Per, units[r]) {
			return "units do not lie on the cards of a row", 0
		}
	}
	return p.judgeRules(at), cost
}

// lies reports whether all units lie on cards in some way.
func lies(cards []int64, per int64, units [][2]int64) bool {
	i := slices.IndexFunc(units, func(u [2]int64) bool { return u[1] == 0 && u[0] > 0 })
	if i < 0 {
		return true // loose ones lie wherever there is room, which the row has
	}
	rest := slices.Delete(slices.Clone(units), i, i+1)
	n := min(units[i][0], per)
	if left := units[i][0] - n; left > 0 {
		rest = append(rest, [2]int64{left, 0})
	}
	seen := map[int64]bool{}
	for c, free := range cards {
		if free >= n && !seen[free] {
			seen[free] = true
			next := slices.Clone(cards)
			next[c] -= n
			if lies(next, per, rest) {
				return true
			}
		}
	}
	return false
}

// What is found can be, costs less when Cheaper is set, and is found again.
func TestAnswersCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 4, rapid.IntRange(1, 8).Draw(t, "seats"))
		given := make([]int32, len(p.Seats))
		for i := range p.Seats {
			given[i] = p.Seats[i].At
		}
		broken, before := p.judge(given)
		if broken != "" {
			t.Fatalf("drawn wrongly: %s", broken)
		}
		found := Solve(p, 20_000)
		broken, after := p.judge(found.At)
		switch {
		case broken != "":
			t.Fatal(broken)
		case found.Cheaper != (after < before) || !found.Cheaper && !slices.Equal(found.At, given):
			t.Fatalf("cheaper %v: %d, %d before", found.Cheaper, after, before)
		}
		if again := Solve(p, 20_000); !slices.Equal(again.At, found.At) {
			t.Fatalf("found %v, and then %v", found.At, again.At)
		}
	})
}

// Which currency prices are in changes no answer.
func TestScaleOfPricesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 4, rapid.IntRange(1, 8).Draw(t, "seats"))
		found := Solve(p, 20_000)
		const rate = 150
		for i := range p.Kinds {
			k := &p.Kinds[i]
			k.Nowhere *= rate
			for at := range k.Places {
				k.Places[at].Price, k.Places[at].Most = k.Places[at].Price*rate, k.Places[at].Most*rate
			}
			for deal := 0; deal < len(k.Charges); deal += 2 {
				k.Charges[deal] *= rate
			}
		}
		p.Accounts[0][0] *= rate
		for i := range p.Rules {
			p.Rules[i].Most *= rate
		}
		if again := Solve(p, 20_000); !slices.Equal(again.At, found.At) || again.Cheaper != found.Cheaper || again.Looks != found.Looks {
			t.Fatalf("%v in one currency, %v in another", found, again)
		}
	})
}

// Small problems are solved to their optimum.
func TestSmallProblemsAreSolved(t *testing.T) {
	missed, solved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 3, rapid.IntRange(2, 5).Draw(t, "seats"))
		at := make([]int32, len(p.Seats))
		best := quantity.Unlimited
		var try func(i int)
		try = func(i int) {
			if i == len(at) {
				if broken, cost := p.judge(at); broken == "" {
					best = min(best, cost)
				}
				return
			}
			for n := Nowhere; n < len(p.Kinds[p.Seats[i].Kind].Places); n++ {
				at[i] = int32(n)
				try(i + 1)
			}
		}
		try(0)
		_, cost := p.judge(Solve(p, 100_000).At)
		if solved++; cost > best {
			missed++
		}
	})
	if missed*50 > solved {
		t.Errorf("%d of %d problems were not solved to their optimum", missed, solved)
	}
}

// A gang without a place gets one where others can go elsewhere, as a whole.
func TestGroupsComeInWhole(t *testing.T) {
	p := &Problem{
		Pooled: []bool{false},
		Rows:   []Row{{Free: []int64{0}}, {Free: []int64{2}}},
		Kinds: []Kind{
			{Places: []Place{{Price: 1, Row: 0}, {Price: 2, Row: 1}}, Sizes: []int64{1, 1}, Nowhere: 100, Cards: 1},
			{Places: []Place{{Price: 3, Row: 0}}, Sizes: []int64{1}, Nowhere: 100, Cards: 1},
		},
		Seats: []Seat{{Kind: 0, At: 0, Group: -1, Account: -1}, {Kind: 0, At: 0, Group: -1, Account: -1}, {Kind: 1, At: Nowhere, Group: 0, Account: -1}, {Kind: 1, At: Nowhere, Group: 0, Account: -1}},
	}
	if got := Solve(p, 1_000_000); !slices.Equal(got.At, []int32{1, 1, 0, 0}) {
		t.Errorf("%v", got.At)
	}
	p.Rows[1].Free[0] = 1 // one of the group would be alone, or take another's place
	p.Seats[0].Stays, p.Seats[1].Stays = true, true
	if got := Solve(p, 1_000_000); got.Cheaper {
		t.Errorf("%v", got.At)
	}
}
