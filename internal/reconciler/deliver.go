package reconciler

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/providers"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// deliveries remembers what delivery was told, to tell it only of changes, and
// of what that was made: contracts and peers of a consumer are gone through
// again only when some of them are others.
type deliveries struct {
	ledger, inputs tree.Hash
	fleet          *fleet.Fleet
	of             *ledger.Ledger
	desired        map[string]delivery.Desired
	// needed are the providers that a consumer has contracts of.
	needed map[string]map[string]bool
	known  providers.Known // of the last ledger that was looked at
	// facts are what is rendered of clusters, by consumer.
	facts  map[string]*manifests.Facts
	waits  map[string]string
	shadow bool
	// id is the fleet's.
	id     string
	traces *traced.Keeper
}

// changes is what may be others since delivery was told last.
type changes struct {
	// touched are the consumers whose contracts may be others; all: nobody was told of anything.
	touched map[string]bool
	all     bool
	// clusters, peers: those of the fleet may be others.
	clusters, peers bool
}

// factsOf are the clusters that a consumer's contracts name: one pointer as long
// as they render alike.
func (d *deliveries) factsOf(in *inputs, since changes, consumer string) *manifests.Facts {
	last := d.facts[consumer]
	if last != nil && !since.all && !since.clusters && !since.touched[consumer] {
		return last
	}
	clusters := in.fleet.Delivered()
	now := &manifests.Facts{Clusters: map[string]*v1alpha1.Cluster{}, Fleet: d.id}
	note := func(name string) {
		if c := clusters[name]; c != nil {
			now.Clusters[name] = c
		}
	}
	note(consumer)
	for provider := range providers.Of(in.ledger.Consumer(consumer)) {
		note(provider)
	}
	if last != nil && last.Same(now) {
		return last
	}
	if d.facts == nil {
		d.facts = map[string]*manifests.Facts{}
	}
	d.facts[consumer] = now
	return now
}

// delivers reports whether this replica may write to clusters: the one that decides, and
// the others only where deliverers share what they see (package spread). Else the one
// that decides would not know what is gone where another one holds the Lease.
func (r *Reconciler) delivers() bool {
	if r.opts.Shadow {
		return false
	}
	s, ok := r.opts.Delivery.(interface{ Spreads() bool })
	return !r.standby || ok && s.Spreads()
}

// to hands each consumer its manifests as they stand on the acknowledged
// ledger, and the overlays of the inputs beside them. A shadow only looks: it
// must not hold the clusters' Leases before those who write. waits says why
// nothing is touched of a consumer whose manifests are not as rendered.
func (d *deliveries) to(to Delivery, in *inputs, shadow bool, waits map[string]string) error {
	if to == nil || d.ledger == in.heads.Ledger.Tree.Root && d.inputs == in.key && d.shadow == shadow && maps.Equal(d.waits, waits) {
		return nil
	}
	since := d.since(in)
	d.known.Follow(in.ledger, in.fleet)
	desired, needed := map[string]delivery.Desired{}, map[string]map[string]bool{}
	for name, c := range in.fleet.Clusters {
		if !c.HasRole("consumer") {
			continue
		}
		want := delivery.Desired{
			Cluster: c, Mode: modeOf(in.fleet.Policy, c), Facts: d.factsOf(in, since, name), Wait: waits[name],
			Commit: in.heads.Ledger.Commit.Hash,
		}
		if shadow {
			want.Mode = delivery.None
		}
		last, told := d.desired[name]
		told = told && !since.touched[name]
		want.Contracts, needed[name] = last.Contracts, d.needed[name]
		if !told {
			want.Contracts = in.ledger.Consumer(name)
			needed[name] = providers.Of(want.Contracts)
		}
		if want.Peers = last.Peers; !told || since.peers {
			want.Peers = peersOf(in.fleet, name, needed[name])
		}
		want.Traces = d.traces.Among(want.Contracts, manifests.SliceName)
		var err error
		if want.Tree, err = in.heads.Ledger.Tree.Sub(manifests.Dir(name)); err != nil {
			return fmt.Errorf("deliver to %s: %w", name, err)
		}
		if want.Overlay, err = manifests.OverlayOf(in.heads.Inputs.Tree, name); err != nil {
			return fmt.Errorf("deliver to %s: %w", name, err)
		}
		for at, why := range d.known.Conflicts() {
			if at[0] == name {
				if want.Refused == nil {
					want.Refused = map[string]string{}
				}
				want.Refused[at[1]] = why
			}
		}
		desired[name] = want
	}
	to.Deliver(desired)
	*d = deliveries{in.heads.Ledger.Tree.Root, in.key, in.fleet, in.ledger, desired, needed, d.known, d.facts, waits, shadow, d.id, d.traces}
	return nil
}

// since says what may be others than delivery was told last.
func (d *deliveries) since(in *inputs) changes {
	if d.fleet == nil {
		return changes{all: true, clusters: true, peers: true}
	}
	touched := map[string]bool{}
	for tenant, name := range in.ledger.Differs(d.of) {
		for _, c := range slices.Concat(in.ledger.ByIntent(tenant, name), d.of.ByIntent(tenant, name)) {
			touched[c.Spec.Consumer] = true
		}
	}
	same := d.fleet == in.fleet || maps.Equal(d.fleet.Clusters, in.fleet.Clusters)
	return changes{
		touched: touched, clusters: !same || d.fleet.Policy.Defaults.Delivery != in.fleet.Policy.Defaults.Delivery,
		peers: !same || !reflect.DeepEqual(d.fleet.Policy.Peering, in.fleet.Policy.Peering),
	}
}

// peersOf are the providers of the fleet as a consumer sees them, some of them
// needed; nil when somebody else peers clusters.
func peersOf(f *fleet.Fleet, consumer string, needed map[string]bool) map[string]delivery.Peer {
	if auto := f.Policy.Peering.Auto; auto != nil && !*auto {
		return nil
	}
	peers := map[string]delivery.Peer{}
	for name, c := range f.Clusters {
		if name == consumer || !c.HasRole("provider") {
			continue
		}
		peers[name] = delivery.Peer{
			Provider: c, Needed: needed[name], Undo: f.Policy.Peering.UnpeerWhenIdle,
			ConsumerID: manifests.LiqoID(f.Clusters, consumer), ProviderID: manifests.LiqoID(f.Clusters, name),
			OnConsumer: manifests.TenantNamespace(f.Clusters, consumer, name), OnProvider: manifests.TenantNamespace(f.Clusters, name, consumer),
		}
	}
	return peers
}

// Confirm asks the remote what a consumer shall have now: a daemon that lags
// behind must not recreate what another has released. Nothing is confirmed by a
// ledger that holds edits of others, which may have set it back to just what that
// daemon knows. Safe for any goroutine.
func (r *Reconciler) Confirm(ctx context.Context, consumer string) (tree.Hash, error) {
	heads, err := r.opts.Repo.Fetch(ctx)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("confirm what %s shall have: %w", consumer, err)
	}
	if heads.Ledger.Commit.Hash != r.View().Ledger {
		r.Reread()
	}
	foreign, err := r.opts.Repo.Foreign(ctx, heads.Accepted.Ledger, heads.Ledger.Commit.Hash, nil)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("confirm what %s shall have: %w", consumer, err)
	}
	if len(foreign) > 0 {
		return tree.Hash{}, fmt.Errorf("confirm what %s shall have: the ledger holds edits of generated files by %s in %s, which are undone first", consumer, foreign[0].Commit.Author.Name, foreign[0].Commit.Hash.Short())
	}
	sub, err := heads.Ledger.Tree.Sub(manifests.Dir(consumer))
	if err != nil {
		return tree.Hash{}, fmt.Errorf("confirm what %s shall have: %w", consumer, err)
	}
	return sub.Root, nil
}

func modeOf(f *v1alpha1.FleetSpec, c *v1alpha1.Cluster) string {
	if c.Spec.Delivery != "" {
		return c.Spec.Delivery
	}
	return f.Defaults.Delivery
}
