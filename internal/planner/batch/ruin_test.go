package batch

import (
	"slices"
	"testing"
)

// Who has no place joins a ruin only where it could sit on a row that was emptied, and rows
// of all domains that a group needs are emptied for it, some time.
func TestIdleSeatsJoinWhereTheyCouldSit(t *testing.T) {
	alone := Seat{At: Nowhere, Group: Nowhere, Shares: Nowhere, Account: Nowhere, Rule: Nowhere}
	p := &Problem{Pooled: []bool{false}}
	const rows = 12
	for k := range int32(rows) { // one of each kind sits, and five more of it do not fit
		p.Rows = append(p.Rows, Row{Free: []int64{0}})
		p.Kinds = append(p.Kinds, Kind{Places: []Place{{Price: 1, Row: k}}, Sizes: []int64{1}, Nowhere: 10, Cards: 1})
		for n := range 6 {
			s := alone
			s.Kind = k
			if n == 0 {
				s.At = 0
			}
			p.Seats = append(p.Seats, s)
		}
	}
	group := Kind{Nowhere: 10, Cards: 1}
	for r := range int32(4) {
		group.Places, group.Sizes = append(group.Places, Place{Price: 2, Row: r}), append(group.Sizes, 1)
	}
	p.Kinds = append(p.Kinds, group)
	for range 4 {
		s := alone
		s.Kind, s.Group = rows, 0
		p.Seats = append(p.Seats, s)
	}
	looks := 1_000_000
	ranked, parts, _ := p.shadowPrices(&looks)
	x := p.begin(ranked, parts, looks)
	x.mostOut = mostRuined
	most := 0
	for range 2_000 {
		x.ruin()
		for n, i := range x.out {
			if n > 0 && p.Seats[i].Group < 0 && x.was[n].at == Nowhere && !slices.Contains(x.emptied, p.Seats[i].Kind) {
				t.Fatalf("seat %d of row %d joined a ruin of rows %v", i, p.Seats[i].Kind, x.emptied)
			}
		}
		if slices.Contains(x.out, int32(len(p.Seats)-1)) { //nolint:gosec // their number
			among := 0
			for r := range int32(4) {
				if slices.Contains(x.emptied, r) {
					among++
				}
			}
			most = max(most, among)
		}
		x.restore()
	}
	if most < 4 {
		t.Errorf("at most %d of the 4 rows that the group needs were emptied with it", most)
	}
}
