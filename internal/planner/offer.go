package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// offer is one flavor during a round: what it is, what of it is free now, and
// what the round has already given away.
type offer struct {
	// capacity × overcommit, and what is free of it: capacity − used − held. What
	// a new shape looks at of every candidate stands together, here; the figures
	// themselves lie in a row, offer after offer (readOffers).
	capacity, free quantity.Vector
	tariff         *tariff
	// deck is its cards, where it sells parts of them; else nil.
	deck     *deck
	unitsPer int64
	min, step,
	// growth is the part of capacity and free that an autoscaler would have to
	// add; nil for none.
	growth quantity.Vector

	*model.Offer
	ref, provider, name string
	index               int
	// blocked is the requirement that fails for everybody, "" when it sells; sort
	// the flavor's type; kind numbers what its cards are, offers of one kind have
	// equal cards.
	blocked, sort string
	kind          int
	cluster       *v1alpha1.Cluster
	// move is when contracts must have left by (drain), zero when they may stay.
	move v1alpha1.Time

	scalable v1alpha1.Resources
	// held by contracts, and taken by the other flavors of its pool, as a
	// decision records them.
	held, pool quantity.Vector
	// risky are resources of which overcommit.maxRisk sells less than the ratio.
	risky map[int]bool
	// mates are the other flavors of its pool.
	mates []*offer

	gpuName string
	view    *v1alpha1.Flavor

	// contracts that hold capacity of it, in the ledger.
	contracts []*v1alpha1.Contract
}

// offerKey identifies a flavor.
type offerKey struct{ provider, name string }

// readOffers makes the round's offers, by reference.
func (r *round) readOffers() {
	r.offers = make([]*offer, 0, len(r.w.Offers))
	r.places, r.traits = make([]int32, len(r.w.Offers)), newTraits(len(r.w.Offers))
	r.strained, r.unheard, r.decks = map[int32]bool{}, map[int32]bool{}, map[int32]bool{}
	block := make([]offer, len(r.w.Offers))
	for i := range r.w.Offers {
		o := &block[i]
		o.Offer, o.index = r.heard(r.w.Offers[i]), i
		f := o.Flavor
		o.provider, o.name, o.ref = f.Metadata.Namespace, f.Metadata.Name, f.Ref()
		r.offers = append(r.offers, o)
	}
	slices.SortFunc(r.offers, compareOffers)
	r.byKey = make(map[offerKey]*offer, len(r.offers))
	pools, rows := map[offerKey][]*offer{}, make(quantity.Vector, 2*quantity.RowLength*len(r.offers))
	for i, o := range r.offers {
		r.places[o.index] = int32(i)
		o.index = i
		k := 2 * quantity.RowLength * i
		o.capacity, o.free = rows[k:k:k+quantity.RowLength], rows[k+quantity.RowLength:k+quantity.RowLength:k+2*quantity.RowLength]
		r.byKey[offerKey{o.provider, o.name}] = o
		if p := o.Flavor.Spec.Pool; p != "" {
			k := offerKey{o.provider, p}
			pools[k] = append(pools[k], o)
		}
	}
	for c := range r.w.Ledger.Contracts() {
		if !c.Status.Phase.Held() {
			continue
		}
		if o := r.byKey[offerKey{c.Spec.Provider, c.Spec.Flavor}]; o != nil {
			o.contracts = append(o.contracts, c)
		}
	}
	for _, o := range r.offers {
		for _, m := range pools[offerKey{o.provider, o.Flavor.Spec.Pool}] {
			if m != o {
				o.mates = append(o.mates, m)
			}
		}
		r.windowed = r.windowed || o.Price != nil && len(o.Price.Windows) > 0
		r.describe(o)
		r.measure(o)
	}
	for _, o := range r.offers {
		r.assess(o)
	}
}

// heard is an offer as it counts: what is only not heard here is not lost.
func (r *round) heard(o *model.Offer) *model.Offer {
	if o.State != model.Silent && o.State != model.Lost || !r.w.Heard[o.Flavor.Metadata.Namespace] {
		return o
	}
	other := *o
	other.State = model.Elsewhere
	return &other
}

// describe fills in what of an offer only its report says.
func (r *round) describe(o *offer) {
	s := &o.Flavor.Spec
	o.cluster = r.w.Clusters[o.provider]
	o.sort, o.kind = typeOf(s.Type), r.kindOf(s)
	o.unitsPer, o.gpuName, o.min, o.step = 1, ledger.GPUResource(o.Flavor), nil, nil
	if s.GPU != nil && s.GPU.UnitsPerGPU > 1 {
		o.unitsPer = int64(s.GPU.UnitsPerGPU)
	}
	if s.Partition != nil {
		o.min, o.step = r.names.VectorOf(s.Partition.Min), r.names.VectorOf(s.Partition.Step)
	}
	o.capacity = r.names.VectorIn(o.capacity, ledger.Available(v1alpha1.OfferFigures{Capacity: s.Capacity, Overcommit: s.Overcommit}))
	o.growth, o.scalable = nil, nil
	o.blocked = r.blocked(o)
	r.traits.set(o)
	o.move = s.Drain
	if o.cluster != nil {
		o.move = earlier(o.move, o.cluster.Spec.Drain)
	}
	o.tariff, o.view = nil, nil
	delete(r.unheard, int32(o.index))
	if o.State != model.Fresh {
		r.unheard[int32(o.index)] = true
	}
}

// measure fills in an offer's figures, from what the ledger holds of it and of
// its mates.
func (r *round) measure(o *offer) {
	var members []ledger.Member
	if len(o.mates) > 0 {
		members = append(members, ledger.Member{Flavor: o.Flavor, Held: o.contracts})
		for _, m := range o.mates {
			members = append(members, ledger.Member{Flavor: m.Flavor, Held: m.contracts})
		}
	} else if o.Flavor.Spec.Pool != "" {
		members = []ledger.Member{{Flavor: o.Flavor, Held: o.contracts}}
	}
	fig := ledger.Figures(ledger.Member{Flavor: o.Flavor, Held: o.contracts}, members, "")
	o.free = r.names.VectorIn(o.free, ledger.Available(fig))
	o.held, o.pool = r.names.VectorOf(fig.Held), r.names.VectorOf(fig.Pool)
	for i, n := range o.held {
		// What is held of a resource that is not offered any more is overdrawn.
		if _, listed := o.Flavor.Spec.Capacity[r.names.Name(i)]; !listed && n > 0 && i != quantity.Pods && i != quantity.Storage {
			o.free = o.free.Set(i, -n)
		}
	}
	r.grow(o, fig)
	o.deck = nil
	r.deal(o)
	delete(r.decks, int32(o.index))
	if o.deck != nil {
		r.decks[int32(o.index)] = true
	}
}

// assess bounds what an offer sells by its risk, when it and its mates are
// measured, and notes whether it is strained.
func (r *round) assess(o *offer) {
	o.risky = nil
	r.boundRisk(o)
	o.free = o.free.Add(o.growth)
	delete(r.strained, int32(o.index))
	if o.overdrawn() >= 0 {
		r.strained[int32(o.index)] = true
	}
}

// cardKind is everything about an offer that gpuWish.fact looks at.
type cardKind struct {
	has bool
	gpu v1alpha1.FlavorGPU
}

func (r *round) kindOf(s *v1alpha1.FlavorSpec) int {
	var k cardKind
	if ledger.HasCards(s) {
		k = cardKind{true, *s.GPU}
	}
	n, ok := r.kinds[k]
	if !ok {
		n = len(r.kinds)
		r.kinds[k] = n
	}
	return n
}

// blocked is the requirement that an offer fails for every intent.
func (r *round) blocked(o *offer) string {
	switch {
	case o.cluster == nil || !o.cluster.HasRole("provider"):
		return ReqRole
	case o.State == model.Silent || o.State == model.Elsewhere:
		return ReqSilent
	case o.State == model.Lost:
		return ReqLost
	case o.State == model.Withdrawn:
		return ReqWithdrawn
	case o.Flavor.Spec.Cordon || o.cluster.Spec.Cordon:
		return ReqCordon
	case !o.Flavor.Spec.Drain.IsZero() || !o.cluster.Spec.Drain.IsZero():
		return ReqDrain
	case !r.outOfMarket(o.provider).IsZero():
		return ReqRefuses
	}
	return ""
}

// footprint is, as a Vector of its own, what a contract takes of an offer: the larger
// of what it was sold and what the provider reports under it. One that this round
// makes smaller takes what it had when the round began: its provider may hold that
// and not have said so yet. A contract that has ended, or none, takes what is still
// reported, unless another took over its slice.
func (r *round) footprint(o *offer, name string, c *v1alpha1.Contract) quantity.Vector {
	reported, lingers := o.Flavor.Spec.Held[name]
	if c != nil && !lingers && c.Spec.Slice != name {
		reported, lingers = o.Flavor.Spec.Held[c.Spec.Slice]
	}
	if c == nil || !c.Status.Phase.Held() {
		if !lingers || r.claimed[name] {
			return nil
		}
		return r.names.VectorOf(reported)
	}
	takes := offeredIn(r.names, c, o.Flavor)
	if began := r.before[name]; began != nil && began != c && !o.Static && began.Status.Phase.Held() && r.by(rulesSmallerLater) {
		takes = takes.Max(offeredIn(r.names, began, o.Flavor))
	}
	if lingers {
		takes = takes.Max(r.names.VectorOf(reported))
	}
	return takes
}

// take books delta more of an offer (less where negative) and marks everything
// that has less now.
func (r *round) take(o *offer, delta quantity.Vector) {
	zero := true
	for _, n := range delta {
		zero = zero && n == 0
	}
	if zero {
		return
	}
	o.free, o.held = o.free.Sub(delta), o.held.Add(delta)
	o.stir()
	r.touched = append(r.touched, int32(o.index))
	for _, m := range o.mates {
		for i := quantity.CPU; i <= quantity.Storage && i < len(delta); i++ {
			if delta[i] == 0 {
				continue
			}
			m.free = m.free.Set(i, m.free.At(i)-delta[i])
			m.pool = m.pool.Set(i, m.pool.At(i)+delta[i])
		}
		m.stir()
		r.touched = append(r.touched, int32(m.index))
	}
}

// overdrawn is a resource of which an offer holds more than it has, -1 for
// none. A flavor that shrank sells nothing until its excess is gone.
func (o *offer) overdrawn() int { return o.free.Deficit() }

// figures are an offer's figures as a decision records them.
func (r *round) figures(o *offer) v1alpha1.OfferFigures {
	s := &o.Flavor.Spec
	f := v1alpha1.OfferFigures{Capacity: s.Capacity, Used: s.Used, Overcommit: s.Overcommit, Held: r.names.Resources(o.held)}
	if o.growth != nil {
		f.ScalableTo = o.scalable
	}
	if s.Pool != "" {
		f.Pool = r.names.Resources(o.pool)
	}
	return f
}

// resolved is the flavor with the price and location that hold for it, as
// predicates see it.
func (o *offer) resolved() *v1alpha1.Flavor {
	if o.view == nil {
		f := *o.Flavor
		f.Spec.Price, f.Spec.Location = o.Price, o.Location
		o.view = &f
	}
	return o.view
}

// offeredIn are a contract's resources in its flavor's own names, numbered.
func offeredIn(n *quantity.Names, c *v1alpha1.Contract, f *v1alpha1.Flavor) quantity.Vector {
	gpu := ledger.SlicedAs(c, f)
	v := make(quantity.Vector, quantity.Extended, quantity.RowLength)
	for name, a := range c.Spec.Resources {
		i := quantity.GPU
		if name != gpu {
			i = n.Of(name)
		}
		v = v.Set(i, v1alpha1.AmountOf(v.At(i)).Add(a).Int64())
	}
	return v
}

// slicedFrom are v's named amounts as a slice of a flavor carries them, those of
// nothing left out.
func slicedFrom(n *quantity.Names, v quantity.Vector, f *v1alpha1.Flavor) v1alpha1.Resources {
	out := n.Resources(v)
	if name := ledger.GPUResource(f); v.At(quantity.GPU) != 0 && name != v1alpha1.GPU {
		delete(out, v1alpha1.GPU)
		out[name] = out[name].Add(v1alpha1.AmountOf(v[quantity.GPU]))
	}
	return out
}
