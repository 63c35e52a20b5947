package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// maxMarketFile bounds one provider's file of a market's tree.
const maxMarketFile = 64 << 20

// Known is everything that a round knew.
type Known struct {
	Now v1alpha1.Time
	// Inputs is the commit of the inputs, Fleet what it says.
	Inputs string
	Fleet  *fleet.Fleet
	Ledger *ledger.Ledger
	// Market is the tree of the snapshot.
	Market tree.Tree
	*Record
}

// World is the planner's of that round.
func (k Known) World() (planner.World, error) {
	offers, err := k.offers()
	if err != nil {
		return planner.World{}, err
	}
	f, alone, reached := k.Fleet, set(k.Heard), set(k.Reached)
	for _, o := range offers { // nothing followed from a silence that was of one daemon alone
		if (o.State == model.Silent || o.State == model.Lost) && alone[o.Flavor.Metadata.Namespace] {
			o.State = model.Elsewhere
		}
	}
	w := planner.World{
		Now: k.Now, Fleet: f.Policy, FleetName: f.Name, Clusters: f.Clusters, Tenants: f.Tenants,
		Intents: world.Intents(f, k.author), Frozen: world.Frozen(f, k.Ledger), Inputs: k.Inputs, Ledger: k.Ledger,
		Offers: offers, Market: k.Market.Root.String(), Demand: k.Demand, RemovedBy: k.Removed, Deaf: k.Deaf, AllowEnds: k.AllowEnds,
		ForceRelease: set(k.ForceRelease), Policies: f.Policies,
	}
	offered := set(k.Offered)
	for _, it := range w.Intents {
		name := it.Metadata.Namespace + "/" + it.Metadata.Name
		it.Since, it.Offered = k.Since[name], offered[name]
	}
	consumers := k.consumers()
	for name, contracts := range consumers {
		for contract, o := range contracts {
			if reached[name] && !o.Reachable { // another daemon, which wrote the reason, reached it
				o.Bystander = true
				contracts[contract] = o
			}
		}
	}
	w.Observed = planner.Observations{}.With(world.ObservedOf(k.Ledger, offers, set(k.Unseen), consumers, set(k.Unheard)))
	return w, nil
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

func (k Known) author(it *model.Intent) (commit, author string) {
	if strings.HasPrefix(it.Path, ledger.RequestsRoot+"/") {
		return "", world.AskedBy(it.Metadata.Annotations)
	}
	if commit, author, ok := k.Fleet.Sourced(it.Path); ok {
		return commit, author
	}
	a := k.Authors[it.Path]
	return a.Commit, a.Author
}

// offers are those of the market's tree, priced and placed as the inputs say,
// and those that the record adds.
func (k Known) offers() ([]*model.Offer, error) {
	entries, err := k.Market.Entries()
	if err != nil {
		return nil, fmt.Errorf("read the market's tree: %w", err)
	}
	known := map[string]model.Offer{}
	var flavors []*v1alpha1.Flavor
	for _, e := range entries {
		content, err := k.Market.Store.File(e.Hash, maxMarketFile)
		if err != nil {
			return nil, fmt.Errorf("read the market's %s: %w", e.Name, err)
		}
		list, err := market.ParseBlob(content)
		if err != nil {
			return nil, fmt.Errorf("read the market's %s: %w", e.Name, err)
		}
		for _, f := range list {
			state, since, ends := market.StateOf(f)
			market.Plain(f)
			known[f.Ref()] = model.Offer{State: state, Since: since, GraceEnds: ends}
			flavors = append(flavors, f)
		}
	}
	for _, f := range k.Fleet.Flavors {
		if f.Spec.Capacity == nil { // facts of what an agent reports: the price has some of them
			flavors = append(flavors, f)
		}
		if o, ok := known[f.Ref()]; ok && !slices.Contains(k.Reported, f.Ref()) {
			o.Static = true
			known[f.Ref()] = o
		}
	}
	reported := map[string]bool{}
	for ref, o := range known {
		reported[ref] = !o.Static
	}
	var missing []*model.Offer
	for _, o := range k.Offers {
		one := model.Offer{Flavor: o.Flavor, State: o.State, Since: o.Since, GraceEnds: o.GraceEnds, Static: o.Static}
		if !o.Missing {
			known[o.Flavor.Ref()], reported[o.Flavor.Ref()] = one, !o.Static
			flavors = append(flavors, o.Flavor)
			continue
		}
		if c := k.Fleet.Clusters[o.Flavor.Metadata.Namespace]; c != nil {
			one.Location = c.Spec.Location
		}
		missing = append(missing, &one)
	}
	m := market.New(market.Options{Now: func() time.Time { return k.Now.Time }})
	m.SetInputs(market.Inputs{Fleet: k.Fleet.Policy, Clusters: k.Fleet.Clusters, Flavors: flavors, Prices: k.Fleet.Prices, Reported: reported})
	var out []*model.Offer
	for _, o := range m.Snapshot().Offers() {
		is := known[o.Flavor.Ref()]
		is.Flavor, is.Price, is.Location, is.Sources = o.Flavor, o.Price, o.Location, o.Sources
		out = append(out, &is)
	}
	return append(out, missing...), nil
}

// consumers is what they said, by cluster and contract.
func (k Known) consumers() v1alpha1.ConsumerObservations {
	said := map[string]Said{}
	for _, s := range k.Said {
		for _, name := range s.Of {
			said[name] = s
		}
	}
	out := v1alpha1.ConsumerObservations{}
	for c := range k.Ledger.Contracts() {
		if !c.Status.Phase.Held() {
			continue
		}
		s, odd := said[c.Metadata.Name]
		if !odd {
			s = usual(k.Silent)
		}
		if s.Whole {
			s.What.Granted, s.What.Allocatable = c.Spec.Resources, c.Spec.Resources
		}
		of := out[c.Spec.Consumer]
		if of == nil {
			of = map[string]v1alpha1.ConsumerObservation{}
			out[c.Spec.Consumer] = of
		}
		of[c.Metadata.Name] = s.What
	}
	return out
}
