package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Key identifies a flavor.
type Key struct{ Provider, Name string }

// Facts are what a round knows of offers in addition to what they report.
type Facts struct {
	// Names number the resources, for as long as the Inventory lives.
	Names    *quantity.Names
	Clusters map[string]*v1alpha1.Cluster
	// Blocked is the requirement that an offer fails for everybody, "" when it sells.
	Blocked func(*Offer) string
	// Nodes: what offers tell of their nodes counts (draft.RulesNodes).
	Nodes bool
	// Places: labels of single nodes count (draft.RulesRemapped).
	Places bool
	// Parts: nodes of offers that sell parts of cards count too (draft.RulesPartsOnNodes).
	Parts bool
	// Again: what lies on cards nobody knows is dealt out again whenever something changes
	// (draft.RulesAgainAll).
	Again bool
}

// Inventory is all offers.
type Inventory struct {
	facts  Facts
	offers []*Offer
	byKey  map[Key]*Offer
	kinds  map[cardKind]int
	// places are where in offers each of those handed in is.
	places []int32
	// strained are those that had less than nothing left when they were measured,
	// unheard those that are not Fresh; withCards counts those that sell parts of
	// cards. windowed: the price of some depends on the hour.
	strained, unheard map[int32]bool
	withCards         int
	windowed          bool
	// touched are the offers that were taken of or measured, in order of time;
	// those from began on were by this round.
	touched []int32
	began   int
	// altered are the offers that were described otherwise, in order of time;
	// measure those whose figures are to be made again.
	altered []Alteration
	measure map[int32]bool
	// described counts the alterations of more than use, forgotten ones too.
	described uint64
}

// Alteration is an offer that reports something else than before.
type Alteration struct {
	// Offer by its Index.
	Offer int32
	// UseOnly: only what is used or held of it is another.
	UseOnly bool
}

// New reads offers, with what contracts hold of them. Neither may be changed after
// that.
func New(facts Facts, offers []*model.Offer, contracts iter.Seq[*v1alpha1.Contract]) *Inventory {
	in := &Inventory{
		facts: facts, offers: make([]*Offer, 0, len(offers)), byKey: make(map[Key]*Offer, len(offers)), kinds: map[cardKind]int{},
		places: make([]int32, len(offers)), strained: map[int32]bool{}, unheard: map[int32]bool{}, measure: map[int32]bool{},
	}
	block := make([]Offer, len(offers))
	for i := range offers {
		o := &block[i]
		o.Offer, o.Index = offers[i], i
		f := o.Flavor
		o.Provider, o.Name, o.Ref = f.Metadata.Namespace, f.Metadata.Name, f.Ref()
		in.offers = append(in.offers, o)
	}
	slices.SortFunc(in.offers, Compare)
	pools, rows := map[Key][]*Offer{}, make(quantity.Vector, 2*quantity.RowLength*len(in.offers))
	for i, o := range in.offers {
		in.places[o.Index] = int32(i) //nolint:gosec // their number
		o.Index = i
		k := 2 * quantity.RowLength * i
		o.Capacity, o.free = rows[k:k:k+quantity.RowLength], rows[k+quantity.RowLength:k+quantity.RowLength:k+2*quantity.RowLength]
		in.byKey[Key{o.Provider, o.Name}] = o
		if p := o.Flavor.Spec.Pool; p != "" {
			k := Key{o.Provider, p}
			pools[k] = append(pools[k], o)
		}
	}
	for c := range contracts {
		if !c.Status.Phase.Held() {
			continue
		}
		if o := in.Of(c); o != nil {
			o.Contracts = append(o.Contracts, c)
		}
	}
	for _, o := range in.offers {
		for _, m := range pools[Key{o.Provider, o.Flavor.Spec.Pool}] {
			if m != o {
				o.PoolPeers = append(o.PoolPeers, m)
			}
		}
		in.describe(o)
		in.figure(o)
	}
	for _, o := range in.offers {
		in.assess(o)
	}
	return in
}

// Offers are all of them, by provider and name.
func (in *Inventory) Offers() []*Offer { return in.offers }

// Find is the offer of a name, nil for none.
func (in *Inventory) Find(provider, name string) *Offer { return in.byKey[Key{provider, name}] }

// Of is the offer that a contract is of, nil for one that is no more.
func (in *Inventory) Of(c *v1alpha1.Contract) *Offer {
	return in.byKey[Key{c.Spec.Provider, c.Spec.Flavor}]
}

// By are the offers of a provider.
func (in *Inventory) By(provider string) []*Offer {
	at, _ := slices.BinarySearchFunc(in.offers, provider, func(o *Offer, name string) int { return strings.Compare(o.Provider, name) })
	end := at
	for end < len(in.offers) && in.offers[end].Provider == provider {
		end++
	}
	return in.offers[at:end]
}

// Unheard are the offers that are not Fresh.
func (in *Inventory) Unheard() []*Offer { return in.list(slices.Sorted(maps.Keys(in.unheard))) }

// Suspects are the offers of which more may be held than there is: those that were so
// when they were measured, and those that were touched since.
func (in *Inventory) Suspects() []*Offer {
	looked := slices.Collect(maps.Keys(in.strained))
	looked = append(looked, in.touched[in.began:]...)
	slices.Sort(looked)
	return in.list(slices.Compact(looked))
}

func (in *Inventory) list(places []int32) []*Offer {
	out := make([]*Offer, len(places))
	for k, i := range places {
		out[k] = in.offers[i]
	}
	return out
}

// SellsPartsOfCards reports whether any offer does.
func (in *Inventory) SellsPartsOfCards() bool { return in.withCards > 0 }

// Windowed reports whether the price of some offer depended on the hour.
func (in *Inventory) Windowed() bool { return in.windowed }

// Touches is how often offers were touched: a number that grows with each.
func (in *Inventory) Touches() int { return len(in.touched) }

// Touched are the offers, by Index, that were taken of or measured after the first
// since touches; some several times. It is valid until the next.
func (in *Inventory) Touched(since int) []int32 { return in.touched[since:] }

// Alterations is how many there were.
func (in *Inventory) Alterations() int { return len(in.altered) }

// Altered are the alterations after the first since.
func (in *Inventory) Altered(since int) []Alteration { return in.altered[since:] }

// Described grows whenever an offer is described otherwise in more than what is used or
// held of it.
func (in *Inventory) Described() uint64 { return in.described }

// ShortenTouched keeps the list of what was touched to at most as many as most, as
// far as this round did not touch more: what the rounds before touched is then
// forgotten. It returns how many that were. After that those who had seen less have
// to begin again, and the others to look from the first on.
func (in *Inventory) ShortenTouched(most int) (forgotten int, shortened bool) {
	if len(in.touched) <= most {
		return 0, false
	}
	own := slices.Clone(in.touched[in.began:])
	slices.Sort(own)
	forgotten = in.began
	in.touched, in.began = slices.Compact(own), 0
	return forgotten, true
}

// ForgetAltered forgets all alterations: those who have seen them look from the first
// on.
func (in *Inventory) ForgetAltered() { in.altered = nil }

// Begin begins the next round: what it knows may be something else.
func (in *Inventory) Begin(facts Facts) { in.facts = facts }

// Handed is the offer that was handed in as the i-th.
func (in *Inventory) Handed(i int) *Offer { return in.offers[in.places[i]] }

// Describe takes over what is known of an offer: next is what it reports, useOnly
// that only what is used or held of it is another. It is to be measured.
func (in *Inventory) Describe(o *Offer, next *model.Offer, useOnly bool) {
	o.Offer = next
	in.describe(o)
	in.altered = append(in.altered, Alteration{int32(o.Index), useOnly}) //nolint:gosec // their number
	if !useOnly {
		in.described++
	}
	in.remeasure(o)
}

// Recount takes over the contracts that hold capacity of an offer. It is to be measured.
func (in *Inventory) Recount(o *Offer, contracts []*v1alpha1.Contract) {
	o.Contracts = contracts
	in.remeasure(o)
}

func (in *Inventory) remeasure(o *Offer) {
	in.measure[int32(o.Index)] = true //nolint:gosec // their number
	for _, m := range o.PoolPeers {
		in.measure[int32(m.Index)] = true //nolint:gosec // their number
	}
}

// Measure makes the figures of all offers again that are to be: those of which the
// last round took, too, because they are as it left them. From here on this round
// touches.
func (in *Inventory) Measure() {
	for _, i := range in.touched[in.began:] {
		in.measure[i] = true
	}
	list := slices.Sorted(maps.Keys(in.measure))
	clear(in.measure)
	for _, i := range list {
		in.figure(in.offers[i])
	}
	for _, i := range list {
		in.assess(in.offers[i])
	}
	in.touched = append(in.touched, list...)
	in.began = len(in.touched)
}

// describe fills in what of an offer only its report states.
func (in *Inventory) describe(o *Offer) {
	s, n := &o.Flavor.Spec, in.facts.Names
	o.Cluster = in.facts.Clusters[o.Provider]
	o.Type, o.CardKind = TypeOf(s.Type), in.kindOf(s)
	o.UnitsPerCard, o.GPUName, o.Min, o.Step = 1, ledger.GPUResource(o.Flavor), nil, nil
	if s.GPU != nil && s.GPU.UnitsPerGPU > 1 {
		o.UnitsPerCard = int64(s.GPU.UnitsPerGPU)
	}
	if s.Partition != nil {
		o.Min, o.Step = n.VectorOf(s.Partition.Min), n.VectorOf(s.Partition.Step)
	}
	o.Capacity = n.VectorIn(o.Capacity, ledger.Available(v1alpha1.OfferFigures{Capacity: s.Capacity, Overcommit: s.Overcommit}))
	o.Growth, o.scalable = nil, nil
	o.Blocked = in.facts.Blocked(o)
	o.LeaveBy, o.tellsNodes = s.Drain, in.facts.Nodes && ledger.TellsNodes(o.Flavor) && (o.UnitsPerCard == 1 || in.facts.Parts)
	o.tellsPlaces, o.places = o.tellsNodes && in.facts.Places, nil
	if o.Cluster != nil {
		if d := o.Cluster.Spec.Drain; o.LeaveBy.IsZero() || !d.IsZero() && d.Before(o.LeaveBy.Time) {
			o.LeaveBy = d
		}
	}
	o.view = nil
	in.windowed = in.windowed || o.Price != nil && len(o.Price.Windows) > 0
	delete(in.unheard, int32(o.Index)) //nolint:gosec // their number
	if o.State != model.Fresh {
		in.unheard[int32(o.Index)] = true //nolint:gosec // their number
	}
}

// figure fills in an offer's figures, from what the ledger holds of it and of
// its peers.
func (in *Inventory) figure(o *Offer) {
	n := in.facts.Names
	var members []ledger.Member
	if len(o.PoolPeers) > 0 {
		members = append(members, ledger.Member{Flavor: o.Flavor, Held: o.Contracts})
		for _, m := range o.PoolPeers {
			members = append(members, ledger.Member{Flavor: m.Flavor, Held: m.Contracts})
		}
	} else if o.Flavor.Spec.Pool != "" {
		members = []ledger.Member{{Flavor: o.Flavor, Held: o.Contracts}}
	}
	fig := ledger.Figures(ledger.Member{Flavor: o.Flavor, Held: o.Contracts}, members, "")
	o.free = n.VectorIn(o.free, ledger.Available(fig))
	o.held, o.pool = n.VectorOf(fig.Held), n.VectorOf(fig.Pool)
	for i, amount := range o.held {
		// What is held of a resource that is not offered any more is overdrawn.
		if _, listed := o.Flavor.Spec.Capacity[n.Name(i)]; !listed && amount > 0 && i != quantity.Pods && i != quantity.Storage {
			o.free = o.free.Set(i, -amount)
		}
	}
	in.grow(o, fig)
	if o.cards != nil {
		in.withCards--
	}
	if o.cards = in.dealCards(o); o.cards != nil {
		in.withCards++
	}
	o.nodes = in.dealNodes(o)
}

// assess bounds what an offer sells by its risk, when it and its peers are
// measured, and notes whether it is strained.
func (in *Inventory) assess(o *Offer) {
	o.risky = nil
	in.boundRisk(o)
	o.free = o.free.Add(o.Growth)
	delete(in.strained, int32(o.Index)) //nolint:gosec // their number
	if o.Overdrawn() >= 0 || o.lacksNode() {
		in.strained[int32(o.Index)] = true //nolint:gosec // their number
	}
}

// cardKind is everything about an offer that a request for cards looks at.
type cardKind struct {
	has bool
	gpu v1alpha1.FlavorGPU
}

func (in *Inventory) kindOf(s *v1alpha1.FlavorSpec) int {
	var k cardKind
	if ledger.HasCards(s) {
		k = cardKind{true, *s.GPU}
	}
	n, ok := in.kinds[k]
	if !ok {
		n = len(in.kinds)
		in.kinds[k] = n
	}
	return n
}

// Figures are an offer's figures as a decision records them.
func (in *Inventory) Figures(o *Offer) v1alpha1.OfferFigures {
	s, n := &o.Flavor.Spec, in.facts.Names
	f := v1alpha1.OfferFigures{Capacity: s.Capacity, Used: s.Used, Overcommit: s.Overcommit, Held: n.Resources(o.held)}
	if o.Growth != nil {
		f.ScalableTo = o.scalable
	}
	if s.Pool != "" {
		f.Pool = n.Resources(o.pool)
	}
	return f
}
