package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// modeReview is the mode of writeBack in which intents wait for review.
const modeReview = "pull-request"

// Round is what a Keeper writes a record of.
type Round struct {
	// Base and Accepted as in the Record.
	Base, Accepted tree.Hash
	// In is what World was made of, and Plan what became of it.
	In    world.Input
	World *planner.World
	Plan  *planner.Plan
	// Authors of intents, by path.
	Authors map[string]Author
	// Requests of this round that are not on Base, by path.
	Requests map[string][]byte
	// Unread as in the Record.
	Unread []fleet.Unread
}

// Keeper writes records of rounds, of each what is different from the last. The
// zero value is ready.
type Keeper struct {
	market    *market.Snapshot
	withdrawn map[string][]string // names of withdrawn flavors, by provider
	observed  planner.Observations
	ledger    *ledger.Ledger
	// odd are contracts of which consumers do not say the usual, with what they say.
	odd    map[string]string
	silent bool
	// filed are the flavors that stand in files, by provider, of fleet.
	filed map[string][]string
	files []*v1alpha1.Flavor
}

// Record is what a round knew.
func (k *Keeper) Record(r Round) (*Record, error) {
	out := &Record{
		Base: hashText(r.Base), Accepted: hashText(r.Accepted), Deaf: r.World.Deaf, AllowEnds: r.World.AllowEnds,
		ForceRelease: trues(r.World.ForceRelease), Removed: removed(r.World.RemovedBy, r.Plan), Authors: r.Authors,
		Reported: k.reported(r.In), Unread: r.Unread, Unheard: trues(r.In.Unheard), Demand: demand(r.World),
	}
	for path, text := range r.Requests {
		if out.Requests == nil {
			out.Requests = make(map[string]string, len(r.Requests))
		}
		out.Requests[path] = string(text)
	}
	var err error
	if out.Kept, err = r.In.Fleet.Kept(); err != nil {
		return nil, err
	}
	if r.In.Fleet.Policy.WriteBack.Mode == modeReview {
		out.waiting(r.World.Intents)
	}
	for _, provider := range r.In.Ledger.Providers() {
		if !world.Seen(r.In.Market, provider) {
			out.Unseen = append(out.Unseen, provider)
		}
	}
	slices.Sort(out.Unseen)
	k.offers(r, out)
	if err := k.said(r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// waiting adds which intents wait for review, and since when.
func (r *Record) waiting(intents []*model.Intent) {
	r.Since = map[string]v1alpha1.Time{}
	for _, it := range intents {
		name := it.Metadata.Namespace + "/" + it.Metadata.Name
		if !it.Since.IsZero() {
			r.Since[name] = it.Since
		}
		if it.Offered {
			r.Offered = append(r.Offered, name)
		}
	}
	slices.Sort(r.Offered)
}

func trues(set map[string]bool) []string {
	var out []string
	for name, is := range set {
		if is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// removed is who deleted the files of contracts that change, and of those that are
// held back: of others nothing depends on it.
func removed(by map[string]string, p *planner.Plan) map[string]string {
	out := map[string]string{}
	for _, path := range p.Removed {
		if who, ok := by[path]; ok {
			out[path] = who
		}
	}
	for _, c := range p.Contracts {
		if c.Before == nil {
			continue
		}
		if who, ok := by[c.Before.Spec.Intent.Path]; ok {
			out[c.Before.Spec.Intent.Path] = who
		}
	}
	return out
}

// demand is kept only where somebody follows it.
func demand(w *planner.World) map[string]*v1alpha1.DemandSeen {
	if len(w.Demand) == 0 || !slices.ContainsFunc(w.Intents, func(it *model.Intent) bool { return it.Spec.Replicas.Range }) {
		return nil
	}
	return w.Demand
}

// reported are the flavors of files that are not used because the provider's
// agent reports them.
func (k *Keeper) reported(in world.Input) []string {
	if !sameList(k.files, in.Fleet.Flavors) {
		k.files, k.filed = in.Fleet.Flavors, filed(in.Fleet)
	}
	var out []string
	for provider, names := range k.filed {
		if in.Market.Provider(provider).Static {
			continue
		}
		for _, name := range names {
			if o := in.Market.Offer(provider, name); o != nil && !o.Static {
				out = append(out, provider+"/"+name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func filed(f *fleet.Fleet) map[string][]string {
	out := map[string][]string{}
	for _, fl := range f.Flavors {
		out[fl.Metadata.Namespace] = append(out[fl.Metadata.Namespace], fl.Metadata.Name)
	}
	return out
}

// offers adds what the market's tree leaves out.
func (k *Keeper) offers(r Round, out *Record) {
	now := r.In.Market
	look := now.Providers()
	if k.market != nil {
		look = now.Differs(k.market)
	} else {
		k.withdrawn = map[string][]string{}
	}
	for _, provider := range look {
		delete(k.withdrawn, provider)
		for _, o := range now.Of(provider) {
			if o.State == model.Withdrawn {
				k.withdrawn[provider] = append(k.withdrawn[provider], o.Flavor.Metadata.Name)
			}
		}
	}
	k.market = now
	for _, provider := range slices.Sorted(maps.Keys(k.withdrawn)) {
		for _, name := range k.withdrawn[provider] {
			out.Offers = append(out.Offers, offerOf(now.Offer(provider, name)))
		}
	}
	missing := r.World.Offers[len(now.Offers()):] // the market's come first
	for i := range missing {
		one := offerOf(missing[i])
		one.Missing = true
		out.Offers = append(out.Offers, one)
	}
}

func offerOf(o *model.Offer) Offer {
	return Offer{Flavor: o.Flavor, State: o.State, Since: o.Since, GraceEnds: o.GraceEnds, Static: o.Static}
}

// said adds what consumers say. Of most contracts they say the usual: that all
// is in order, or nothing at all.
func (k *Keeper) said(r Round, out *Record) error {
	l, now := r.In.Ledger, r.World.Observed
	if k.ledger == nil {
		if err := k.lookAtAll(l, now, false); err != nil {
			return err
		}
	} else {
		look := now.Differs(k.observed)
		if l != k.ledger {
			for tenant, intent := range l.Differs(k.ledger) {
				for _, c := range slices.Concat(k.ledger.ByIntent(tenant, intent), l.ByIntent(tenant, intent)) {
					look = append(look, c.Metadata.Name)
				}
			}
		}
		for _, name := range look {
			if err := k.look(l, now, name); err != nil {
				return err
			}
		}
	}
	if len(k.odd) > l.Held()/2+16 { // perhaps the other is the usual
		odd, silent := k.odd, k.silent
		if err := k.lookAtAll(l, now, !silent); err != nil {
			return err
		}
		if len(k.odd) > len(odd) {
			k.odd, k.silent = odd, silent
		}
	}
	k.ledger, k.observed = l, now
	out.Silent = k.silent
	groups := map[string][]string{}
	for name, what := range k.odd {
		groups[what] = append(groups[what], name)
	}
	for _, what := range slices.Sorted(maps.Keys(groups)) {
		var s Said
		if err := json.Unmarshal([]byte(what), &s); err != nil {
			return fmt.Errorf("read what was said: %w", err)
		}
		s.Of = groups[what]
		slices.Sort(s.Of)
		out.Said = append(out.Said, s)
	}
	return nil
}

func (k *Keeper) lookAtAll(l *ledger.Ledger, now planner.Observations, silent bool) error {
	k.odd, k.silent = map[string]string{}, silent
	for c := range l.Contracts() {
		if err := k.look(l, now, c.Metadata.Name); err != nil {
			return err
		}
	}
	return nil
}

// look notes what consumers say of a contract, if it is not the usual.
func (k *Keeper) look(l *ledger.Ledger, now planner.Observations, name string) error {
	delete(k.odd, name)
	c := l.Contract(name)
	if c == nil || !c.Status.Phase.Held() {
		return nil
	}
	s := saidOf(c, now.Of(name).Consumer)
	if same(s, usual(k.silent)) {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write what is said of %s: %w", name, err)
	}
	k.odd[name] = string(text)
	return nil
}

// saidOf is what is said of a contract, in the form in which many are alike.
func saidOf(c *v1alpha1.Contract, what v1alpha1.ConsumerObservation) Said {
	s := Said{What: what}
	if what.Granted.Equal(c.Spec.Resources) && what.Allocatable.Equal(c.Spec.Resources) && len(c.Spec.Resources) > 0 {
		s.Whole, s.What.Granted, s.What.Allocatable = true, nil, nil
	}
	return s
}

// usual is what is said of most contracts: nothing, or that all is in order.
func usual(silent bool) Said {
	if silent {
		return Said{}
	}
	return Said{Whole: true, What: v1alpha1.ConsumerObservation{
		Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, NodeReady: true, Offloading: true,
	}}
}

func same(a, b Said) bool {
	return a.Whole == b.Whole && planner.SameObservation(v1alpha1.Observation{Consumer: a.What}, v1alpha1.Observation{Consumer: b.What})
}
