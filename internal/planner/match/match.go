package match

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// FailsFact is the first fact about an offer that a request does not put up with, ""
// when it puts up with all. Facts do not change during a round.
func (m *Matcher) FailsFact(w *Request, o *inventory.Offer) string {
	if req := m.sharedFact(w, o); req != "" {
		return req
	}
	return m.ownFact(w, o, true)
}

// FailsNature is fact without what only matters for selling something new: whether
// the offer is the kind of thing that was asked for.
func (m *Matcher) FailsNature(w *Request, o *inventory.Offer) string {
	if req := m.sharedNature(w, o); req != "" {
		return req
	}
	return m.ownFact(w, o, true)
}

// sharedFact is the first of the facts that an offer shares with all of its trait:
// nothing else of it may be looked at.
func (m *Matcher) sharedFact(w *Request, o *inventory.Offer) string {
	if o.Provider == w.Consumer {
		return ReqSelf
	}
	if o.Blocked != "" {
		return o.Blocked
	}
	if req := m.sharedNature(w, o); req != "" {
		return req
	}
	if m.LeftToOthers(w, o) {
		return ReqAccelerators
	}
	return ""
}

// sharedNature is sharedFact without what only matters for selling something new.
func (m *Matcher) sharedNature(w *Request, o *inventory.Offer) string {
	if inventory.TypeOf(w.Intent.Spec.FlavorType) != o.Type {
		return ReqFlavorType
	}
	if w.tenant != nil && !allows(w.tenant.Providers, o.Provider) {
		return ReqTenantProviders
	}
	if !allows(w.Intent.Spec.Placement.Providers, o.Provider) {
		return ReqPlacementProviders
	}
	if w.GPU != nil {
		if req := w.cardFact(o); req != "" {
			return req
		}
	}
	for _, i := range w.extended {
		if o.Capacity.At(i) <= 0 {
			return ReqResource + m.facts.Names.Name(i)
		}
	}
	p := &w.Intent.Spec.Placement
	if len(p.Regions) > 0 && !slices.Contains(p.Regions, o.Location.Region) {
		return ReqRegions
	}
	if len(p.Zones) > 0 && !slices.Contains(p.Zones, o.Location.Zone) {
		return ReqZones
	}
	if len(p.Architectures) > 0 && !slices.Contains(p.Architectures, o.Flavor.Spec.Architecture) {
		return ReqArchitectures
	}
	return ""
}

// ownFact is the first of the facts that are each offer's own: those that
// come after the shared ones. Stepped: the offer may be sold in steps.
func (m *Matcher) ownFact(w *Request, o *inventory.Offer, stepped bool) string {
	if req := m.situation(w, o); req != "" {
		return req
	}
	if req := policyOf(m, w, o); req != "" {
		return req
	}
	if !stepped {
		return ""
	}
	return partition(w, o)
}

// asksOwnFacts reports whether an intent asks for anything that is each offer's
// own. Offers that are sold in steps are always asked.
func (w *Request) asksOwnFacts() bool { return len(w.own)+len(w.Policies) > 0 }

func allows(l v1alpha1.ClusterLists, cluster string) bool {
	if slices.Contains(l.Deny, cluster) {
		return false
	}
	return len(l.Allow) == 0 || slices.Contains(l.Allow, cluster)
}

// cardFact is CardRequest.fact, asked once for each kind of card in the market.
func (w *Request) cardFact(o *inventory.Offer) string {
	for len(w.cards) <= o.CardKind {
		w.cards = append(w.cards, unasked)
	}
	if w.cards[o.CardKind] == unasked {
		w.cards[o.CardKind] = w.GPU.fact(o)
	}
	return w.cards[o.CardKind]
}

const unasked = "?"

// fact is the first property of a flavor's cards that is not as asked for.
func (g *CardRequest) fact(o *inventory.Offer) string {
	have := o.Flavor.Spec.GPU
	if !ledger.HasCards(&o.Flavor.Spec) {
		return ReqGPU
	}
	differs := func(want, have string) bool { return want != "" && !strings.EqualFold(want, have) }
	switch {
	case differs(g.vendor, have.Vendor):
		return ReqGPUVendor
	case !g.matchesModel(have):
		return ReqGPUModel
	case !g.fitsMemory(have, o.UnitsPerCard):
		return ReqGPUMemory
	case differs(g.tier, have.Tier):
		return ReqGPUTier
	case differs(g.architecture, have.Architecture):
		return ReqGPUArchitecture
	case differs(g.interconnect, have.Interconnect):
		return ReqGPUInterconnect
	case g.capability > 0 && capability(have.ComputeCapability) < g.capability:
		return ReqGPUCapability
	case g.Profile != "" && g.Profile != strings.ToLower(have.Profile) && !(g.alike && gpuforms.Profile(g.Profile) == gpuforms.Profile(have.Profile)):
		return ReqGPUProfile
	case !g.fitsSharing(have):
		return ReqGPUSharing
	}
	return ""
}

// fitsMemory compares the memory of one unit. A share of a card that comes to
// several units has theirs together, but for instances of MIG: each is a device
// by itself.
func (g *CardRequest) fitsMemory(have *v1alpha1.FlavorGPU, perCard int64) bool {
	if g.Memory == (v1alpha1.MemoryRange{}) {
		return true
	}
	unit := have.Memory.Amount
	if g.Share > 0 && have.Profile == "" && !strings.EqualFold(have.Sharing, "mig") {
		unit = unit.Mul(g.Units(perCard))
	}
	return g.Memory.Contains(unit)
}

// fitsSharing: without share, profile or sharing only whole cards are given.
func (g *CardRequest) fitsSharing(have *v1alpha1.FlavorGPU) bool {
	sharing := strings.ToLower(have.Sharing)
	if sharing == "" {
		sharing = "none"
	}
	if g.Sharing != "" {
		return g.Sharing == sharing
	}
	if g.Share > 0 || g.Profile != "" {
		return true
	}
	return sharing == "none" && have.UnitsPerGPU <= 1
}

// policyOf is the first policy of the fleet that forbids an offer; one that has no answer
// for it does.
func policyOf(m *Matcher, w *Request, o *inventory.Offer) string {
	for i := range w.Policies {
		if !meets(m, w, w.Policies[i].Predicate, answersOf(m, w, i), o) {
			return ReqPolicy + w.Policies[i].Name
		}
	}
	return ""
}

// partition fails an offer whose whole capacity would hold what was asked for
// but not the next legal size.
func partition(w *Request, o *inventory.Offer) string {
	if len(o.Min)+len(o.Step) == 0 {
		return ""
	}
	asked, size := w.Asked(o), w.Size(o)
	if !size.Within(o.Capacity) && asked.Within(o.Capacity) {
		return ReqPartition
	}
	return ""
}

// short is the first resource of which an offer has less than size, as a
// requirement: cards first, then the others by number, extended ones last; then
// any of which it has already sold too much.
func (m *Matcher) short(o *inventory.Offer, size quantity.Vector) string {
	free := o.Free()
	if n := size.At(quantity.GPU); n > 0 && free.At(quantity.GPU) < n {
		return m.facts.Names.Prefixed(quantity.GPU)
	}
	if free.Holds(size) {
		return ""
	}
	for i, n := range size {
		if n > 0 && free.At(i) < n {
			return m.facts.Names.Prefixed(i)
		}
	}
	if i := free.Deficit(); i >= 0 {
		return m.facts.Names.Prefixed(i)
	}
	return ""
}
