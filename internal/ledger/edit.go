package ledger

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/ordered"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// editor makes the next ledger: nodes on the way to a change are copied once,
// indexes are changed in transactions.
type editor struct {
	next *Ledger
	// fresh are the nodes that this editor made and may still change.
	freshTenants map[*tenantNode]bool
	freshShards  map[*shardNode]bool

	names, flavors, consumers, booked *ordered.Edit[*v1alpha1.Contract]
}

func edit(l *Ledger) *editor {
	next := *l
	next.hash = tree.Hash{}
	next.tenants = maps.Clone(l.tenants)
	next.sold = maps.Clone(l.sold)
	if next.sold == nil {
		next.sold = map[string]int{}
	}
	return &editor{
		next: &next, freshTenants: map[*tenantNode]bool{}, freshShards: map[*shardNode]bool{},
		names: l.names.Edit(), flavors: l.flavors.Edit(), consumers: l.consumers.Edit(), booked: l.booked.Edit(),
	}
}

func (e *editor) done() *Ledger {
	l := e.next
	l.names, l.flavors, l.consumers, l.booked = e.names.Done(), e.flavors.Done(), e.consumers.Done(), e.booked.Done()
	sold := l.sold
	l.providers = sync.OnceValue(func() []string { return sortedKeys(sold) })
	for name, t := range l.tenants {
		if e.freshTenants[t] {
			e.finish(name, t)
		}
	}
	return l
}

// finish drops what has become empty in a changed tenant and gathers what its
// nodes know of those below.
func (e *editor) finish(name string, t *tenantNode) {
	for xx, s := range t.shards {
		if !e.freshShards[s] {
			continue
		}
		for intent, n := range s.intents {
			if n.state == nil && len(n.contracts) == 0 && len(n.problems) == 0 {
				delete(s.intents, intent)
			}
		}
		if len(s.intents) == 0 && len(s.problems) == 0 {
			delete(t.shards, xx)
		}
	}
	if len(t.shards) == 0 && len(t.spends) == 0 && len(t.problems) == 0 {
		delete(e.next.tenants, name)
	}
}

func (e *editor) tenant(name string) *tenantNode {
	t := e.next.tenants[name]
	if t != nil && e.freshTenants[t] {
		return t
	}
	n := &tenantNode{shards: map[string]*shardNode{}, spends: map[string]*spendNode{}}
	if t != nil {
		n.shards, n.spends, n.problems = maps.Clone(t.shards), maps.Clone(t.spends), t.problems
	}
	n.totals = once(func() Totals {
		var sum Totals
		for _, xx := range sortedKeys(n.shards) {
			sum.addTotals(n.shards[xx].totals())
		}
		return sum
	})
	e.freshTenants[n] = true
	e.next.tenants[name] = n
	return n
}

func (e *editor) shard(tenant, xx string) *shardNode {
	t := e.tenant(tenant)
	s := t.shards[xx]
	if s != nil && e.freshShards[s] {
		return s
	}
	n := &shardNode{intents: map[string]*intentNode{}}
	if s != nil {
		n.intents, n.problems = maps.Clone(s.intents), s.problems
	}
	n.totals = once(func() Totals {
		var sum Totals
		for _, name := range sortedKeys(n.intents) {
			for _, c := range n.intents[name].contracts {
				sum.Add(c)
			}
		}
		return sum
	})
	e.freshShards[n] = true
	t.shards[xx] = n
	return n
}

// replace puts a changed copy of an intent's node in its place.
func (e *editor) replace(tenant, intent string, change func(*intentNode)) {
	s := e.shard(tenant, Shard(intent))
	n := &intentNode{}
	if old := s.intents[intent]; old != nil {
		n.state, n.contracts, n.problems = old.state, old.contracts, old.problems
	}
	change(n)
	s.intents[intent] = n
}

func (e *editor) setState(tenant, intent string, state *v1alpha1.IntentState) {
	e.replace(tenant, intent, func(n *intentNode) { n.state = state })
}

func (e *editor) putSpend(s *v1alpha1.Spend) {
	t := e.tenant(s.Metadata.Namespace)
	if len(s.Entries) == 0 {
		delete(t.spends, s.Metadata.Name)
		return
	}
	t.spends[s.Metadata.Name] = &spendNode{spend: s}
}

func (e *editor) putContract(c *v1alpha1.Contract) {
	if old, ok := e.names.Get(c.Metadata.Name); ok {
		e.removeContract(old)
	}
	e.replace(c.Metadata.Namespace, c.Spec.Intent.Name, func(n *intentNode) {
		list := append(slices.Clone(n.contracts), c)
		slices.SortFunc(list, byReplica)
		n.contracts = list
	})
	e.index(c)
}

func (e *editor) removeContract(c *v1alpha1.Contract) {
	old, ok := e.names.Get(c.Metadata.Name)
	if !ok {
		return
	}
	e.replace(old.Metadata.Namespace, old.Spec.Intent.Name, func(n *intentNode) {
		n.contracts = slices.DeleteFunc(slices.Clone(n.contracts), func(x *v1alpha1.Contract) bool {
			return x.Metadata.Name == old.Metadata.Name
		})
	})
	e.unindex(old)
}

func byReplica(a, b *v1alpha1.Contract) int {
	x, y := a.Spec.Intent, b.Spec.Intent
	return cmp.Or(cmp.Compare(x.Replica, y.Replica), cmp.Compare(x.Part, y.Part),
		cmp.Compare(x.Ordinal, y.Ordinal), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
}

func (e *editor) index(c *v1alpha1.Contract) {
	e.next.total++
	e.names.Set(c.Metadata.Name, c)
	if c.Status.Phase == v1alpha1.PhaseBooked {
		e.booked.Set(flavorKey(c), c)
	}
	if !c.Status.Phase.Held() {
		return
	}
	e.next.held++
	e.flavors.Set(flavorKey(c), c)
	e.next.sold[c.Spec.Provider]++
	e.consumers.Set(consumerKey(c), c)
}

// unindex takes out a contract that index put in.
func (e *editor) unindex(c *v1alpha1.Contract) {
	e.next.total--
	e.names.Delete(c.Metadata.Name)
	if c.Status.Phase == v1alpha1.PhaseBooked {
		e.booked.Delete(flavorKey(c))
	}
	if !c.Status.Phase.Held() {
		return
	}
	e.next.held--
	e.flavors.Delete(flavorKey(c))
	if e.next.sold[c.Spec.Provider]--; e.next.sold[c.Spec.Provider] == 0 {
		delete(e.next.sold, c.Spec.Provider)
	}
	e.consumers.Delete(consumerKey(c))
}

func flavorKey(c *v1alpha1.Contract) string {
	return key(c.Spec.Provider, c.Spec.Flavor, c.Metadata.Name)
}

func consumerKey(c *v1alpha1.Contract) string {
	return key(c.Spec.Consumer, c.Metadata.Namespace, Shard(c.Spec.Intent.Name), c.Metadata.Name)
}
