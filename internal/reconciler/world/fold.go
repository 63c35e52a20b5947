package world

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Folder makes world after world of parts that change little in between. A
// world is the one that Build would make, but it costs what has changed since
// the one before: providers of which the market says something else, intents
// whose contracts are others, contracts of which consumers say something else.
// What is as it was keeps its address, so that the planner, too, sees at once
// what has changed.
//
//	intents             while Fleet and Authors are the same; one by one where its document and author are
//	offers              by Snapshot.Differs; all anew when flavors come or go
//	observed            by Snapshot.Differs, Ledger.Differs and Observed
//	missing flavors     looked at in every world: time alone changes them
//
// All snapshots must be of one market. The zero value is ready. One goroutine at
// a time may use a Folder; worlds may be shared.
type Folder struct {
	last Input // Market nil: none yet
	made planner.World
	// spans are where in the offers those of each provider stand; from known on
	// stand the missing.
	spans map[string]span
	known int
}

type span struct{ from, to int }

// Fold makes the World.
func (f *Folder) Fold(in Input) planner.World {
	first := f.last.Market == nil
	w := planner.World{
		Now: in.Now, Fleet: in.Fleet.Policy, FleetName: in.Fleet.Name, Clusters: in.Fleet.Clusters, Tenants: in.Fleet.Tenants,
		Inputs: in.Inputs, Ledger: in.Ledger, Market: in.Market.Tree().Root.String(), Demand: in.Market.Demand(),
		RemovedBy: in.RemovedBy, Deaf: in.Deaf, AllowEnds: in.AllowEnds, ForceRelease: in.ForceRelease, Policies: in.Fleet.Policies,
	}
	sameFleet := !first && in.Fleet == f.last.Fleet
	if sameFleet && in.Authors != 0 && in.Authors == f.last.Authors {
		w.Intents = f.made.Intents
	} else {
		w.Intents = f.intents(in)
	}
	if sameFleet && in.Ledger == f.last.Ledger {
		w.Frozen = f.made.Frozen
	} else {
		w.Frozen = Frozen(in.Fleet, in.Ledger)
	}
	if first {
		w.Offers = f.allOffers(in)
		w.Observed = planner.Observations{}.With(Observed(in.Ledger, in.Market, in.Observed, in.Unheard))
	} else {
		providers := in.Market.Differs(f.last.Market)
		contracts := f.contracts(in)
		w.Offers = f.offers(in, providers, contracts)
		w.Observed = f.observed(in, providers, contracts)
	}
	f.last, f.made = in, w
	return w
}

// intents are the fleet's. One of which nothing has changed keeps its address.
// Nearly all are those of before, at both ends: where it is known whose authors
// may be others, only what lies between is walked.
func (f *Folder) intents(in Input) []*model.Intent {
	now, was, made := in.Fleet.Intents, []*model.Intent(nil), f.made.Intents
	if f.last.Fleet != nil {
		was = f.last.Fleet.Intents
	}
	head, tail, follows := 0, 0, f.last.Authors != 0 && in.Authors == f.last.Authors+1
	if follows {
		head, tail = model.SameEnds(was, now)
	}
	out := make([]*model.Intent, len(now))
	copy(out, made[:head])
	copy(out[len(now)-tail:], made[len(made)-tail:])
	last, k := was[:len(was)-tail], head
	for i := head; i < len(now)-tail; i++ {
		it := now[i]
		for k < len(last) && last[k].ResourceIntent != it.ResourceIntent && last[k].Compare(it.Metadata.Namespace, it.Metadata.Name) < 0 {
			k++
		}
		if k < len(last) && last[k].ResourceIntent == it.ResourceIntent {
			if *last[k] == *it {
				out[i] = made[k]
			}
			k++
		}
		out[i] = credited(out[i], it, in.Author)
	}
	if follows {
		for _, key := range in.Asked {
			for i, to := model.Called(now, key[0], key[1]); i < to; i++ {
				out[i] = credited(out[i], now[i], in.Author)
			}
		}
	}
	return out
}

// credited is an intent with its author: as it was made, if that says the same.
func credited(made *model.Intent, it *model.Intent, by func(*model.Intent) (commit, author string)) *model.Intent {
	commit, author := "", ""
	if by != nil {
		commit, author = by(it)
	}
	if made != nil && made.Commit == commit && made.Author == author {
		return made
	}
	return Intent(it, func(*model.Intent) (string, string) { return commit, author })
}

// contracts are those that are not the very values that they were in the last
// ledger, or have left it: as they were and as they are.
func (f *Folder) contracts(in Input) (out []*v1alpha1.Contract) {
	if in.Ledger == f.last.Ledger {
		return nil
	}
	for tenant, intent := range in.Ledger.Differs(f.last.Ledger) {
		was, now := f.last.Ledger.ByIntent(tenant, intent), in.Ledger.ByIntent(tenant, intent)
		for _, c := range was {
			if !slices.Contains(now, c) {
				out = append(out, c)
			}
		}
		for _, c := range now {
			if !slices.Contains(was, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// allOffers makes the offers anew.
func (f *Folder) allOffers(in Input) []*model.Offer {
	list := Offers(in.Market, in.Ledger)
	f.spans, f.known = map[string]span{}, len(in.Market.Offers())
	for i := range f.known {
		name := list[i].Flavor.Metadata.Namespace
		s, begun := f.spans[name]
		if !begun {
			s.from = i
		}
		s.to = i + 1
		f.spans[name] = s
	}
	return list
}

// offers are the last ones with what has changed of these providers and of the
// flavors of these contracts. The list is copied before it is written: worlds
// before it share it.
func (f *Folder) offers(in Input, providers []string, contracts []*v1alpha1.Contract) []*model.Offer {
	list, own := f.made.Offers, false
	set := func(i int, o *model.Offer) {
		if *list[i] == *o {
			return
		}
		if !own {
			list, own = slices.Clone(list), true
		}
		list[i] = o
	}
	for _, name := range providers {
		now, s := in.Market.Of(name), f.spans[name]
		if len(now) != s.to-s.from {
			return f.allOffers(in)
		}
		for i, o := range now {
			if list[s.from+i].Flavor.Metadata.Name != o.Flavor.Metadata.Name {
				return f.allOffers(in)
			}
			set(s.from+i, o)
		}
	}
	for _, c := range contracts {
		if in.Market.Offer(c.Spec.Provider, c.Spec.Flavor) == nil {
			return f.allOffers(in) // it may be the first or the last on a missing flavor
		}
	}
	for i := f.known; i < len(list); i++ {
		was := list[i]
		now := *in.Market.Missing(was.Flavor.Metadata.Namespace, was.Flavor.Metadata.Name)
		now.Flavor = was.Flavor // is the same by name
		set(i, &now)
	}
	return list
}

// observed is what is said of contracts, the last with what has changed: of
// these contracts, of all on these providers, and of those of which consumers
// say something else.
func (f *Folder) observed(in Input, providers []string, contracts []*v1alpha1.Contract) planner.Observations {
	said, gone := map[string]v1alpha1.Observation{}, []string(nil)
	words := map[string]*word{}
	look := func(c *v1alpha1.Contract) {
		name := c.Metadata.Name
		w := words[c.Spec.Provider]
		if w == nil {
			w = wordOf(in.Market, c.Spec.Provider)
			words[c.Spec.Provider] = w
		}
		if now := w.of(c, in.Observed, in.Unheard); !planner.SameObservation(now, f.made.Observed.Of(name)) {
			said[name] = now
		}
	}
	for _, provider := range providers {
		for _, c := range in.Ledger.HeldBy(provider) {
			look(c)
		}
	}
	again := func(name string) {
		if c := in.Ledger.Contract(name); c != nil && c.Status.Phase.Held() {
			look(c)
		} else {
			gone = append(gone, name)
		}
	}
	for _, c := range contracts {
		again(c.Metadata.Name)
	}
	for name := range in.Unheard {
		if !f.last.Unheard[name] {
			again(name)
		}
	}
	for name := range f.last.Unheard {
		if !in.Unheard[name] {
			again(name)
		}
	}
	for _, cluster := range in.Observed.Differs(f.last.Observed) {
		was, now := f.last.Observed[cluster], in.Observed[cluster]
		for name, said := range now {
			if before, both := was[name]; !both || !before.Equal(&said) {
				again(name)
			}
		}
		for name := range was {
			if _, still := now[name]; !still {
				again(name)
			}
		}
	}
	return f.made.Observed.With(said, gone...)
}
