package delivery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Modes of delivery, as in Cluster.spec.delivery.
const (
	Direct = "direct" // applied from here
	Flux   = "flux"   // applied by Flux; watched from here
	ArgoCD = "argocd" // applied by Argo CD; watched from here
	Agent  = "agent"  // applied by the cluster's agent, which tells what it sees
	None   = "none"   // applied by nobody
)

// Access finds the way to a cluster.
type Access interface {
	// RESTConfig is how to reach a cluster. It is asked again from time to
	// time: credentials are renewed. A changed answer reconnects.
	RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error)
}

// Desired is what one consumer shall have.
type Desired struct {
	// Cluster describes the consumer.
	Cluster *v1alpha1.Cluster
	// Mode of delivery; "" is Direct.
	Mode string
	// Tree is manifests/<consumer> of the acknowledged ledger. It is compared with
	// what the contracts render to, and never applied itself.
	Tree tree.Tree
	// Facts are what rendering depends on beside the contracts. One pointer stands
	// for facts that render alike.
	Facts *manifests.Facts
	// Wait says why nothing is touched as long as Tree is not what is rendered, ""
	// where what is rendered is applied then. An older rendering waits so until
	// the ledger has ours.
	Wait string
	// Given: Tree was derived where the ledger is, and this is the cluster's own
	// agent, which was given it. Root is then the ledger's tree, to ask Confirm about.
	Given bool
	Root  tree.Hash
	// Overlay is overlays/<consumer> of the inputs; may be empty.
	Overlay tree.Tree
	// Commit of the ledger, for people.
	Commit tree.Hash
	// Peers are the providers that it may need slices of, by name.
	Peers map[string]Peer
	// Refused are namespaces whose offloading is neither applied nor taken away, with why (manifests.RemoteConflicts).
	Refused map[string]string
	// Contracts of the consumer that are held, drained ones too: what is rendered,
	// and what Observe tells about.
	Contracts []*v1alpha1.Contract
	// Traces are those in which contracts are on their way, by slice; may be nil.
	Traces map[string]tracing.Origin
}

// alike reports whether the same is to be delivered, and in the same way.
func (d *Desired) alike(other Desired) bool {
	return d.Tree.Root == other.Tree.Root && d.Overlay.Root == other.Overlay.Root && d.Mode == other.Mode &&
		d.Root == other.Root && d.Wait == other.Wait && maps.Equal(d.Refused, other.Refused) && d.Facts.Same(other.Facts) &&
		slices.EqualFunc(d.Contracts, other.Contracts, manifests.Alike)
}

// Options configure a Deliverer.
type Options struct {
	// Access to clusters.
	Access Access
	// Confirm asks the remote for the hash of manifests/<consumer> on the
	// ledger as it is now; nil trusts what Deliver said last.
	Confirm func(ctx context.Context, consumer string) (tree.Hash, error)
	// Fleet tells the objects of several fleets in one cluster apart; may be empty.
	Fleet string
	// Identity in Leases. A daemon that starts again under its old identity
	// need not wait for its old Lease to run out.
	Identity string
	// Namespace of Lease and ApplySet in each cluster (default fleetbroker).
	Namespace string
	// LeaseDuration after which another daemon may take over from a silent one (default DefaultLeaseDuration).
	LeaseDuration time.Duration
	// ProbeInterval is how long a cluster may be silent before it is asked
	// whether it is there (default 10 s). One that answers renewals of the Lease
	// is asked nothing else.
	ProbeInterval time.Duration
	// CallTimeout bounds every call but watches (default 10 s).
	CallTimeout time.Duration
	// Concurrency is how many objects of a cluster are applied at once (default 16).
	Concurrency int
	// Clock for back-off and probes (default real).
	Clock clock.WithTicker
	// Hooks hear what happens; may be zero.
	Hooks Hooks
	// Tracer makes spans of what is applied; nil: none.
	Tracer *tracing.Tracer
	// Log; default discards.
	Log *slog.Logger
}

// Hooks hear what happens, for metrics and tests. They must return at once.
type Hooks struct {
	// Passed reports a pass over a cluster that had something to do.
	Passed func(cluster string, took time.Duration, err error)
	// Called reports an API call: its method, path and answer (0: none).
	Called func(cluster, method, path string, code int)
}

func (o *Options) defaults() {
	if o.Namespace == "" {
		o.Namespace = "fleetbroker"
	}
	if o.Identity == "" {
		o.Identity = "fleetbroker"
	}
	orDuration := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	orDuration(&o.LeaseDuration, DefaultLeaseDuration)
	orDuration(&o.ProbeInterval, 10*time.Second)
	orDuration(&o.CallTimeout, 10*time.Second)
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Hooks.Passed == nil {
		o.Hooks.Passed = func(string, time.Duration, error) {}
	}
	if o.Hooks.Called == nil {
		o.Hooks.Called = func(string, string, string, int) {}
	}
}

// Deliverer brings manifests to consumers. Make it with New, end it with Close.
type Deliverer struct {
	options Options
	changed chan struct{}

	mu         sync.Mutex
	workers    map[string]*worker
	remotes    map[string]*remote
	stopping   sync.WaitGroup
	closed     bool
	generation uint64
	observed   v1alpha1.ConsumerObservations // at generation
	// said is what each cluster said last; stale are those that may say
	// something else now.
	said  map[string]map[string]v1alpha1.ConsumerObservation
	stale map[string]bool
}

// New makes a Deliverer that knows of no cluster yet.
func New(options Options) *Deliverer {
	options.defaults()
	return &Deliverer{
		options: options, changed: make(chan struct{}, 1), workers: map[string]*worker{}, remotes: map[string]*remote{},
		said: map[string]map[string]v1alpha1.ConsumerObservation{}, stale: map[string]bool{},
	}
}

// Deliver sets what each consumer shall have, by cluster, and returns at once.
// A cluster that is missing is not touched any more.
func (d *Deliverer) Deliver(desired map[string]Desired) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	for name, w := range d.workers {
		if want, ok := desired[name]; !ok || !reached(want.Mode) {
			w.stop()
			delete(d.workers, name)
			d.stale[name] = true
		}
	}
	d.deliverRemote(desired)
	for name, want := range desired {
		if !reached(want.Mode) {
			continue
		}
		d.stale[name] = true
		w := d.workers[name]
		if w != nil {
			w.set(want)
			continue
		}
		w = newWorker(name, &d.options, func() { d.bump(name) })
		w.set(want)
		d.workers[name] = w
		d.stopping.Go(w.run)
	}
}

// deliverRemote hands what is wanted to the agents whose task it is; mu is held.
func (d *Deliverer) deliverRemote(desired map[string]Desired) {
	for name, r := range d.remotes {
		if desired[name].Mode != Agent {
			r.end()
			delete(d.remotes, name)
			d.stale[name] = true
		}
	}
	for name, want := range desired {
		if want.Mode != Agent {
			continue
		}
		d.stale[name] = true
		r := d.remotes[name]
		if r == nil {
			r = newRemote(name, &d.options, func() { d.bump(name) })
			var ctx context.Context
			ctx, r.stop = context.WithCancel(context.Background())
			d.remotes[name] = r
			d.stopping.Go(func() { r.run(ctx) })
		}
		r.set(want)
	}
}

// reached reports whether a cluster of this mode is talked to at all.
func reached(mode string) bool {
	return mode == "" || mode == Direct || mode == Flux || mode == ArgoCD
}

// Observe is what consumers say about contracts, and a number that grows when
// they say something else. A cluster that says the same keeps its map; nothing
// may be modified.
func (d *Deliverer) Observe() (v1alpha1.ConsumerObservations, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.observed == nil
	for name := range d.stale {
		var now map[string]v1alpha1.ConsumerObservation
		if w, r := d.workers[name], d.remotes[name]; w != nil {
			now = w.observe()
		} else if r != nil {
			now = r.observe()
		}
		if !maps.EqualFunc(now, d.said[name], func(a, b v1alpha1.ConsumerObservation) bool { return a.Equal(&b) }) {
			if d.said[name] = now; now == nil {
				delete(d.said, name)
			}
			changed = true
		}
	}
	clear(d.stale)
	if changed {
		d.generation++
		d.observed = maps.Clone(d.said)
	}
	return d.observed, d.generation
}

// Differing are the clusters of which the ledger has other manifests than are
// rendered.
func (d *Deliverer) Differing() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]bool{}
	for name, w := range d.workers {
		w.mu.Lock()
		if w.differs {
			out[name] = true
		}
		w.mu.Unlock()
	}
	for name, r := range d.remotes {
		r.mu.Lock()
		if len(r.derived.differs) > 0 {
			out[name] = true
		}
		r.mu.Unlock()
	}
	return out
}

// Changed receives when Observe may say something new.
func (d *Deliverer) Changed() <-chan struct{} { return d.changed }

// Status is how delivery to each cluster stands, by cluster.
func (d *Deliverer) Status() map[string]Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]Status, len(d.workers)+len(d.remotes))
	for name, w := range d.workers {
		out[name] = w.status()
	}
	for name, r := range d.remotes {
		out[name] = r.status()
	}
	return out
}

// Close ends all workers, gives up their Leases and waits for them.
func (d *Deliverer) Close() {
	d.mu.Lock()
	d.closed = true
	for _, w := range d.workers {
		w.stop()
	}
	for _, r := range d.remotes {
		r.end()
	}
	d.mu.Unlock()
	d.stopping.Wait()
}

// bump is called by workers when a cluster may say something else.
func (d *Deliverer) bump(cluster string) {
	d.mu.Lock()
	d.stale[cluster] = true
	d.mu.Unlock()
	wakeUp(d.changed)
}
