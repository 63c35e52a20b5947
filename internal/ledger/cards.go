package ledger

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Cards is how many cards are behind a flavor, a last incomplete one counted;
// 0 for a flavor that sells whole cards, whose units are the cards.
func Cards(f *v1alpha1.Flavor) int64 {
	per := UnitsPerCard(f)
	if per <= 1 {
		return 0
	}
	units := scale(f.Spec.Capacity[v1alpha1.GPU], f.Spec.Overcommit, v1alpha1.GPU).Int64()
	return (units + per - 1) / per
}

// UnitsPerCard is how many units one card of a flavor makes, at least 1.
func UnitsPerCard(f *v1alpha1.Flavor) int64 {
	if g := f.Spec.GPU; g != nil && g.UnitsPerGPU > 1 {
		return int64(g.UnitsPerGPU)
	}
	return 1
}

// Overfull is a card of a flavor on which contracts together have more units
// than it makes and of which c has some; ok is false where there is none. A
// share is promised on one card, which the flavor's sum of units does not show.
func Overfull(f Member, c *v1alpha1.Contract) (card int32, ok bool) {
	if c.Spec.GPUs == nil || len(c.Spec.GPUs.Cards) == 0 {
		return 0, false
	}
	return UnitsOf(f).Overfull(c)
}

// CardUnits are the units that contracts have on each card of a flavor: who asks
// of many contracts of one flavor adds them up once.
type CardUnits struct {
	per, cards int64
	sum        map[int32]int64
}

// UnitsOf adds up what a flavor's contracts have on its cards.
func UnitsOf(f Member) CardUnits {
	u := CardUnits{UnitsPerCard(f.Flavor), Cards(f.Flavor), map[int32]int64{}}
	for _, h := range f.Held {
		if h.Spec.GPUs != nil {
			for _, n := range h.Spec.GPUs.Cards {
				u.sum[n.Card] += n.Units
			}
		}
	}
	return u
}

// Overfull is a card of which c has units and on which there are more than it
// makes; ok is false where there is none.
func (u CardUnits) Overfull(c *v1alpha1.Contract) (card int32, ok bool) {
	if c.Spec.GPUs == nil {
		return 0, false
	}
	for _, n := range c.Spec.GPUs.Cards {
		if n.Card < 0 || int64(n.Card) >= u.cards || u.sum[n.Card] > u.per {
			return n.Card, true
		}
	}
	return 0, false
}
