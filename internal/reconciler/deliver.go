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
}

// to hands each consumer its manifests as they stand on the acknowledged
// ledger, and the overlays of the inputs beside them. A shadow only looks: it
// must not hold the clusters' Leases before those who write.
func (d *deliveries) to(to Delivery, in *inputs, shadow bool) error {
	if to == nil || d.ledger == in.heads.Ledger.Tree.Root && d.inputs == in.key {
		return nil
	}
	touched, samePeers := d.others(in)
	desired, needed := map[string]delivery.Desired{}, map[string]map[string]bool{}
	for name, c := range in.fleet.Clusters {
		if !c.HasRole("consumer") {
			continue
		}
		want := delivery.Desired{
			Cluster: c, Mode: modeOf(in.fleet.Policy, c),
			Commit: in.heads.Ledger.Commit.Hash,
		}
		if shadow {
			want.Mode = delivery.None
		}
		last, told := d.desired[name]
		told = told && !touched[name]
		want.Contracts, needed[name] = last.Contracts, d.needed[name]
		if !told {
			want.Contracts = in.ledger.Consumer(name)
			needed[name] = providersOf(want.Contracts)
		}
		if want.Peers = last.Peers; !told || !samePeers {
			want.Peers = peersOf(in.fleet, name, needed[name])
		}
		var err error
		if want.Tree, err = in.heads.Ledger.Tree.Sub(manifests.Dir(name)); err != nil {
			return fmt.Errorf("deliver to %s: %w", name, err)
		}
		if want.Overlay, err = in.heads.Inputs.Tree.Sub("overlays/" + name); err != nil {
			return fmt.Errorf("deliver to %s: %w", name, err)
		}
		desired[name] = want
	}
	to.Deliver(desired)
	*d = deliveries{in.heads.Ledger.Tree.Root, in.key, in.fleet, in.ledger, desired, needed}
	return nil
}

// others says of which consumers the contracts may not be as delivery was told
// last, and whether the same clusters may be their peers as then.
func (d *deliveries) others(in *inputs) (touched map[string]bool, samePeers bool) {
	if d.fleet == nil {
		return nil, false // nobody was told of anything
	}
	touched = map[string]bool{}
	for tenant, name := range in.ledger.Differs(d.of) {
		for _, c := range slices.Concat(in.ledger.ByIntent(tenant, name), d.of.ByIntent(tenant, name)) {
			touched[c.Spec.Consumer] = true
		}
	}
	return touched, maps.Equal(d.fleet.Clusters, in.fleet.Clusters) && reflect.DeepEqual(d.fleet.Policy.Peering, in.fleet.Policy.Peering)
}

// providersOf are those of which contracts want something delivered.
func providersOf(contracts []*v1alpha1.Contract) map[string]bool {
	needed := map[string]bool{}
	for _, c := range contracts {
		if c.Status.Phase.Held() && c.Spec.Stage != v1alpha1.StageReserve && !needed[c.Spec.Provider] {
			needed[c.Spec.Provider] = true
		}
	}
	return needed
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
// behind must not recreate what another has released. Safe for any goroutine.
func (r *Reconciler) Confirm(ctx context.Context, consumer string) (tree.Hash, error) {
	heads, err := r.opts.Repo.Fetch(ctx)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("confirm what %s shall have: %w", consumer, err)
	}
	if heads.Ledger.Commit.Hash != r.View().Ledger {
		r.Reread()
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
