package ledger

import (
	"strconv"

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

// CardsOfNode is how many cards a node with so many units has, a last incomplete one
// counted.
func CardsOfNode(f *v1alpha1.Flavor, units v1alpha1.Amount) int64 {
	per := UnitsPerCard(f)
	return (max(units.Int64(), 0) + per - 1) / per
}

// CardUnits are the units that contracts have on each card of a flavor: who asks
// of many contracts of one flavor adds them up once.
type CardUnits struct {
	per, cards int64
	// onNode is how many cards each node has that the flavor tells.
	onNode map[string]int64
	sum    map[card]int64
}

// card is one card: of a flavor, or of one of its nodes.
type card struct {
	node   string
	number int32
}

// UnitsOf adds up what a flavor's contracts have on its cards.
func UnitsOf(f Member) CardUnits {
	u := CardUnits{UnitsPerCard(f.Flavor), Cards(f.Flavor), map[string]int64{}, map[card]int64{}}
	if u.cards > 0 {
		for _, n := range NodesOf(f.Flavor) {
			u.onNode[n.Name] = CardsOfNode(f.Flavor, n.Shape[v1alpha1.GPU])
		}
	}
	for _, h := range f.Held {
		if h.Spec.GPUs != nil {
			for _, n := range h.Spec.GPUs.Cards {
				u.sum[card{n.Node, n.Card}] += n.Units
			}
		}
	}
	return u
}

// Overfull is a card of which c has units and on which there are more than it
// makes, as "3" or "3 of node n…"; ok is false where there is none. A share is promised on
// one card, which the flavor's sum of units does not show. A node that the flavor no longer
// tells is nobody else's.
func (u CardUnits) Overfull(c *v1alpha1.Contract) (name string, ok bool) {
	if c.Spec.GPUs == nil {
		return "", false
	}
	for _, n := range c.Spec.GPUs.Cards {
		name, cards := strconv.Itoa(int(n.Card)), u.cards
		if n.Node != "" {
			told, known := u.onNode[n.Node]
			if !known {
				continue
			}
			name, cards = name+" of node "+n.Node, told
		}
		if n.Card < 0 || int64(n.Card) >= cards || u.sum[card{n.Node, n.Card}] > u.per {
			return name, true
		}
	}
	return "", false
}
