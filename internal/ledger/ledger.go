package ledger

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/ordered"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Ledger is the contracts, states and spends of a fleet at one commit.
type Ledger struct {
	hash     tree.Hash
	tenants  map[string]*tenantNode
	problems []Problem
	held     int
	total    int
	aside    []v1alpha1.SetAsidePiece

	names     index // by name, all
	flavors   index // by provider, flavor and name, held
	consumers index // by consumer, tenant, shard and name, held
	booked    index // by provider, flavor and name, Booked

	// sold counts the held contracts of each provider; providers lists them.
	sold      map[string]int
	providers func() []string
}

type index = ordered.Map[*v1alpha1.Contract]

// The nodes mirror the directories; a node never changes once its ledger is
// published. hash is zero in a node that was changed by With and not read.
type tenantNode struct {
	hash     tree.Hash
	shards   map[string]*shardNode
	spends   map[string]*spendNode // by month
	problems []Problem             // of the tenant's own entries and all below
	totals   func() Totals
}

type shardNode struct {
	hash     tree.Hash
	intents  map[string]*intentNode
	problems []Problem
	totals   func() Totals
}

type intentNode struct {
	hash      tree.Hash
	state     *v1alpha1.IntentState
	contracts []*v1alpha1.Contract // by replica, part, ordinal
	problems  []Problem
}

type spendNode struct {
	hash  tree.Hash
	spend *v1alpha1.Spend
}

// Empty is a ledger without contracts.
func Empty() *Ledger {
	return &Ledger{
		tenants:   map[string]*tenantNode{},
		providers: func() []string { return nil },
	}
}

// SetAside are the pieces of the inputs that are not read, by path.
func (l *Ledger) SetAside() []v1alpha1.SetAsidePiece { return l.aside }

// Contract is the contract of a name, nil when there is none.
func (l *Ledger) Contract(name string) *v1alpha1.Contract {
	c, _ := l.names.Get(name)
	return c
}

// Contracts are all contracts, ended ones too, by name.
func (l *Ledger) Contracts() iter.Seq[*v1alpha1.Contract] {
	return func(yield func(*v1alpha1.Contract) bool) {
		for _, c := range l.names.From("") {
			if !yield(c) {
				return
			}
		}
	}
}

// Len is how many contracts there are, Held how many of them keep capacity.
func (l *Ledger) Len() int { return l.total }

// Held is how many contracts keep capacity.
func (l *Ledger) Held() int { return l.held }

// ByIntent is all contracts of an intent, ended ones too, by replica, part and
// ordinal.
func (l *Ledger) ByIntent(tenant, intent string) []*v1alpha1.Contract {
	if n := l.intent(tenant, intent); n != nil {
		return n.contracts
	}
	return nil
}

// State is what the ledger remembers of an intent, nil when it is unknown.
func (l *Ledger) State(tenant, intent string) *v1alpha1.IntentState {
	if n := l.intent(tenant, intent); n != nil {
		return n.state
	}
	return nil
}

// States are those of all intents, by tenant and name.
func (l *Ledger) States() iter.Seq[*v1alpha1.IntentState] {
	return func(yield func(*v1alpha1.IntentState) bool) {
		for _, name := range l.Tenants() {
			for _, s := range l.tenants[name].states() {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// StatesOf are those of one tenant's intents, by name.
func (l *Ledger) StatesOf(tenant string) []*v1alpha1.IntentState {
	if t := l.tenants[tenant]; t != nil {
		return t.states()
	}
	return nil
}

func (t *tenantNode) states() []*v1alpha1.IntentState {
	var out []*v1alpha1.IntentState
	for _, shard := range t.shards {
		for _, n := range shard.intents {
			if n.state != nil {
				out = append(out, n.state)
			}
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.IntentState) int {
		return strings.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	return out
}

// Tenants names the tenants that have anything in the ledger, in order.
func (l *Ledger) Tenants() []string { return sortedKeys(l.tenants) }

// Spends are what contracts that have left the tree cost a tenant, by month.
func (l *Ledger) Spends(tenant string) []*v1alpha1.Spend {
	t := l.tenants[tenant]
	if t == nil {
		return nil
	}
	out := make([]*v1alpha1.Spend, 0, len(t.spends))
	for _, month := range sortedKeys(t.spends) {
		out = append(out, t.spends[month].spend)
	}
	return out
}

// Spend is a tenant's spend file of a month ("2026-11"), nil when there is
// none.
func (l *Ledger) Spend(tenant, month string) *v1alpha1.Spend {
	if t := l.tenants[tenant]; t != nil && t.spends[month] != nil {
		return t.spends[month].spend
	}
	return nil
}

// HeldOn is the contracts that keep capacity of a flavor, by name.
func (l *Ledger) HeldOn(provider, flavor string) []*v1alpha1.Contract {
	return under(l.flavors, provider, flavor)
}

// BookedOn is the bookings of a flavor whose term has not begun, by name.
func (l *Ledger) BookedOn(provider, flavor string) []*v1alpha1.Contract {
	return under(l.booked, provider, flavor)
}

// Booked is how many bookings there are whose term has not begun.
func (l *Ledger) Booked() int { return l.booked.Len() }

// Bookings is all bookings whose term has not begun, by provider, flavor and name.
func (l *Ledger) Bookings() []*v1alpha1.Contract {
	out := make([]*v1alpha1.Contract, 0, l.booked.Len())
	for _, c := range l.booked.All() {
		out = append(out, c)
	}
	return out
}

// HeldBy is the contracts that keep capacity of a provider, by flavor and name.
func (l *Ledger) HeldBy(provider string) []*v1alpha1.Contract {
	return under(l.flavors, provider)
}

// Providers names those of which contracts keep capacity, in order. Every round
// asks: the list is made once, and must not be modified.
func (l *Ledger) Providers() []string { return l.providers() }

// Consumers names the clusters in which capacity of held contracts appears, in
// order.
func (l *Ledger) Consumers() []string { return heads(l.consumers) }

// Consumer is the held contracts whose capacity appears in a cluster, by
// tenant, shard and name.
func (l *Ledger) Consumer(name string) []*v1alpha1.Contract {
	return under(l.consumers, name)
}

// Totals is what a tenant's charged contracts come to.
func (l *Ledger) Totals(tenant string) Totals {
	if t := l.tenants[tenant]; t != nil {
		return t.totals().Clone()
	}
	return Totals{}
}

// ChargedContracts is how many charged contracts a tenant has: Totals' count without the rest.
func (l *Ledger) ChargedContracts(tenant string) int {
	if t := l.tenants[tenant]; t != nil {
		return t.totals().Contracts
	}
	return 0
}

func (l *Ledger) intent(tenant, intent string) *intentNode {
	t := l.tenants[tenant]
	if t == nil {
		return nil
	}
	s := t.shards[Shard(intent)]
	if s == nil {
		return nil
	}
	return s.intents[intent]
}

// key joins the parts of an index entry. Names hold no zero byte, so that no
// prefix of parts is a prefix of another one's.
func key(parts ...string) string { return strings.Join(parts, "\x00") + "\x00" }

func under(x index, parts ...string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	for _, c := range x.Under(key(parts...)) {
		out = append(out, c)
	}
	return out
}

// heads lists the distinct first parts of an index's keys.
func heads(x index) []string {
	var out []string
	for k, ok := x.Seek(""); ok; {
		head, _, _ := strings.Cut(k, "\x00")
		out = append(out, head)
		k, ok = x.Seek(head + "\x01")
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// once makes the totals of a node on first use.
func once(f func() Totals) func() Totals { return sync.OnceValue(f) }

// tenantContracts are all contracts of a tenant, in no particular order.
func (l *Ledger) tenantContracts(tenant string) iter.Seq[*v1alpha1.Contract] {
	return func(yield func(*v1alpha1.Contract) bool) {
		t := l.tenants[tenant]
		if t == nil {
			return
		}
		for _, s := range t.shards {
			for _, n := range s.intents {
				for _, c := range n.contracts {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}
