package domain

import (
	"cmp"

	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Room is what a domain comes to for replicas, counted offer by offer.
type Room struct {
	Domain         string
	Room           int
	Warm           int // of them by what is kept warm, which is quick
	unasked, grown int // of them next to accelerators, and on what has to grow
	vague          bool
	score          float64
	price          int64
}

// Add counts n replicas on a candidate.
func (d *Room) Add(c *match.Candidate, n int) {
	d.Room += n
	if c.Unasked {
		d.unasked += n
	}
	if c.Offer.Growth != nil {
		exist := 0
		for sum := c.Size.Clone(); exist < n && !c.Offer.Scales(sum); exist++ {
			sum = sum.Add(c.Size)
		}
		d.grown += n - exist
	}
	d.vague = d.vague || c.Vague
	d.score += float64(c.Score * float64(n)) // not fused with the sum
	d.price += int64(c.Quote.Most()) * int64(n)
}

// Compare puts the domain with more room first, of those with as much the better.
func Compare(a, b *Room, thrifty bool) int {
	vague := func(d *Room) int {
		if d.vague {
			return 1
		}
		return 0
	}
	money := cmp.Or(cmp.Compare(vague(a), vague(b)), cmp.Compare(a.price, b.price))
	score := cmp.Compare(b.score, a.score)
	if thrifty {
		score, money = money, score
	}
	return cmp.Or(cmp.Compare(b.Room, a.Room), cmp.Compare(b.Warm, a.Warm), cmp.Compare(a.unasked, b.unasked), cmp.Compare(a.grown, b.grown), score, money, cmp.Compare(a.Domain, b.Domain))
}
