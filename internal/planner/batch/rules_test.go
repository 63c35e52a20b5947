package batch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// drawnDomains are two kinds of domain; a row may be in none of one.
func drawnDomains(t *rapid.T, rows int) [][]int32 {
	out := make([][]int32, 2)
	for kind := range out {
		for range rows {
			out[kind] = append(out[kind], int32(rapid.IntRange(-1, 2).Draw(t, "domain")))
		}
	}
	return out
}

// drawnRule adds a rule for those of a group, or none, and says which domain they share.
func (p *Problem) drawnRule(t *rapid.T, group int32) (shares, rule int32) {
	shares = Nowhere
	if group >= 0 {
		shares = int32(rapid.IntRange(-1, 1).Draw(t, "shares"))
	}
	if group < 0 || rapid.Bool().Draw(t, "no rule") {
		return shares, Nowhere
	}
	r := Rule{Most: quantity.Micro(rapid.IntRange(-1, 60).Draw(t, "rule's most")), By: Nowhere}
	if rapid.Bool().Draw(t, "spread") {
		r.Spread = append(r.Spread, Spread{
			Domains: int32(rapid.IntRange(0, 1).Draw(t, "by")), Skew: int32(rapid.IntRange(1, 2).Draw(t, "skew")), Least: int32(rapid.IntRange(0, 2).Draw(t, "least")),
			Of: []int32{0, 1, 2},
		})
	}
	if rapid.Bool().Draw(t, "apart") {
		r.By = int32(rapid.IntRange(0, 1).Draw(t, "apart by"))
		r.Barred = map[int32]bool{int32(rapid.IntRange(0, 5).Draw(t, "barred")): true}
		for other := range p.Rules {
			if p.Rules[other].By == r.By {
				r.Apart = append(r.Apart, int32(other))
				p.Rules[other].Apart = append(p.Rules[other].Apart, int32(len(p.Rules)))
			}
		}
	}
	p.Rules = append(p.Rules, r)
	return shares, int32(len(p.Rules) - 1)
}

// judgeRules returns which rule an answer breaks, and whether a group shares no domain.
func (p *Problem) judgeRules(at []int32) string {
	spent, rows, groups := make([]quantity.Micro, len(p.Rules)), make([][]int32, len(p.Rules)), map[int32]int32{}
	for i := range p.Seats {
		s := &p.Seats[i]
		if at[i] < 0 {
			continue
		}
		pl := &p.Kinds[s.Kind].Places[at[i]]
		if s.Group >= 0 && s.Shares >= 0 {
			d := p.Domains[s.Shares][pl.Row]
			if was, known := groups[s.Group]; d < 0 || known && was != d {
				return "a group shares no domain"
			}
			groups[s.Group] = d
		}
		if s.Rule >= 0 {
			spent[s.Rule] += pl.Most
			rows[s.Rule] = append(rows[s.Rule], pl.Row)
		}
	}
	for r := range p.Rules {
		rule := &p.Rules[r]
		if rule.Most >= 0 && spent[r] > rule.Most {
			return "a rule's seats cost too much"
		}
		for _, sp := range rule.Spread {
			in := [3]int32{}
			for _, row := range rows[r] {
				if p.Domains[sp.Domains][row] < 0 {
					return "a seat is in no domain"
				}
				in[p.Domains[sp.Domains][row]]++
			}
			used := int32(0)
			for _, n := range in {
				used += min(n, 1)
			}
			if slices.Max(in[:])-slices.Min(in[:]) > sp.Skew || used < min(sp.Least, int32(len(rows[r]))) {
				return "seats are not spread"
			}
		}
		for _, row := range rows[r] {
			if rule.By < 0 || p.Domains[rule.By][row] < 0 {
				continue
			}
			if rule.Barred[p.Domains[rule.By][row]] {
				return "a seat is where none may be"
			}
			for _, other := range rule.Apart {
				if slices.ContainsFunc(rows[other], func(o int32) bool { return p.Domains[rule.By][o] == p.Domains[rule.By][row] }) {
					return "seats are not apart"
				}
			}
		}
	}
	return ""
}

// A group goes to the domain where all of it costs the least, and not to that of the
// cheapest place.
func TestGroupsShareTheCheapestDomain(t *testing.T) {
	seat := Seat{At: Nowhere, Group: 0, Shares: 0, Account: Nowhere, Rule: Nowhere}
	p := &Problem{
		Pooled: []bool{false},
		Rows:   []Row{{Free: []int64{1}}, {Free: []int64{1}}, {Free: []int64{2}}},
		Kinds: []Kind{{
			Places: []Place{{Price: 1, Row: 0}, {Price: 4, Row: 2}, {Price: 20, Row: 1}}, Sizes: []int64{1, 1, 1}, Nowhere: 100, Cards: 1,
		}},
		Seats:   []Seat{seat, seat},
		Domains: [][]int32{{0, 0, 1}},
	}
	if got := Solve(p, 1_000_000); !slices.Equal(got.At, []int32{1, 1}) {
		t.Errorf("got places %v, want both at the second", got.At)
	}
}

// A budget for both keeps one from the place that only the other can pay for.
func TestRulesBoundWhatTheirSeatsCost(t *testing.T) {
	seat := Seat{At: Nowhere, Group: 0, Shares: Nowhere, Account: Nowhere, Rule: 0}
	p := &Problem{
		Pooled: []bool{false},
		Rows:   []Row{{Free: []int64{1}}, {Free: []int64{2}}},
		Kinds: []Kind{{
			Places: []Place{{Price: 3, Most: 9, Row: 0}, {Price: 4, Most: 4, Row: 1}}, Sizes: []int64{1, 1}, Nowhere: 100, Cards: 1,
		}},
		Seats: []Seat{seat, seat},
		Rules: []Rule{{Most: 8, By: Nowhere}},
	}
	if got := Solve(p, 1_000_000); !slices.Equal(got.At, []int32{1, 1}) {
		t.Errorf("got places %v, want both at the second: 9 and 4 exceed 8", got.At)
	}
}
