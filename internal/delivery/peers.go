package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/peering"
)

// How often peerings are looked at: often enough to mend one that somebody
// took away within minutes, at a handful of calls each.
const (
	peerInterval = 5 * time.Minute
	peerTimeout  = 30 * time.Second
)

// kindPeering is the kind under which a peering's trouble is told.
const kindPeering kind = "Peering"

// Peer is a provider that a consumer may need slices of.
type Peer struct {
	// Provider describes it.
	Provider *v1alpha1.Cluster
	// Needed: the consumer holds a contract with it. A peering that is not
	// needed is not made, and one that is there is undone if Undo says so.
	Needed, Undo bool
	// ConsumerID and ProviderID are Liqo's ids of the two clusters.
	ConsumerID, ProviderID string
	// OnConsumer and OnProvider are the namespaces of Liqo for the other side.
	OnConsumer, OnProvider string
}

// peer keeps the consumer's peerings as they should be while the session
// lasts. It is beside the passes: a provider that does not answer delays none.
func (w *worker) peer(ctx context.Context, config *rest.Config) {
	due := map[string]time.Time{}
	pause := newPause()
	for {
		wait := peerInterval
		if w.mayWrite() {
			if w.peerAll(ctx, config, due) {
				pause = newPause()
			} else {
				wait = pause.Step()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.peers:
		case <-w.options.Clock.After(wait):
		}
	}
}

// mayWrite reports whether it is this daemon that changes the cluster.
func (w *worker) mayWrite() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.speaks()
}

// peerAll looks at each peering that is due, and reports whether all are as
// they should be.
func (w *worker) peerAll(ctx context.Context, config *rest.Config, due map[string]time.Time) bool {
	w.mu.Lock()
	peers := w.target.Peers
	w.mu.Unlock()
	w.forgetPeerings(peers)
	good := true
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		p := peers[name]
		if !p.Needed && !p.Undo || w.options.Clock.Now().Before(due[name]) && p.Needed {
			continue
		}
		next, err := w.peerWith(ctx, config, p)
		if ctx.Err() != nil || !w.mayWrite() { // the Lease was lost meanwhile: nothing of it is ours to tell
			return true
		}
		w.tellPeering(name, err)
		good = good && err == nil
		delete(due, name)
		if err == nil && p.Needed {
			due[name] = next
		}
	}
	return good
}

// peerWith makes or undoes one peering and says when to look at it again.
func (w *worker) peerWith(ctx context.Context, config *rest.Config, p Peer) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	now := w.options.Clock.Now()
	here := peering.Side{
		Name: w.name, ID: p.ConsumerID, Namespace: p.OnConsumer,
		Config: func(context.Context) (*rest.Config, error) { return config, nil },
	}
	there := peering.Side{
		Name: p.Provider.Metadata.Name, ID: p.ProviderID, Namespace: p.OnProvider,
		Config: func(ctx context.Context) (*rest.Config, error) { return w.options.Access.RESTConfig(ctx, p.Provider) },
	}
	if !p.Needed {
		return now, peering.Undo(ctx, here, there)
	}
	state, err := peering.Ensure(ctx, here, there, now)
	next := now.Add(peerInterval)
	if !state.Renew.IsZero() && state.Renew.Before(next) {
		next = state.Renew
	}
	return next, err
}

// forgetPeerings drops the trouble of peerings that nobody needs any more, and
// that are left as they are.
func (w *worker) forgetPeerings(peers map[string]Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.trouble {
		if p := peers[k.Name]; k.Kind == kindPeering && !p.Needed && !p.Undo {
			delete(w.trouble, k)
		}
	}
}

// tellPeering says what is wrong with a peering, or that nothing is.
func (w *worker) tellPeering(provider string, err error) {
	k := key{Kind: kindPeering, Name: provider}
	w.mu.Lock()
	was := w.trouble[k]
	delete(w.trouble, k)
	if err != nil {
		w.trouble[k] = explain(err).Error()
	}
	changed := w.trouble[k] != was
	w.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		w.log.Warn("no peering", "provider", provider, "error", err)
	} else {
		w.log.Info("peering is there again", "provider", provider)
	}
	w.bump()
}
