package parts

import (
	"math/rand/v2"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// takes is Takes, by adding up the others one by one.
func takes(list []Room, i int, p Part, least int64) int64 {
	var others []int64
	for j := range list {
		if j != i {
			others = append(others, list[j].Units)
		}
	}
	reach := int64(0)
	for n := int64(0); n < p.After; n++ {
		best := -1
		for j, u := range others {
			if u >= 0 && (best < 0 || u > others[best]) {
				best = j
			}
		}
		if best < 0 {
			return 0
		}
		reach += others[best]
		others[best] = -1
	}
	units := min(list[i].Units, p.Rest-p.After*least)
	if reach < p.Rest-units || p.After == 0 && units < p.Rest {
		return 0
	}
	return units
}

func TestRooms_TakesLeavesTheRestWithinReach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	took := 0
	for range 20_000 {
		list := make([]Room, r.IntN(8))
		for i := range list {
			list[i] = Room{Offer: &inventory.Offer{}, Units: 1 + r.Int64N(6)}
		}
		p := Part{After: r.Int64N(6)}
		least := 1 + r.Int64N(2)
		p.Rest = (p.After+1)*least + r.Int64N(12)
		rooms := Of(list)
		reach, enough := rooms.Reach(p)
		for i := range rooms.List {
			got := int64(0)
			if enough {
				got = rooms.Takes(&rooms.List[i], p, least, reach)
			}
			want := takes(rooms.List, i, p, least)
			if got != want {
				t.Fatalf("%v, %+v, least %d: the %d. takes %d, want %d", list, p, least, i, got, want)
			}
			if got > 0 {
				took++
			}
		}
	}
	if took < 1000 {
		t.Errorf("only %d took a part", took)
	}
}

func TestSizes_ForgetsWhatChanged(t *testing.T) {
	a, b, c := &inventory.Offer{}, &inventory.Offer{}, &inventory.Offer{}
	a.PoolPeers = []*inventory.Offer{b}
	room, asked := map[*inventory.Offer]int64{a: 7, b: 100, c: 0}, 0
	s := NewSizes(1, 50, func(o *inventory.Offer, units int64) bool { asked++; return units <= room[o] })
	want := func(o *inventory.Offer, n int64) {
		t.Helper()
		if got := s.For(o); got != n {
			t.Errorf("got room for %d units, want %d", got, n)
		}
	}
	want(a, 7)
	want(b, 50)
	want(c, 1)
	before := asked
	want(a, 7)
	want(b, 50)
	if asked != before {
		t.Error("what is known is looked for again")
	}
	room[a], room[b], room[c] = 3, 4, 5
	s.Changed(a)
	want(a, 3)
	want(b, 4)
	want(c, 1)
}
