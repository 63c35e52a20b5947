package scarcity

import (
	"cmp"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

const (
	// share of what is held of a kind asks at the same time.
	share = 0.25
	// penalty of a replica without a place, in the most that one comes to.
	penalty = 10
	// fewest replicas that hold something: of less nothing is learnt.
	fewest = 5
	// mostKinds and mostPairs, of a kind and an offer, bound the work.
	mostKinds, mostPairs = 64, 60_000
	// mostCompared bounds the candidates that one place is chosen from.
	mostCompared = 64
	// certain bounds the rivals that are distinguished; more are counted in proportion.
	certain = 500.0
)

// Kind is a kind of request, and how many replicas of it hold something.
type Kind struct {
	Ask  *match.Ask
	Held float64
}

// Prices are what places are worth to others in one round; nil is nothing.
type Prices struct {
	inventory *inventory.Inventory
	premium   quantity.Micro // thousandths of a price that may be paid in addition
	kinds     []*kind
	// seen is how far into the list of touched offers it has looked.
	seen int
	// left is room for what an offer has left.
	left quantity.Vector
	// chosen is how often Choose took another place than the best.
	chosen int
}

// kind is a Kind in figures.
type kind struct {
	// sizes are what a replica takes of each offer, by index: nil where it may not sit.
	sizes []quantity.Vector
	// room is how many more fit on each offer, and on all.
	room []int
	all  int
	// lost is what it is expected to lose with the first n places, each of which counts for
	// scale.
	lost  []float64
	scale float64
}

// defaultPremium is Fleet.spec.scarcity where it is left open, less 1 and in thousandths.
const defaultPremium = 500

// Premium is how many thousandths of a price a fleet pays in addition for the sake of others.
func Premium(fleet *v1alpha1.FleetSpec) int64 {
	if d := fleet.Scarcity; d != nil {
		return d.Micro()/1000 - 1000
	}
	return defaultPremium
}

// Kinds is how many kinds may be told apart among so many offers.
func Kinds(offers int) int { return max(min(mostKinds, mostPairs/max(offers, 1)), 1) }

// New is what places of an inventory are worth to kinds, the first Kinds of them; premium is how
// many thousandths of a price may be paid in addition. It is nil where too few hold anything.
func New(in *inventory.Inventory, m *match.Matcher, kinds []Kind, premium int64) *Prices {
	held := 0.0
	for i := range kinds {
		held += kinds[i].Held
	}
	if held < fewest {
		return nil
	}
	p := &Prices{inventory: in, premium: quantity.Micro(min(premium, 1_000_000)), seen: in.Touches()}
	kinds = slices.Clone(kinds)
	slices.SortStableFunc(kinds, func(a, b Kind) int { return cmp.Compare(b.Held, a.Held) })
	kinds = kinds[:min(len(kinds), Kinds(len(in.Offers())))]
	some := 0.0
	for i := range kinds {
		some += kinds[i].Held
	}
	read := make([]measured, len(kinds))
	for i := range kinds {
		m.Trim()
		s := m.Class(kinds[i].Ask)
		m.Refresh(s)
		read[i] = measure(in, s)
		read[i].held = float64(kinds[i].Held * held / some)
	}
	for i := range read {
		if k := read[i].against(read); k != nil {
			p.kinds = append(p.kinds, k)
		}
	}
	if len(p.kinds) == 0 {
		return nil
	}
	return p
}

// measured is what is read of a kind's class.
type measured struct {
	kind  *kind
	held  float64
	fits  float64 // on how many offers
	size  float64 // in cards, else in cores
	most  quantity.Micro
	cards bool
	// grows: an autoscaler adds places for it.
	grows bool
}

// measure reads a class, which is up to date.
func measure(in *inventory.Inventory, s *match.Class) measured {
	k := &kind{sizes: make([]quantity.Vector, len(in.Offers())), room: make([]int, len(in.Offers()))}
	out := measured{kind: k}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" || c.Unasked || c.Vague {
			continue
		}
		out.grows = out.grows || c.Offer.Growth != nil
		k.sizes[c.Offer.Index] = c.Size
		k.look(c.Offer)
		out.fits++
		out.most = max(out.most, c.Quote.Current())
		out.cards = out.cards || c.MilliCards > 0
		out.size = max(out.size, float64(c.MilliCards))
	}
	if !out.cards {
		out.size = float64(s.Request.Need.At(quantity.CPU))
	}
	return out
}

// look counts again how many more fit on an offer.
func (k *kind) look(o *inventory.Offer) {
	n := o.Free().Times(k.sizes[o.Index], math.MaxInt32)
	k.all += n - k.room[o.Index]
	k.room[o.Index] = n
}

// against is the kind with what it loses; nil where it has nothing to lose.
func (x *measured) against(all []measured) *kind {
	if x.fits == 0 || x.grows || x.size <= 0 || x.most <= 0 {
		return nil
	}
	own, rivals := share*x.held, 0.0
	for i := range all {
		y := &all[i]
		if y.fits == 0 || y.cards != x.cards || y.size <= 0 {
			continue
		}
		both := 0.0
		for o, size := range y.kind.sizes {
			if size != nil && x.kind.sizes[o] != nil {
				both++
			}
		}
		if 2*both >= x.fits+y.fits-both {
			rivals += float64(share * y.held * (y.size / x.size))
		}
	}
	k := x.kind
	k.scale = max(rivals/certain, 1)
	each := float64(own / rivals * penalty * float64(min(x.most, most)))
	sum := 0.0
	k.lost = append(k.lost, 0)
	for _, p := range tails(rivals / k.scale) {
		sum += float64(p * each * k.scale)
		k.lost = append(k.lost, sum)
	}
	return k
}

// worth is what it is expected to lose with its first n places.
func (k *kind) worth(n int) float64 {
	return k.lost[min(int(float64(n)/k.scale), len(k.lost)-1)]
}

// most is counted of a price.
const most = 100_000_000 * 1_000_000

// tails are P(N > n) for n = 0, 1, …, while that is not next to nothing, N being distributed
// by Poisson with a mean of certain at the most.
func tails(mean float64) []float64 {
	const little = 1e-4
	n := int(mean+10*math.Sqrt(mean)) + 20
	part := make([]float64, n) // of P(N = 0), which may be less than a float can hold
	part[0] = 1
	all := 1.0
	for i := 1; i < n; i++ {
		part[i] = float64(part[i-1] * mean / float64(i))
		all += part[i]
	}
	var out []float64
	below := 0.0
	for i := range n {
		below += part[i]
		p := 1 - float64(below/all)
		if p < little {
			break
		}
		out = append(out, p)
	}
	return out
}

// For is p where a request goes by cost alone, else nothing.
func (p *Prices) For(w *match.Request) *Prices {
	if !w.Weights.ByCostAlone() {
		return nil
	}
	return p
}

// Told are a candidate's score and its terms as contracts and explanations have them, with a
// term for what it counts for in addition to its price.
func (p *Prices) Told(w *match.Request, c *match.Candidate) (score float64, terms map[string]float64) {
	score, terms = match.Round4(c.Score), w.Weights.Record(c)
	if extra, price := p.Extra(c), c.Quote.Current(); extra > 0 {
		// The score is 1 less a price in the most expensive one.
		less := match.Round4((1 - c.Score) * float64(extra) / float64(price))
		terms[Term] = -less
		score = match.Round4(c.Score - less)
	}
	return score, terms
}

// RunnersUp are the candidates that come next, as contracts have them.
func (p *Prices) RunnersUp(w *match.Request, next []*match.Candidate) []v1alpha1.RunnerUp {
	if len(next) == 0 {
		return nil
	}
	out := make([]v1alpha1.RunnerUp, 0, len(next))
	for _, c := range next {
		score, _ := p.Told(w, c)
		out = append(out, v1alpha1.RunnerUp{Flavor: c.Offer.Ref, Score: score, Hourly: c.Quote.Current().Decimal()})
	}
	return out
}

// Term is the name of what a place counts for in addition to its price.
const Term = "scarcity"

// Extra is what a place counts for in addition to its price, an hour.
func (p *Prices) Extra(c *match.Candidate) quantity.Micro {
	if p == nil {
		return 0
	}
	p.follow()
	sum, at := 0.0, c.Offer.Index
	p.left = append(p.left[:0], c.Offer.Free()...).Sub(c.Size)
	for _, k := range p.kinds {
		if had := k.room[at]; had > 0 {
			gone := had - p.left.Times(k.sizes[at], had)
			sum += k.worth(k.all) - k.worth(k.all-gone)
		}
	}
	return min(quantity.Micro(min(sum, most)), p.paid(c.Quote.Current()))
}

// paid is the most that may be paid in addition to a price. The product of both may be more
// than a Micro can hold, so that the price is multiplied in two parts.
func (p *Prices) paid(price quantity.Micro) quantity.Micro {
	price = min(price, most)
	return price/1000*p.premium + price%1000*p.premium/1000
}

// follow looks again at what was taken of offers since it last did.
func (p *Prices) follow() {
	touched := p.inventory.Touched(p.seen)
	p.seen += len(touched)
	for _, i := range touched {
		o := p.inventory.Offers()[i]
		for _, k := range p.kinds {
			if k.sizes[i] != nil {
				k.look(o)
			}
		}
	}
}

// Choose puts first, of the places of a class that are admitted, the one that costs least with
// what it counts for in addition to its price; the best by price and those that come next
// follow as they were. Only those are compared that are as good but for their price, and no
// more than mostCompared in addition to these.
func (p *Prices) Choose(s *match.Class, admits func(*match.Candidate) bool, best *match.Candidate, next []*match.Candidate) (*match.Candidate, []*match.Candidate) {
	if p == nil || best == nil || len(next) == 0 {
		return best, next
	}
	extra := p.Extra(best)
	if extra == 0 {
		return best, next // who costs as much or more is no better
	}
	chosen, least := best, best.Quote.Current()+extra
	// compare reports whether the next by price may still be better.
	compare := func(c *match.Candidate) bool {
		if c.Unasked != best.Unasked || c.Scales != best.Scales || c.Vague || c.Quote.Current() >= least {
			return false
		}
		if all := c.Quote.Current() + p.Extra(c); all < least {
			chosen, least = c, all
		}
		return true
	}
	more := true
	for i := 0; more && i < len(next); i++ {
		more = compare(next[i])
	}
	if more && len(next) == match.MaxNext {
		looked := 0
		s.Walk(func(c *match.Candidate) bool {
			looked++
			return looked <= mostCompared && (!admits(c) || compare(c))
		})
	}
	if chosen == best {
		return best, next
	}
	p.chosen++
	at := slices.Index(next, chosen)
	if at < 0 {
		at = len(next) - 1 // the last makes room
	}
	copy(next[1:at+1], next[:at])
	next[0] = best
	return chosen, next
}

// Chosen is how often Choose took another place than the best. Who finds no place after that
// looks again without: others keep nobody out of what fits.
func (p *Prices) Chosen() int {
	if p == nil {
		return 0
	}
	return p.chosen
}
