package plantest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Start is the instant at which every world begins: a Friday at noon.
var Start = Time("2026-11-20T12:00:00Z")

// Time reads RFC 3339; it panics on bad input.
func Time(s string) v1alpha1.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return v1alpha1.TimeOf(t)
}

// Amounts reads "cpu=4 memory=8Gi gpu=2"; it panics on bad input.
func Amounts(s string) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for _, part := range strings.Fields(s) {
		name, text, _ := strings.Cut(part, "=")
		a, err := v1alpha1.ParseAmount(name, text)
		if err != nil {
			panic(err)
		}
		out[name] = a
	}
	return out
}

// Money is a decimal for a field that may be absent.
func Money(s string) *v1alpha1.Decimal {
	d := v1alpha1.MustDecimal(s)
	return &d
}

// Ptr is a pointer to v.
func Ptr[T any](v T) *T { return &v }

// Builder builds a world step by step.
type Builder struct {
	W planner.World
	// commits made so far; each change of an intent is one.
	commits int
}

// New is a world with a fleet that counts in EUR, an empty ledger and nothing
// else.
func New() *Builder {
	return &Builder{W: planner.World{
		Now: Start,
		Fleet: &v1alpha1.FleetSpec{
			Currency: "EUR", Timezone: "UTC",
			Rates: []v1alpha1.Rate{{From: "USD", To: "EUR", Rate: v1alpha1.MustDecimal("0.92"), Date: v1alpha1.Date{Time: Time("2026-11-01T00:00:00Z").Time}}},
		},
		FleetName: "acme", Clusters: map[string]*v1alpha1.Cluster{}, Tenants: map[string]*v1alpha1.Tenant{},
		Ledger: ledger.Empty(), Market: "market-1", Inputs: "inputs-0",
	}}
}

// Fleet changes the fleet's policy.
func (b *Builder) Fleet(change func(*v1alpha1.FleetSpec)) *Builder {
	f := *b.W.Fleet // worlds that were planned keep theirs
	change(&f)
	b.W.Fleet = &f
	return b
}

// Cluster adds or changes a cluster.
func (b *Builder) Cluster(name string, change func(*v1alpha1.Cluster)) *Builder {
	c := v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}}
	if old := b.W.Clusters[name]; old != nil {
		c = *old
		c.Spec.Roles = slices.Clone(c.Spec.Roles)
	}
	change(&c)
	b.W.Clusters = maps.Clone(b.W.Clusters)
	b.W.Clusters[name] = &c
	return b
}

// Consumer makes clusters consumers.
func (b *Builder) Consumer(names ...string) *Builder { return b.role("consumer", names) }

// Provider makes clusters providers.
func (b *Builder) Provider(names ...string) *Builder { return b.role("provider", names) }

func (b *Builder) role(role string, names []string) *Builder {
	for _, name := range names {
		b.Cluster(name, func(c *v1alpha1.Cluster) {
			if !c.HasRole(role) {
				c.Spec.Roles = append(c.Spec.Roles, role)
			}
		})
	}
	return b
}

// Tenant adds or changes a tenant.
func (b *Builder) Tenant(name, consumer string, changes ...func(*v1alpha1.TenantSpec)) *Builder {
	t := v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.TenantSpec{Consumers: []string{consumer}}}
	if old := b.W.Tenants[name]; old != nil {
		t = *old
	}
	for _, change := range changes {
		change(&t.Spec)
	}
	b.W.Tenants = maps.Clone(b.W.Tenants)
	b.W.Tenants[name] = &t
	return b
}

// Offer adds a flavor "<provider>/<name>" with 256 cores, 2Ti of memory and no
// cards, or changes it.
func (b *Builder) Offer(ref string, changes ...func(*model.Offer)) *Builder {
	provider, name, _ := strings.Cut(ref, "/")
	i := slices.IndexFunc(b.W.Offers, func(o *model.Offer) bool { return o.Flavor.Ref() == ref })
	o := model.Offer{Flavor: &v1alpha1.Flavor{
		Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
		Spec:     v1alpha1.FlavorSpec{Architecture: "amd64", Capacity: Amounts("cpu=256 memory=2Ti")},
	}}
	if i >= 0 {
		// A report is a new value: plans may still hold the old one.
		o = *b.W.Offers[i]
		f := *o.Flavor
		f.Spec.Capacity = f.Spec.Capacity.Clone()
		if f.Spec.GPU != nil {
			g := *f.Spec.GPU
			f.Spec.GPU = &g
		}
		o.Flavor = &f
	}
	for _, change := range changes {
		change(&o)
	}
	b.W.Offers = slices.Clone(b.W.Offers)
	if i >= 0 {
		b.W.Offers[i] = &o
	} else {
		b.W.Offers = append(b.W.Offers, &o)
	}
	return b
}

// Drop takes an offer out of the market.
func (b *Builder) Drop(ref string) *Builder {
	b.W.Offers = slices.DeleteFunc(slices.Clone(b.W.Offers), func(o *model.Offer) bool { return o.Flavor.Ref() == ref })
	return b
}

// Intent adds "<tenant>/<name>", or changes it; each call is a commit.
func (b *Builder) Intent(ref string, changes ...func(*model.Intent)) *Builder {
	tenant, name, _ := strings.Cut(ref, "/")
	b.commits++
	b.W.Inputs = fmt.Sprintf("inputs-%d", b.commits)
	i := slices.IndexFunc(b.W.Intents, func(in *model.Intent) bool {
		return in.Metadata.Namespace == tenant && in.Metadata.Name == name
	})
	in := model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant}}, Path: "intents/" + ref + ".yaml", Author: "Ada L. <ada@example.org>"}
	if i >= 0 {
		in = *b.W.Intents[i]
		doc := *in.ResourceIntent
		in.ResourceIntent = &doc
	}
	in.Commit = b.W.Inputs
	for _, change := range changes {
		change(&in)
	}
	in.Digest = Digest(in.ResourceIntent)
	if i >= 0 {
		b.W.Intents = slices.Clone(b.W.Intents)
		b.W.Intents[i] = &in
	} else {
		b.W.Intents = append(slices.Clip(b.W.Intents), &in)
	}
	return b
}

// Remove deletes an intent.
func (b *Builder) Remove(ref string) *Builder {
	b.commits++
	b.W.Inputs = fmt.Sprintf("inputs-%d", b.commits)
	b.W.Intents = slices.DeleteFunc(slices.Clone(b.W.Intents), func(in *model.Intent) bool {
		return in.Metadata.Namespace+"/"+in.Metadata.Name == ref
	})
	return b
}

// Digest of an intent's specification.
func Digest(in *v1alpha1.ResourceIntent) string {
	b, err := json.Marshal(in.Spec)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// Tick moves the world's time on.
func (b *Builder) Tick(d time.Duration) *Builder {
	b.W.Now = v1alpha1.TimeOf(b.W.Now.Add(d))
	return b
}

// Plan is what the planner decides about the world.
func (b *Builder) Plan() *planner.Plan {
	p := planner.Decide(b.W)
	if Watch != nil {
		Watch(p)
	}
	return p
}

// Watch is shown each plan that a Builder has made: set it before any test runs.
// It may be called by several goroutines.
var Watch func(*planner.Plan)

// Apply commits a plan.
func (b *Builder) Apply(p *planner.Plan) *Builder {
	b.W.Ledger = b.W.Ledger.With(p.LedgerChanges())
	return b
}

// Round plans, commits, and returns the plan.
func (b *Builder) Round() *planner.Plan {
	p := b.Plan()
	b.Apply(p)
	return p
}

// Observe sets what clusters report of a contract.
func (b *Builder) Observe(contract string, o v1alpha1.Observation) *Builder {
	b.W.Observed = b.W.Observed.With(map[string]v1alpha1.Observation{contract: o})
	return b
}

// Ready is what clusters report of a contract that works.
func Ready(c *v1alpha1.Contract) v1alpha1.Observation {
	return v1alpha1.Observation{
		ProviderSeen: true, ProviderHolds: c.Spec.Resources,
		Consumer: v1alpha1.ConsumerObservation{
			Reachable: true, Slice: v1alpha1.Present, Granted: c.Spec.Resources, VirtualNode: v1alpha1.Present,
			Node: v1alpha1.Present, NodeReady: true, Allocatable: c.Spec.Resources, Offloading: true,
		},
	}
}

// Gone is what clusters report of a contract of which nothing is left.
func Gone() v1alpha1.Observation {
	return v1alpha1.Observation{ProviderSeen: true, Consumer: v1alpha1.ConsumerObservation{
		Reachable: true, Slice: v1alpha1.Absent, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent,
	}}
}

// Deliver makes clusters do what the ledger states: charged contracts work,
// released ones are gone.
func (b *Builder) Deliver() *Builder {
	said := map[string]v1alpha1.Observation{}
	var gone []string
	for c := range b.W.Ledger.Contracts() {
		switch {
		case c.Status.Phase.Charged() && c.Spec.Stage != v1alpha1.StageReserve:
			said[c.Metadata.Name] = Ready(c)
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			said[c.Metadata.Name] = Gone()
		default:
			gone = append(gone, c.Metadata.Name)
		}
	}
	b.W.Observed = b.W.Observed.With(said, gone...)
	return b
}

// Waits makes pods wait on a consumer for room on an intent's nodes, n of
// requests each ("cpu=2 nvidia.com/gpu=1"), instead of those that waited for it before.
func (b *Builder) Waits(consumer, ref string, n int64, requests string) *Builder {
	d := b.demand(consumer)
	tenant, name, _ := strings.Cut(ref, "/")
	value := v1alpha1.IntentValue(tenant, name)
	d.Pending = slices.DeleteFunc(slices.Clone(d.Pending), func(p v1alpha1.PendingPods) bool { return slices.Equal(p.Intents, []string{value}) })
	if n > 0 {
		d.Pending = append(d.Pending, v1alpha1.PendingPods{Namespace: tenant, Intents: []string{value}, Requests: Amounts(requests), Pods: n})
	}
	return b
}

// Uses sets how many pods are on the node of a contract; none: since now, if it
// had some before.
func (b *Builder) Uses(c *v1alpha1.Contract, pods int64) *Builder {
	d := b.demand(c.Spec.Consumer)
	use := v1alpha1.NodeUse{Pods: pods}
	if pods == 0 {
		if use.IdleSince = d.Nodes[c.Spec.Slice].IdleSince; use.IdleSince.IsZero() {
			use.IdleSince = b.W.Now
		}
	}
	d.Nodes[c.Spec.Slice] = use
	return b
}

// demand is a new report of a consumer's demand, with what the last one had.
func (b *Builder) demand(consumer string) *v1alpha1.DemandSeen {
	next := &v1alpha1.DemandSeen{Nodes: map[string]v1alpha1.NodeUse{}}
	if was := b.W.Demand[consumer]; was != nil {
		next.Pending = was.Pending
		maps.Copy(next.Nodes, was.Nodes)
	}
	b.W.Demand = maps.Clone(b.W.Demand)
	if b.W.Demand == nil {
		b.W.Demand = map[string]*v1alpha1.DemandSeen{}
	}
	b.W.Demand[consumer] = next
	return next
}

// Contracts of an intent that are held, in order.
func (b *Builder) Contracts(ref string) []*v1alpha1.Contract {
	tenant, name, _ := strings.Cut(ref, "/")
	var out []*v1alpha1.Contract
	for _, c := range b.W.Ledger.ByIntent(tenant, name) {
		if c.Status.Phase.Held() {
			out = append(out, c)
		}
	}
	return out
}

// Of is the decision on an intent; it panics when there is none.
func Of(p *planner.Plan, ref string) planner.Decision {
	for i := range p.Intents {
		if p.Intents[i].Tenant+"/"+p.Intents[i].Name == ref {
			return *p.Intents[i]
		}
	}
	panic("no decision on " + ref)
}
