package planner

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// fact is the first fact about an offer that a wish does not put up with, ""
// when it puts up with all. Facts do not change during a round.
func (r *round) fact(w *wish, o *inventory.Offer) string {
	if req := r.common(w, o); req != "" {
		return req
	}
	return r.particular(w, o)
}

// nature is fact without what only matters for selling something new: whether
// the offer is the kind of thing that was asked for.
func (r *round) nature(w *wish, o *inventory.Offer) string {
	if req := r.kindred(w, o); req != "" {
		return req
	}
	return r.particular(w, o)
}

// common is the first of the facts that an offer shares with all of its trait:
// nothing else of it may be looked at.
func (r *round) common(w *wish, o *inventory.Offer) string {
	if o.Provider == w.consumer {
		return ReqSelf
	}
	if o.Blocked != "" {
		return o.Blocked
	}
	return r.kindred(w, o)
}

// blocked is the requirement that an offer fails for every intent.
func (r *round) blocked(o *inventory.Offer) string {
	switch {
	case o.Cluster == nil || !o.Cluster.HasRole("provider"):
		return ReqRole
	case o.State == model.Silent || o.State == model.Elsewhere:
		return ReqSilent
	case o.State == model.Lost:
		return ReqLost
	case o.State == model.Withdrawn:
		return ReqWithdrawn
	case o.Flavor.Spec.Cordon || o.Cluster.Spec.Cordon:
		return ReqCordon
	case !o.Flavor.Spec.Drain.IsZero() || !o.Cluster.Spec.Drain.IsZero():
		return ReqDrain
	case !r.outOfMarket(o.Provider).IsZero():
		return ReqRefuses
	}
	return ""
}

// kindred is common without what only matters for selling something new.
func (r *round) kindred(w *wish, o *inventory.Offer) string {
	if inventory.TypeOf(w.in.Spec.FlavorType) != o.Type {
		return ReqFlavorType
	}
	if w.tenant != nil && !allows(w.tenant.Providers, o.Provider) {
		return ReqTenantProviders
	}
	if !allows(w.in.Spec.Placement.Providers, o.Provider) {
		return ReqPlacementProviders
	}
	if w.gpu != nil {
		if req := w.cardFact(o); req != "" {
			return req
		}
	}
	for _, i := range w.extended {
		if o.Capacity.At(i) <= 0 {
			return ReqResource + r.names.Name(i)
		}
	}
	p := &w.in.Spec.Placement
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

// particular is the first of the facts that are each offer's own: those that
// come after the common ones.
func (r *round) particular(w *wish, o *inventory.Offer) string {
	if req := r.situation(w, o); req != "" {
		return req
	}
	if req := r.predicates(w, o); req != "" {
		return req
	}
	return r.partition(w, o)
}

// particular reports whether an intent asks for anything that is each offer's
// own. Offers that are sold in steps are always asked.
func (w *wish) particular() bool {
	s := &w.in.Spec
	p := &s.Placement
	return len(p.Labels)+len(p.Spread)+len(w.policies) > 0 || p.MaxLatency.Duration > 0 || s.SLA != nil ||
		s.Enforcement == v1alpha1.EnforceHard || s.Enforcement == v1alpha1.EnforceSoft || w.where != nil
}

func allows(l v1alpha1.ClusterLists, cluster string) bool {
	if slices.Contains(l.Deny, cluster) {
		return false
	}
	return len(l.Allow) == 0 || slices.Contains(l.Allow, cluster)
}

// cardFact is gpuWish.fact, asked once for each kind of card in the market.
func (w *wish) cardFact(o *inventory.Offer) string {
	for len(w.cards) <= o.CardKind {
		w.cards = append(w.cards, unasked)
	}
	if w.cards[o.CardKind] == unasked {
		w.cards[o.CardKind] = w.gpu.fact(o)
	}
	return w.cards[o.CardKind]
}

const unasked = "?"

// fact is the first property of a flavor's cards that is not as wished.
func (g *gpuWish) fact(o *inventory.Offer) string {
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
	case g.profile != "" && g.profile != strings.ToLower(have.Profile):
		return ReqGPUProfile
	case !g.fitsSharing(have):
		return ReqGPUSharing
	}
	return ""
}

// fitsMemory compares the memory of one unit. A share of a card that comes to
// several units has theirs together, but for instances of MIG: each is a device
// by itself.
func (g *gpuWish) fitsMemory(have *v1alpha1.FlavorGPU, perCard int64) bool {
	if g.memory == (v1alpha1.MemoryRange{}) {
		return true
	}
	unit := have.Memory.Amount
	if g.share > 0 && have.Profile == "" && !strings.EqualFold(have.Sharing, "mig") {
		unit = unit.Mul(g.units(perCard))
	}
	return g.memory.Contains(unit)
}

// fitsSharing: without share, profile or sharing only whole cards are given.
func (g *gpuWish) fitsSharing(have *v1alpha1.FlavorGPU) bool {
	sharing := strings.ToLower(have.Sharing)
	if sharing == "" {
		sharing = "none"
	}
	if g.sharing != "" {
		return g.sharing == sharing
	}
	if g.share > 0 || g.profile != "" {
		return true
	}
	return sharing == "none" && have.UnitsPerGPU <= 1
}

// situation is the first requirement on where an offer stands that it fails,
// after those that are common.
func (r *round) situation(w *wish, o *inventory.Offer) string {
	p := &w.in.Spec.Placement
	for k, v := range p.Labels {
		if !labelled(o, k, v) {
			return ReqLabels
		}
	}
	for i := range p.Spread {
		if domain(o, p.Spread[i].By) == "" {
			return ReqSpread
		}
	}
	if p.MaxLatency.Duration > 0 {
		ms, known := r.latency(w.consumer, o)
		if !known || ms > p.MaxLatency.Milliseconds() {
			return ReqLatency
		}
	}
	if !availability(w.in.Spec.SLA, o) {
		return ReqAvailability
	}
	if e := w.in.Spec.Enforcement; e == v1alpha1.EnforceHard || e == v1alpha1.EnforceSoft {
		// Only an agent with the slice class of our own enforces anything; how
		// Liqo does there is known once it has made a Quota.
		level := v1alpha1.Enforcement(o.Flavor.Spec.Labels[v1alpha1.LabelEnforcement])
		if o.Flavor.Spec.Class != classEnforced || level == v1alpha1.EnforceNone || level == v1alpha1.EnforceSoft && e == v1alpha1.EnforceHard {
			return ReqEnforcement
		}
	}
	return ""
}

// classEnforced is the ResourceSlice class whose controller, in the provider's
// agent, grants exactly what the ledger says.
const classEnforced = "fleetbroker"

// labelled reports whether a label is on the flavor or on its cluster; the
// flavor's own value goes before the cluster's.
func labelled(o *inventory.Offer, key, value string) bool {
	if v, ok := o.Flavor.Spec.Labels[key]; ok {
		return v == value
	}
	if o.Cluster == nil {
		return false
	}
	v, ok := o.Cluster.Spec.Labels[key]
	return ok && v == value
}

// pair is two clusters or regions, in order.
type pair struct{ a, b string }

func pairOf(a, b string) pair {
	if b < a {
		a, b = b, a
	}
	return pair{a, b}
}

// latency is that from a consumer to an offer in milliseconds: the fleet's
// entry for the clusters, else for a cluster and a region, else for the
// regions; without any the flavor's own figure.
func (r *round) latency(consumer string, o *inventory.Offer) (ms int64, known bool) {
	if len(r.latencies) == 0 {
		return ownLatency(o)
	}
	var home string
	if c := r.w.Clusters[consumer]; c != nil {
		home = c.Spec.Location.Region
	}
	for _, p := range [...]pair{
		pairOf(consumer, o.Provider), pairOf(consumer, o.Location.Region),
		pairOf(home, o.Provider), pairOf(home, o.Location.Region),
	} {
		if p.a == "" {
			continue
		}
		if ms, ok := r.latencies[p]; ok {
			return ms, true
		}
	}
	return ownLatency(o)
}

// ownLatency is the flavor's own figure.
func ownLatency(o *inventory.Offer) (ms int64, known bool) {
	if l := o.Flavor.Spec.Properties.LatencyMs; l != nil {
		return *l, true
	}
	return 0, false
}

// predicates is the first condition written in CEL that an offer fails; an
// error in evaluating it fails that offer.
func (r *round) predicates(w *wish, o *inventory.Offer) string {
	if w.where != nil {
		if ok, err := w.where.Eval(w.in, o.Resolved(), o.Cluster); err != nil || !ok {
			return ReqWhere
		}
	}
	for i := range w.policies {
		if ok, err := w.policies[i].Predicate.Eval(w.in, o.Resolved(), o.Cluster); err != nil || !ok {
			return ReqPolicy + w.policies[i].Name
		}
	}
	return ""
}

// partition fails an offer whose whole capacity would hold what was asked for
// but not the next legal size.
func (r *round) partition(w *wish, o *inventory.Offer) string {
	if o.Flavor.Spec.Partition == nil {
		return ""
	}
	asked, size := w.asked(o), w.size(o)
	if !size.Within(o.Capacity) && asked.Within(o.Capacity) {
		return ReqPartition
	}
	return ""
}

// short is the first resource of which an offer has less than size, as a
// requirement: cards first, then the others by number, extended ones last; then
// any of which it has already sold too much.
func (r *round) short(o *inventory.Offer, size quantity.Vector) string {
	free := o.Free()
	if n := size.At(quantity.GPU); n > 0 && free.At(quantity.GPU) < n {
		return r.names.Prefixed(quantity.GPU)
	}
	for i, n := range size {
		if n > 0 && free.At(i) < n {
			return r.names.Prefixed(i)
		}
	}
	if i := free.Deficit(); i >= 0 {
		return r.names.Prefixed(i)
	}
	return ""
}
