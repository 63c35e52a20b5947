package inventory

import (
	"cmp"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Offer is one flavor during a round: what it is, what of it is free now, and
// what contracts hold of it. Its fields must not be changed outside of this package.
type Offer struct {
	// Capacity × overcommit, growth included. What is looked at of every candidate
	// is kept together, here; the figures themselves lie in a row, offer after offer.
	Capacity, free quantity.Vector
	pieces
	// UnitsPerCard is how many of its GPU units make a card, 1 for whole cards.
	UnitsPerCard int64
	// Min and Step are the least that is sold of it and in what steps; nil for any.
	Min, Step quantity.Vector
	// Growth is the part of Capacity and Free that an autoscaler would have to add;
	// nil for none.
	Growth quantity.Vector

	*model.Offer
	// Ref is provider/name.
	Ref, Provider, Name string
	// Index is its place among all offers, by provider and name.
	Index int
	// Blocked is the requirement that fails for everybody, "" when it sells (Facts.Blocked).
	Blocked string
	// Type of the flavor. CardKind numbers what its cards are: offers of one kind
	// have equal cards.
	Type     string
	CardKind int
	// Cluster of its provider, nil for one that nobody described.
	Cluster *v1alpha1.Cluster
	// LeaveBy is when contracts must have left (drain), zero when they may stay.
	LeaveBy v1alpha1.Time

	scalable v1alpha1.Resources
	// held by contracts, and taken by the other flavors of its pool, as a
	// decision records them.
	held, pool quantity.Vector
	// risky are resources of which overcommit.maxRisk sells less than the ratio.
	risky map[int]bool
	// PoolPeers are the other flavors of its pool.
	PoolPeers []*Offer

	// GPUName is what its GPUs are called in a slice.
	GPUName string
	view    *v1alpha1.Flavor

	// Contracts that hold capacity of it, in the ledger.
	Contracts []*v1alpha1.Contract
}

// pieces are what an offer is made of, as far as it matters on which of them something lies.
type pieces struct {
	// cards of one that sells parts of them, nodes of one that tells them; else nil.
	cards *CardMap
	nodes *nodes.Map
	// tellsNodes: it does, and that counts (Facts.Nodes).
	tellsNodes bool
	// tellsPlaces: labels of its nodes count (Facts.Places); places are their values by
	// label and node, as far as they were asked for.
	tellsPlaces bool
	places      map[string]map[string]string
}

// Free is what is free of it, in the units of its resources: below nothing where more
// is held than there is. It must not be modified and changes with the next Take.
func (o *Offer) Free() quantity.Vector { return o.free }

// Held is what contracts hold of it. It must not be modified.
func (o *Offer) Held() quantity.Vector { return o.held }

// Cards are those of an offer that sells parts of cards; else nil.
func (o *Offer) Cards() *CardMap { return o.cards }

// Class is what contracts on the offer are of.
func (o *Offer) Class() string { return cmp.Or(o.Flavor.Spec.Class, "default") }

// Endpoint is the address of the provider's API server, as its agent reports it or
// else its cluster's file states it.
func (o *Offer) Endpoint() string {
	if e := o.Flavor.Spec.Endpoint; e != "" || o.Cluster == nil {
		return e
	}
	return o.Cluster.Spec.Endpoint
}

// Overdrawn is a resource of which an offer holds more than it has, -1 for
// none. A flavor that shrank sells nothing until its excess is gone.
func (o *Offer) Overdrawn() int { return o.free.Deficit() }

// Risky reports whether overcommit.maxRisk sells less of a resource than its ratio
// would.
func (o *Offer) Risky(resource int) bool { return o.risky[resource] }

// Resolved is the flavor with the price and location that hold for it, as
// predicates see it. It must not be modified.
func (o *Offer) Resolved() *v1alpha1.Flavor {
	if o.view == nil {
		f := *o.Flavor
		f.Spec.Price, f.Spec.Location = o.Price, o.Location
		o.view = &f
	}
	return o.view
}

// Compare orders offers by provider and name.
func Compare(a, b *Offer) int {
	return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
}

// TypeOf is a flavor's type, or that which an intent wants: K8Slice where it names none.
func TypeOf(name string) string {
	if name == "" {
		return "K8Slice"
	}
	return name
}

// Sold is what a contract was sold of a flavor, its GPU units as the flavor counts
// them.
func Sold(n *quantity.Names, c *v1alpha1.Contract, f *v1alpha1.Flavor) quantity.Vector {
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

// Slice is v as a slice of a flavor names it, nothing left out that is not nothing.
func Slice(n *quantity.Names, v quantity.Vector, f *v1alpha1.Flavor) v1alpha1.Resources {
	out := n.Resources(v)
	if name := ledger.GPUResource(f); v.At(quantity.GPU) != 0 && name != v1alpha1.GPU {
		delete(out, v1alpha1.GPU)
		out[name] = out[name].Add(v1alpha1.AmountOf(v[quantity.GPU]))
	}
	return out
}
