// Package world joins what was read (fleet, ledger, market, observations) into
// the planner's World. It joins and decides nothing: the daemon's rounds and
// the command line's offline plans make their worlds here, so that both plan
// alike.
//
// Build makes a world from nothing, a Folder world after world at the cost of
// what changed. Everything else is pure, nothing that is handed in is modified,
// and a World shares the values of its parts. Callers are internal/reconciler
// and internal/cli.
package world

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Input is what a World is made of.
type Input struct {
	// Now is the round's time.
	Now v1alpha1.Time
	// Fleet as read.
	Fleet *fleet.Fleet
	// Inputs is the commit of the inputs, "" when they are none.
	Inputs string
	// Ledger as read.
	Ledger *ledger.Ledger
	// Market at the moment of the round.
	Market *market.Snapshot
	// Author tells who last changed an intent and in which commit; nil knows nobody.
	Author func(*model.Intent) (commit, author string)
	// Authors tells what Author answers apart: of one fleet, the same number means the same answers. 0 tells nothing.
	Authors uint64
	// Asked are the intents, by tenant and name, of whose authors Author may say something else than by the number before Authors.
	Asked [][2]string
	// RemovedBy says who deleted files of intents, by path; may be nil.
	RemovedBy map[string]string
	// Observed is what consumer clusters say.
	Observed v1alpha1.ConsumerObservations
	// Unheard are contracts that are seen gone on their consumer and whose provider has not reported since; may be nil.
	Unheard map[string]bool
	// Deaf means that too few providers are heard.
	Deaf bool
	// AllowEnds lets the round end more contracts than safety.maxEnds.
	AllowEnds bool
	// ForceRelease names contracts that are lost for good.
	ForceRelease map[string]bool
}

// Build makes the World.
func Build(in Input) planner.World {
	return planner.World{
		Now: in.Now, Fleet: in.Fleet.Policy, FleetName: in.Fleet.Name, Clusters: in.Fleet.Clusters, Tenants: in.Fleet.Tenants,
		Intents: Intents(in.Fleet, in.Author), Frozen: Frozen(in.Fleet, in.Ledger), Inputs: in.Inputs, Ledger: in.Ledger,
		Offers: Offers(in.Market, in.Ledger), Market: in.Market.Tree().Root.String(), Observed: planner.Observations{}.With(Observed(in.Ledger, in.Market, in.Observed, in.Unheard)),
		Demand: in.Market.Demand(), RemovedBy: in.RemovedBy, Deaf: in.Deaf, AllowEnds: in.AllowEnds, ForceRelease: in.ForceRelease, Policies: in.Fleet.Policies,
	}
}

// Intents are the fleet's, with who wrote them.
func Intents(f *fleet.Fleet, author func(*model.Intent) (commit, author string)) []*model.Intent {
	out := make([]*model.Intent, len(f.Intents))
	for i, it := range f.Intents {
		out[i] = Intent(it, author)
	}
	return out
}

// Intent is one intent with who wrote it.
func Intent(it *model.Intent, author func(*model.Intent) (commit, author string)) *model.Intent {
	out := *it
	if author != nil {
		out.Commit, out.Author = author(it)
	}
	return &out
}

// AskedBy says for people and the audit trail who asked for an intent that came
// through the API: "cluster rome, for default/train (alice)".
func AskedBy(notes map[string]string) string {
	text := "cluster " + notes[v1alpha1.AnnotationRequestedBy]
	if what := notes[v1alpha1.AnnotationRequester]; what != "" {
		text += ", for " + what
	}
	if who := notes[v1alpha1.AnnotationOwner]; who != "" {
		text += " (" + who + ")"
	}
	return text
}

// Frozen is what unreadable inputs had named. The planner knows paths, tenants
// and intents; a cluster that was never readable freezes each intent that has a
// contract from or for it, and of the rest only says why it is not known.
func Frozen(f *fleet.Fleet, l *ledger.Ledger) []model.Freeze {
	var out []model.Freeze
	for _, z := range f.Frozen {
		if z.Path != "" || z.Tenant != "" {
			out = append(out, model.Freeze{Path: z.Path, Tenant: z.Tenant, Intent: z.Intent, Why: z.Why})
		}
		if z.Cluster == "" {
			continue
		}
		out = append(out, model.Freeze{Cluster: z.Cluster, Why: z.Why}) // for what is said of its offers
		seen := map[model.Freeze]bool{}
		for _, c := range slices.Concat(l.HeldBy(z.Cluster), l.Consumer(z.Cluster)) {
			fr := model.Freeze{Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name, Why: z.Why}
			if !seen[fr] {
				seen[fr] = true
				out = append(out, fr)
			}
		}
	}
	return out
}

// Offers are the market's, and for each contract whose flavor the market does
// not know one that offers nothing.
func Offers(s *market.Snapshot, l *ledger.Ledger) []*model.Offer {
	out := slices.Clone(s.Offers())
	for _, provider := range l.Providers() {
		last := ""
		for _, c := range l.HeldBy(provider) {
			if c.Spec.Flavor == last {
				continue
			}
			last = c.Spec.Flavor
			if s.Offer(provider, last) == nil {
				out = append(out, s.Missing(provider, last))
			}
		}
	}
	return out
}

// Observed joins what consumers say of each held contract with what its
// provider's newest report says is granted to or running under it. A provider
// counts as seen only while it has an agent that is heard: from a silent one
// nothing follows. Nor does anything follow for an unheard contract: what its
// provider reported before the slice was gone proves nothing, because the
// report of a grant may have been lost.
func Observed(l *ledger.Ledger, s *market.Snapshot, consumers v1alpha1.ConsumerObservations, unheard map[string]bool) map[string]v1alpha1.Observation {
	return observed(l, func(provider string) *word { return wordOf(s, provider) }, consumers, unheard)
}

// ObservedOf is Observed of a market that is known by its offers and by which
// providers were not heard.
func ObservedOf(l *ledger.Ledger, offers []*model.Offer, unseen map[string]bool, consumers v1alpha1.ConsumerObservations, unheard map[string]bool) map[string]v1alpha1.Observation {
	flavors := map[string][]*v1alpha1.Flavor{}
	for _, o := range offers {
		flavors[o.Flavor.Metadata.Namespace] = append(flavors[o.Flavor.Metadata.Namespace], o.Flavor)
	}
	return observed(l, func(provider string) *word {
		w := &word{seen: !unseen[provider]}
		for _, f := range flavors[provider] {
			w.hear(f)
		}
		return w
	}, consumers, unheard)
}

func observed(l *ledger.Ledger, say func(provider string) *word, consumers v1alpha1.ConsumerObservations, unheard map[string]bool) map[string]v1alpha1.Observation {
	out := make(map[string]v1alpha1.Observation, l.Held())
	for _, provider := range l.Providers() {
		w := say(provider)
		for _, c := range l.HeldBy(provider) {
			out[c.Metadata.Name] = w.of(c, consumers, unheard)
		}
	}
	return out
}

// Seen reports whether a provider's word counts: it has an agent that is heard.
func Seen(s *market.Snapshot, provider string) bool {
	state := s.Provider(provider)
	return state.Heard && !state.Static && state.State == model.Fresh
}

// word is what a provider's newest report says of contracts.
type word struct {
	// seen: it has an agent that is heard.
	seen bool
	// holds is what is granted to or runs under contracts and slices, by name.
	holds map[string]v1alpha1.Resources
}

func wordOf(s *market.Snapshot, provider string) *word {
	w := &word{seen: Seen(s, provider)}
	for _, o := range s.Of(provider) {
		w.hear(o.Flavor)
	}
	return w
}

// hear takes in what a flavor's report says is held.
func (w *word) hear(f *v1alpha1.Flavor) {
	if !w.seen {
		return
	}
	if w.holds == nil {
		w.holds = map[string]v1alpha1.Resources{}
	}
	for name, r := range f.Spec.Held {
		w.holds[name] = w.holds[name].Add(r)
	}
}

// of is what is said of a contract of the provider.
func (w *word) of(c *v1alpha1.Contract, consumers v1alpha1.ConsumerObservations, unheard map[string]bool) v1alpha1.Observation {
	name := c.Metadata.Name
	under, told := w.holds[name]
	if !told {
		under = w.holds[c.Spec.Slice] // claimed warm: agents report by slice
	}
	return v1alpha1.Observation{Consumer: consumers.Of(c.Spec.Consumer, name), ProviderSeen: w.seen && !unheard[name], ProviderHolds: under}
}
