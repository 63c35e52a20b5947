package inventory

import (
	"maps"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// keyMaxRisk among a flavor's overcommit ratios is the accepted probability of
// simultaneous use.
const keyMaxRisk = "maxRisk"

// boundRisk sells no more of an overcommitted resource than leaves the
// probability that all contracts together use more than there is at or below
// overcommit.maxRisk. It only ever lowers what capacity × overcommit allows.
//
// What contract k uses, X_k, lies between 0 and what it holds, h_k; its mean m_k
// is what the provider reports under spec.usage, and h_k where it reports
// nothing. With C the capacity, U the provider's own use and independent X_k,
// Hoeffding's inequality (W. Hoeffding, Probability inequalities for sums of
// bounded random variables, JASA 58, 1963, theorem 2) gives
//
//	P(Σ X_k > C − U)  ≤  exp(−2·t² / Σ h_k²),   t = C − U − Σ m_k > 0
//
// so that a further contract of size x, expected to use as large a part ρ of
// itself as the others do of theirs, may be sold while
//
//	t − ρ·x  ≥  √(½·ln(1/maxRisk)·(Σ h_k² + x²))
//
// The bound needs no variance and holds whatever the distributions; it is wide
// where one contract is most of a flavor. Contracts that all rise together (one
// team's training in the same hour) are not independent, and no figure of this
// kind covers that: maxRisk is then too hopeful. A maxRisk of 0 sells nothing
// beyond the capacity; without maxRisk the ratio alone holds. Two contracts of
// one round are sold against the sum of their sizes, which is on the safe side
// because (x+y)² ≥ x² + y².
func (in *Inventory) boundRisk(o *Offer) {
	ratios := o.Flavor.Spec.Overcommit
	limit, set := ratios[keyMaxRisk]
	if !set {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		if name == keyMaxRisk || ratios[name].Cmp(v1alpha1.DecimalFromInt(1)) <= 0 {
			continue
		}
		i := in.facts.Names.Of(name)
		if left := in.loadOf(o, i).left(limit.Float(), o.free.At(i)); left < o.free.At(i) {
			o.free = o.free.Set(i, left)
			if o.risky == nil {
				o.risky = map[int]bool{}
			}
			o.risky[i] = true
		}
	}
}

// load is what is known of the use of one resource of an offer's nodes.
type load struct {
	capacity, used int64
	// held and its squares, mean use, and the part of both that is reported.
	held, mean                 int64
	squares                    float64
	reportedHeld, reportedMean int64
}

// loadOf adds up an offer's contracts, and for resources that a pool shares
// those of its other flavors.
func (in *Inventory) loadOf(o *Offer, i int) load {
	l := load{}
	list := []*Offer{o}
	if i <= quantity.Storage {
		list = append(list, o.PoolPeers...)
	}
	for k, m := range list {
		s := &m.Flavor.Spec
		have := in.facts.Names.VectorOf(s.Capacity).At(i)
		if k == 0 || have > 0 && have < l.capacity {
			l.capacity = have
		}
		l.used = max(l.used, in.facts.Names.VectorOf(s.Used).At(i))
		rest := m.held.At(i)
		for _, c := range m.Contracts {
			n := in.Footprint(m, c.Metadata.Name, c).At(i)
			rest -= n
			l.add(n, in.usageOf(m, c, i))
		}
		l.add(max(rest, 0), -1)
	}
	return l
}

// usageOf is what a contract's pods use on average as its provider reports it,
// −1 when it does not.
func (in *Inventory) usageOf(o *Offer, c *v1alpha1.Contract, i int) int64 {
	for _, name := range [...]string{c.Metadata.Name, c.Spec.Slice} {
		if n, reported := o.Flavor.Spec.Usage[name][in.facts.Names.Name(i)]; reported {
			return n.Int64()
		}
	}
	return -1
}

func (l *load) add(held, usage int64) {
	if held <= 0 {
		return
	}
	mean := held
	if usage >= 0 {
		mean = min(usage, held)
		l.reportedHeld, l.reportedMean = l.reportedHeld+held, l.reportedMean+mean
	}
	l.held, l.mean = l.held+held, l.mean+mean
	l.squares += float64(float64(held) * float64(held))
}

// left is how much more may be sold, at most: by whole units, so that only the
// probability is a float.
func (l load) left(maxRisk float64, most int64) int64 {
	within := max(l.capacity-l.used-l.held, 0) // no more than there is: no risk
	if most <= within {
		return most
	}
	if maxRisk <= 0 {
		return within
	}
	if maxRisk >= 1 {
		return most
	}
	lo, hi := within, most // lo is fine, above hi nobody asks
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if l.bears(mid, maxRisk) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// bears reports whether the bound holds with x more. Conversions keep products
// from being fused with sums, which would differ between processors.
func (l load) bears(x int64, maxRisk float64) bool {
	part := 1.0
	if l.reportedHeld > 0 {
		part = float64(l.reportedMean) / float64(l.reportedHeld)
	}
	t := float64(l.capacity-l.used-l.mean) - float64(part*float64(x))
	if t <= 0 {
		return false
	}
	spread := l.squares + float64(float64(x)*float64(x))
	return float64(2*t)*t >= float64(-math.Log(maxRisk)*spread)
}
