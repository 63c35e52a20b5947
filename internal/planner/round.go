package planner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/beyond"
	"github.com/fleetbroker/fleetbroker/internal/planner/contend"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/explain"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// round is the working state of one Decide: an explainer, which is a contest, which
// is a settler, which is a placer, which is a draft. Each is a layer that knows
// those below it alone.
type round struct {
	explain.Explainer
	ownBase
	errand
	// retire: ended contracts are old enough to leave the tree.
	retire bool
	// sifted are the places among the intents of the first jobs; doubled: two of the
	// intents have one name (sift).
	sifted  []int
	doubled bool
}

// errand is who asks for a round and for what, beside its world: the one value that a round
// has in common with the one that is made in its place (agree). Nothing of it may decide
// anything.
type errand struct {
	// number of the plan among those of its session, by which classes know when they were
	// asked for last; 0 for a plan by itself.
	number uint64
	// step is called as each step begins; nil for nobody.
	step func(Step)
	// probe is the intent that Explain asks about; nil for none.
	probe *explain.Probe
	// disputed is called where tries do not agree (agree); nil for nobody.
	disputed func(providers []string)
}

// on sets out on an errand.
func (r *round) on(e errand) {
	r.errand, r.Match.Round, r.Probe = e, e.number, e.probe
}

// again is the same errand for another round: what Explain asks is asked from the start.
func (e errand) again() errand {
	e.probe = e.probe.Again()
	return e
}

// newRound reads a world from nothing.
func newRound(w *draft.World) *round { return newRoundBy(w, nil) }

// newRoundBy is newRound by other marks of providers than follow from the ledger; nil is
// by those.
func newRoundBy(w *draft.World, marks map[string]draft.RefusalMark) *round {
	r := startRound(w, base{draft: draft.Base{Names: quantity.NewNames(match.ReqCapacity)}})
	fleet := r.Fleet
	r.Defaults = r.Names.VectorOf(v1alpha1.Resources{
		v1alpha1.CPU:              defaultOf(fleet.Defaults.CPU, v1alpha1.CPU, "4"),
		v1alpha1.Memory:           defaultOf(fleet.Defaults.Memory, v1alpha1.Memory, "8Gi"),
		v1alpha1.Pods:             defaultOf(fleet.Defaults.Pods, v1alpha1.Pods, "110"),
		v1alpha1.EphemeralStorage: defaultOf(fleet.Defaults.EphemeralStorage, v1alpha1.EphemeralStorage, "20Gi"),
	})
	r.listIntents()
	r.readLedger()
	if r.Marks = marks; marks == nil {
		r.Marks = marksOf(r.refusals, r.W.Offers)
	}
	r.OpenAccounts()
	r.Inventory = inventory.New(r.inventoryFacts(), w.Offers, r.W.Ledger.Contracts())
	r.Match = match.New(r.matchFacts(), r.Inventory)
	r.listOrphans()
	r.readContracts()
	r.finishRefusals()
	return r
}

// fromNothing reads it as if nothing were kept.
func fromNothing(r *round, marks map[string]draft.RefusalMark) *round {
	w := r.given
	return newRoundBy(&w, marks)
}

// inventoryFacts are what the round gives its inventory.
func (r *round) inventoryFacts() inventory.Facts {
	return inventory.Facts{Names: r.Names, Clusters: r.W.Clusters, Blocked: r.blocked, Nodes: r.By(draft.RulesNodes), Places: r.By(draft.RulesRemapped), Parts: r.By(draft.RulesPartsOnNodes), Again: r.By(draft.RulesAgainAll)}
}

// matchFacts are what the round gives its matcher.
func (r *round) matchFacts() match.Facts {
	return match.Facts{
		Names: r.Names, Defaults: r.Defaults, Fleet: r.Fleet, Books: r.Books, Now: r.Now, Asked: r.By(draft.RulesAsked), GrowthApart: r.By(draft.RulesGrowthApart), ProfilesAlike: r.By(draft.RulesProfilesAlike), LooksAhead: r.By(draft.RulesStranded), PricesCounted: r.By(draft.RulesPricesCounted), Clusters: r.W.Clusters, Policies: r.W.Policies,
		Workload: r.W.Workload, Intents: func() []*model.Intent { return r.Intents },
	}
}

// blocked is the requirement that an offer fails for every intent.
func (r *round) blocked(o *inventory.Offer) string {
	switch {
	case o.Cluster == nil || !o.Cluster.HasRole("provider"):
		return match.ReqRole
	case o.State == model.Silent || o.State == model.Elsewhere:
		return match.ReqSilent
	case o.State == model.Lost:
		return match.ReqLost
	case o.State == model.Withdrawn:
		return match.ReqWithdrawn
	case o.Flavor.Spec.Cordon || o.Cluster.Spec.Cordon:
		return match.ReqCordon
	case !o.Flavor.Spec.Drain.IsZero() || !o.Cluster.Spec.Drain.IsZero():
		return match.ReqDrain
	case !r.OutOfMarket(o.Provider).IsZero():
		return match.ReqRefuses
	}
	return ""
}

// startRound is a round that knows its world and has read nothing of it but what
// its base has.
func startRound(w *draft.World, from base) *round {
	given := *w
	given.Clusters, given.Tenants, given.ForceRelease = maps.Clone(w.Clusters), maps.Clone(w.Tenants), maps.Clone(w.ForceRelease)
	w, warm := withWarmPools(w)
	fleet := w.Fleet
	if fleet == nil {
		fleet = &v1alpha1.FleetSpec{}
	}
	books, err := ledger.BooksOf(fleet)
	if err != nil {
		books.Currency = fleet.Currency // the zone is checked when a fleet is read
	}
	plan := &draft.Plan{Now: w.Now, Inputs: w.Inputs, Market: w.Market, Currency: books.Currency, Clusters: len(w.Clusters), Offers: len(w.Offers)}
	facts := draft.Facts{W: w, Fleet: fleet, Limits: beyond.LimitsBy(w), Books: books, Frozen: draft.NewFreezes(w.Frozen)}
	r := &round{ownBase: from.own, Explainer: explain.Explainer{Contest: contend.New(settle.New(place.New(draft.New(facts, from.draft, plan), from.place)), from.whole)}}
	r.Placer.Void, r.Placer.Looked, r.Placer.LookedAhead = r.Contest.Void, r.Explainer.Capture, r.Explainer.CaptureAhead
	r.given, r.pools = given, warm
	return r
}

// listIntents puts the intents, and those of warm pools, in order.
func (r *round) listIntents() {
	r.Intents = make([]*model.Intent, 0, len(r.W.Intents)+len(r.pools))
	r.Intents = append(append(r.Intents, r.W.Intents...), r.pools...)
	if !slices.IsSortedFunc(r.Intents, compareIntents) {
		slices.SortFunc(r.Intents, compareIntents)
	}
	r.cached = make([]cachedDecision, len(r.Intents))
	r.renames, r.Relatives = map[[2]string]bool{}, map[[2]string]bool{}
	for _, in := range r.Intents {
		r.note(in)
	}
}

// compareIntents orders by tenant and name, then by path.
func compareIntents(a, b *model.Intent) int {
	return cmp.Or(draft.CompareNames(a.Metadata.Namespace, a.Metadata.Name, b.Metadata.Namespace, b.Metadata.Name), strings.Compare(a.Path, b.Path))
}

// note marks an intent that is more than itself.
func (r *round) note(in *model.Intent) {
	if in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom] != "" {
		r.renames[in.Key()] = true
	}
	if p := &in.Spec.Placement; len(p.Together)+len(p.Apart) > 0 && in.ProblemCode != model.TooManyTogether {
		r.Relatives[in.Key()] = true
	}
}

// defaultOf is a fleet default, or Liqo's own figure for a key that a slice
// leaves out.
func defaultOf(q *v1alpha1.Quantity, name, otherwise string) v1alpha1.Amount {
	if q == nil || *q == "" {
		return v1alpha1.Quantity(otherwise).Amount(name)
	}
	return q.Amount(name)
}
