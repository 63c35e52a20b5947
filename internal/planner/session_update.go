package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// update brings a round up to date with its world.
type update struct {
	*round
	last *base // as the round before left it
	// dirty are intents of which no decision is cached any more, lost the intents that
	// came or went.
	dirty map[[2]string]bool
	lost  map[[2]string]bool
}

// offersChanged takes over what offers report; false when others are offered.
func (u *update) offersChanged() bool {
	old, now := u.last.own.given.Offers, u.W.Offers
	if len(old) != len(now) {
		return false
	}
	if len(now) == 0 || &old[0] == &now[0] {
		return true
	}
	for i := range now {
		if old[i] == now[i] || *old[i] == *now[i] {
			continue
		}
		o, next := u.Inventory.Handed(i), now[i]
		f, was := next.Flavor, o.Flavor
		if f.Metadata.Namespace != o.Provider || f.Metadata.Name != o.Name || f.Spec.Pool != was.Spec.Pool {
			return false
		}
		if f.Spec.Pool != "" && len(f.Spec.ScalableTo)+len(was.Spec.ScalableTo) > 0 && !was.SameButUse(f) {
			return false // what its mates could become depends on it
		}
		used := o.State == next.State && o.Price == next.Price && o.Location == next.Location && o.Static == next.Static && was.SameButUse(f)
		u.described(o, next, used)
	}
	return true
}

// tenantsChanged forgets what was worked out under tenants that are described
// otherwise; false when one of them is the fleet itself. Cached decisions stay: quick
// asks nothing of a tenant.
func (u *update) tenantsChanged() bool {
	for _, name := range differing(u.last.own.given.Tenants, u.given.Tenants) {
		if name == v1alpha1.FleetTenant {
			return false
		}
		u.Match.Forget(func(w *match.Request) bool { return w.Intent.Metadata.Namespace == name })
	}
	return true
}

// clustersChanged looks again at the offers of clusters that are described
// otherwise, and forgets what was worked out for them as consumers.
func (u *update) clustersChanged() {
	for _, name := range differing(u.last.own.given.Clusters, u.given.Clusters) {
		u.Match.Forget(func(w *match.Request) bool { return w.Consumer == name })
		for _, o := range u.Inventory.By(name) {
			u.described(o, o.Offer, false)
		}
	}
}

// differing are the keys with other values, or with one in only one of two.
func differing[V comparable](a, b map[string]V) (keys []string) {
	for k, v := range a {
		if w, both := b[k]; !both || w != v {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	return keys
}

// described takes over what is known of an offer; used: only what is used or held of
// it is another.
func (u *update) described(o *inventory.Offer, next *model.Offer, used bool) {
	u.Inventory.Describe(o, next, used)
	u.Match.Describe(o)
	for _, c := range o.Contracts {
		u.dirty[intentOf(c)] = true
	}
	if !used {
		u.Whole = nil
		u.Match.ForgetWorkload()
	}
}

func intentOf(c *v1alpha1.Contract) [2]string {
	return [2]string{c.Metadata.Namespace, c.Spec.Intent.Name}
}

// ledgerChanged takes over what the ledger holds.
func (u *update) ledgerChanged() {
	was, now := u.last.own.given.Ledger, u.W.Ledger
	left := map[string]*v1alpha1.Contract{}
	var came []*v1alpha1.Contract
	if was != now {
		for tenant, intent := range now.Differs(was) {
			u.lost[[2]string{tenant, intent}] = true
			for _, c := range was.ByIntent(tenant, intent) {
				left[c.Metadata.Name] = c
			}
			for _, c := range now.ByIntent(tenant, intent) {
				if left[c.Metadata.Name] == c {
					delete(left, c.Metadata.Name)
					continue
				}
				came = append(came, c)
			}
		}
	}
	places := map[*inventory.Offer]bool{}
	for _, c := range left {
		delete(u.refusals, c.Metadata.Name)
		u.Mapped.Add(u.last.own.given.Clusters, c, -1)
		u.Tally.Remove(&u.Moment, c)
		if o := u.OfferOf(c); o != nil {
			places[o] = true
		}
	}
	for _, c := range came {
		u.noteRefusal(c)
		u.Mapped.Add(u.last.own.given.Clusters, c, 1)
		u.Tally.Add(&u.Moment, c)
		if o := u.OfferOf(c); o != nil {
			places[o] = true
		}
	}
	for o := range places {
		u.Inventory.Recount(o, now.HeldOn(o.Provider, o.Name))
	}
	if len(differing(u.last.own.given.Clusters, u.given.Clusters)) > 0 {
		u.readMappings() // names at providers have the consumers' ids in them
	}
	for k := range u.lost {
		u.dirty[k] = true
		u.noteOrphan(k)
	}
}

// refusalsChanged looks again at the offers of providers that went out of the
// market or came back, and at those that were described by the marks of the
// round before, which may be others by now. marks are those that hold, nil is by the
// ledger.
func (u *update) refusalsChanged(marks map[string]draft.RefusalMark) {
	if u.Marks = marks; marks == nil {
		u.Marks = marksOf(u.refusals, u.W.Offers)
	}
	if len(u.Marks)+len(u.last.draft.Marks) == 0 {
		return
	}
	for _, o := range u.Inventory.Offers() {
		if u.blocked(o) != o.Blocked {
			u.described(o, o.Offer, false)
		}
	}
}

// observedChanged drops the cached decisions on whom clusters report something else of.
func (u *update) observedChanged() {
	for _, contract := range u.W.Observed.Differs(u.last.own.given.Observed) {
		if c := u.W.Ledger.Contract(contract); c != nil {
			u.dirty[intentOf(c)] = true
		}
	}
}

// remeasure makes figures again.
func (u *update) remeasure() {
	u.Inventory.Measure()
	if u.Inventory.Windowed() && u.Now != u.last.own.given.Now {
		u.Match.ForgetAll() // another price may hold
	}
}

// forget drops the cached decisions on intents that are to be looked at again: those
// too of which a contract was, or is, more than its flavor or a budget allows.
func (u *update) forget() {
	for _, name := range u.last.own.overfull {
		u.forgetContract(name)
	}
	for k := range u.dirty {
		u.forgetIntent(k)
	}
}

func (r *round) forgetContract(name string) {
	if c := r.W.Ledger.Contract(name); c != nil {
		r.forgetIntent(intentOf(c))
	}
}

func (r *round) forgetIntent(k [2]string) {
	at, found := r.PlaceOf(k[0], k[1])
	for ; found && at < len(r.Intents) && r.Intents[at].Metadata.Namespace == k[0] && r.Intents[at].Metadata.Name == k[1]; at++ {
		r.cached[at] = cachedDecision{}
	}
}
