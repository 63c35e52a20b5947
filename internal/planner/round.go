package planner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// round is the working state of one Decide. It is two structs: base, which the
// next round of a Session goes on with as it is, and what follows here, which
// each round makes for itself.
type round struct {
	base
	draft
	// step is called as each step begins; may be nil.
	step func(Step)
	// w is the world, with what warm pools add to it.
	w     *World
	fleet *v1alpha1.FleetSpec
	// limits are the fleet's, filled.
	limits v1alpha1.Limits
	books  ledger.Books
	now    v1alpha1.Time
	plan   *Plan

	// mappedNow are the remote namespaces that this round has added to those of
	// the ledger's contracts and taken away.
	mappedNow mappings
	// seats are what may still be moved within its batch.
	seats []*seat
	// called is what pods that wait ask of intents that follow demand; made on first use.
	called map[[2]string]call
	// bill is what the round has charged (work.go), spare what is left for what
	// only people read. made counts the contracts that it made, on trial too.
	bill  *bill
	spare spare
	made  int64

	accounts *account.Accounts
	frozen   freezes
	jobs     []*job

	// before and current are the contracts that change, by name.
	before, current map[string]*v1alpha1.Contract
	statusOnly      map[string]bool
	// excess are contracts that a flavor can no longer hold.
	excess map[string]bool
	// cut are contracts that a budget's limit ends.
	cut map[string]bool
	// renamed are states under names that intents had before.
	renamed map[[2]string]*v1alpha1.IntentState
	// progressed: a pass over the waiting jobs changed something.
	progressed bool
	// turns counts the passes over the waiting jobs, from 1.
	turns int
	// waiting jobs in the order in which they are served.
	waiting []*job
	// warm are the jobs of warm pools, found on first use; claimed are the warm
	// contracts that intents have taken over.
	warm    []*job
	claimed map[string]bool
	// retire: ended contracts are old enough to leave the tree.
	retire bool
	// heldBack is whose contracts do not end, because too many would at once.
	heldBack heldBack
	// replaced are contracts that were released in this round for others in their
	// place.
	replaced map[string]bool
	// claims are what waiting jobs make others give way for; notices the
	// contracts that had to, by whom for; releasing all that were when the
	// round began, freed those whose release it began itself; hopeless are the
	// claims that were looked for in vain.
	claims   map[*job]*claim
	notices  map[string][]*v1alpha1.Contract
	freed    []*v1alpha1.Contract
	isFreed  map[string]bool // by name
	hopeless map[string]bool
	// ends are known ends as of the pass endsAt; searched counts the searches for
	// reservations in a pass.
	ends       []ending
	endsAt     int
	searched   int
	jobsByName map[[2]string]*job
	// unitless remembers units that fit nowhere, and at how many touched offers that was found.
	unitless map[string]int
	// probe is the intent that Explain asks about.
	probe *probe
}

// newRound reads a world from nothing.
func newRound(w *World) *round {
	r := startRound(w, base{names: quantity.NewNames(match.ReqCapacity)})
	fleet := r.fleet
	r.defaults = r.names.VectorOf(v1alpha1.Resources{
		v1alpha1.CPU:              defaultOf(fleet.Defaults.CPU, v1alpha1.CPU, "4"),
		v1alpha1.Memory:           defaultOf(fleet.Defaults.Memory, v1alpha1.Memory, "8Gi"),
		v1alpha1.Pods:             defaultOf(fleet.Defaults.Pods, v1alpha1.Pods, "110"),
		v1alpha1.EphemeralStorage: defaultOf(fleet.Defaults.EphemeralStorage, v1alpha1.EphemeralStorage, "20Gi"),
	})
	r.listIntents()
	r.readLedger()
	r.openAccounts()
	r.inventory = inventory.New(r.facts(), w.Offers, r.w.Ledger.Contracts())
	r.match = match.New(r.matchFacts(), r.inventory)
	r.listOrphans()
	r.readContracts()
	r.finishRefusals()
	return r
}

// facts are what the round tells its inventory.
func (r *round) facts() inventory.Facts {
	return inventory.Facts{Names: r.names, Clusters: r.w.Clusters, Heard: r.w.Heard, Blocked: r.blocked}
}

// matchFacts are what the round tells its matcher.
func (r *round) matchFacts() match.Facts {
	return match.Facts{
		Names: r.names, Defaults: r.defaults, Fleet: r.fleet, Books: r.books, Now: r.now, Clusters: r.w.Clusters, Policies: r.w.Policies,
		Workload: r.w.Workload, Intents: func() []*model.Intent { return r.intents },
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
	case !r.outOfMarket(o.Provider).IsZero():
		return match.ReqRefuses
	}
	return ""
}

// startRound is a round that knows its world and has read nothing of it but what
// its base has.
func startRound(w *World, from base) *round {
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
	r := &round{
		base: from, w: w, fleet: fleet, limits: limitsBy(w), books: books, now: w.Now,
		before: map[string]*v1alpha1.Contract{}, current: map[string]*v1alpha1.Contract{},
		mappedNow: mappings{}, statusOnly: map[string]bool{}, claimed: map[string]bool{}, replaced: map[string]bool{}, excess: map[string]bool{}, cut: map[string]bool{},
		renamed: map[[2]string]*v1alpha1.IntentState{},
		claims:  map[*job]*claim{}, notices: map[string][]*v1alpha1.Contract{}, hopeless: map[string]bool{}, isFreed: map[string]bool{},
	}
	r.given, r.pools = given, warm
	r.plan = &Plan{Now: w.Now, Inputs: w.Inputs, Market: w.Market, Currency: books.Currency, Clusters: len(w.Clusters), Offers: len(w.Offers)}
	r.frozen = newFreezes(w.Frozen)
	return r
}

// listIntents puts the intents, and those of warm pools, in order.
func (r *round) listIntents() {
	r.intents = make([]*model.Intent, 0, len(r.w.Intents)+len(r.pools))
	r.intents = append(append(r.intents, r.w.Intents...), r.pools...)
	if !slices.IsSortedFunc(r.intents, compareIntents) {
		slices.SortFunc(r.intents, compareIntents)
	}
	r.verdicts = make([]verdict, len(r.intents))
	r.renames, r.relatives = map[[2]string]bool{}, map[[2]string]bool{}
	for _, in := range r.intents {
		r.note(in)
	}
}

// compareIntents orders by tenant and name, then by path.
func compareIntents(a, b *model.Intent) int {
	return cmp.Or(compareNames(a.Metadata.Namespace, a.Metadata.Name, b.Metadata.Namespace, b.Metadata.Name), strings.Compare(a.Path, b.Path))
}

// note marks an intent that is more than itself.
func (r *round) note(in *model.Intent) {
	if in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom] != "" {
		r.renames[in.Key()] = true
	}
	if p := &in.Spec.Placement; len(p.Together)+len(p.Apart) > 0 {
		r.relatives[in.Key()] = true
	}
}

// due notes an instant at which planning again may decide otherwise.
func (r *round) due(t v1alpha1.Time) {
	if t.After(r.now.Time) {
		r.setDue(lifecycle.Earlier(r.plan.Due, t))
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

func (r *round) offerOf(c *v1alpha1.Contract) *inventory.Offer {
	return r.inventory.Of(c)
}

// compareNames orders by tenant, then name.
func compareNames(tenant, name, otherTenant, otherName string) int {
	if c := strings.Compare(tenant, otherTenant); c != 0 {
		return c
	}
	return strings.Compare(name, otherName)
}

// find is the intent of a name, by binary search.
func (r *round) find(tenant, name string) *model.Intent {
	i, ok := slices.BinarySearchFunc(r.intents, [2]string{tenant, name}, func(in *model.Intent, k [2]string) int {
		return compareNames(in.Metadata.Namespace, in.Metadata.Name, k[0], k[1])
	})
	if !ok {
		return nil
	}
	return r.intents[i]
}

// sortedByCount lists requirements by count, the most frequent first, then by
// name.
func sortedByCount(counts map[string]int) []string {
	out := make([]string, 0, len(counts))
	for k := range counts {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return out
}

// freezes answers which intents and paths are frozen, and why.
type freezes struct {
	paths   map[string]string
	dirs    []model.Freeze
	intents map[[2]string]string
	any     bool
}

func newFreezes(list []model.Freeze) freezes {
	f := freezes{paths: map[string]string{}, intents: map[[2]string]string{}, any: len(list) > 0}
	for _, x := range list {
		switch {
		case x.Path == "/" || strings.HasSuffix(x.Path, "/"):
			f.dirs = append(f.dirs, x)
		case x.Path != "":
			f.paths[x.Path] = x.Why
		}
		if x.Tenant != "" {
			f.intents[[2]string{x.Tenant, x.Intent}] = x.Why
		}
	}
	return f
}

// why says why an intent, or what came from any of paths, is frozen.
func (f *freezes) why(tenant, intent string, paths ...string) (string, bool) {
	if !f.any {
		return "", false
	}
	for _, k := range [...][2]string{{tenant, intent}, {tenant, ""}} {
		if why, ok := f.intents[k]; ok {
			return why, true
		}
	}
	for _, p := range paths {
		if why, ok := f.paths[p]; ok && p != "" {
			return why, true
		}
		for _, d := range f.dirs {
			if d.Path == "/" || (p != "" && strings.HasPrefix(p, d.Path)) {
				return d.Why, true
			}
		}
	}
	return "", false
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
