package batch

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// An account that is nearly used up, by what is more expensive in some places than in others, has
// seats without a place for want of that. Who takes a cheap place then matters, though all come to the
// same: with a place that costs less the account has some left for one more. In some turns
// the places of its seats therefore count several times.

// weighing is how many times more places of an account count, nil for none, and what of the
// cost is that.
type weighing struct {
	weights []quantity.Micro
	extra   quantity.Micro
}

// weigh has places of accounts that are scarce count so many times more, 0 for none, and
// reports whether there are such.
func (x *ruins) weigh(times quantity.Micro) bool {
	x.cost, x.extra, x.weights = x.cost-x.extra, 0, nil
	if times == 0 {
		return true
	}
	scarce := x.scarce()
	if scarce == nil {
		return false
	}
	x.weights = make([]quantity.Micro, len(scarce))
	for a := range scarce {
		if scarce[a] {
			x.weights[a] = times
		}
	}
	for i := range x.seats {
		s, k := &x.Seats[i], &x.Kinds[x.Seats[i].Kind]
		if at := x.seats[i].at; at >= 0 {
			x.extra += x.weight(s, k.Places[at].Price)
		}
		for _, part := range x.seats[i].parts() {
			x.extra += x.weight(s, k.Split.deal(part.Row).Prices[part.Units])
		}
	}
	x.cost += x.extra
	return true
}

// weight is what a seat's place, or part of one, of a price counts for in addition.
func (x *ruins) weight(s *Seat, price quantity.Micro) quantity.Micro {
	if x.weights == nil || s.Account < 0 {
		return 0
	}
	return x.weights[s.Account] * price
}

// scarce are the accounts that have seats without a place and of which the number that is nearest
// to its end is charged more in some places than in others; nil for none.
func (x *ruins) scarce() (scarce []bool) {
	for _, i := range x.idle {
		a := x.Seats[i].Account
		if a < 0 || !x.bounded[a] || scarce != nil && scarce[a] {
			continue
		}
		if k := &x.Kinds[x.Seats[i].Kind]; x.varies(k, x.nearest(a)) {
			if scarce == nil {
				scarce = make([]bool, len(x.left))
			}
			scarce[a] = true
		}
	}
	return scarce
}

// nearest is the number of an account of which the least part is left.
func (x *ruins) nearest(account int32) (number int) {
	spent := make([]int64, len(x.left[account]))
	for i := range x.seats {
		s := &x.Seats[i]
		if s.Account != account {
			continue
		}
		if k := &x.Kinds[s.Kind]; x.seats[i].at >= 0 {
			add(spent, x.charges(k, x.seats[i].at))
		}
		for _, part := range x.seats[i].parts() {
			add(spent, x.Kinds[s.Kind].Split.deal(part.Row).charges(part.Units, len(spent)))
		}
	}
	least := 2.0
	for n, left := range x.left[account] {
		if part := float64(max(left, 0)) / max(float64(left)+float64(spent[n]), 1); part < least {
			number, least = n, part
		}
	}
	return number
}

// varies reports whether one of a kind is charged differently from place to place.
func (x *ruins) varies(k *Kind, number int) bool {
	for at := range k.Places {
		if x.charges(k, int32(at))[number] != x.charges(k, 0)[number] { //nolint:gosec // their number
			return true
		}
	}
	return false
}

func add(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}
