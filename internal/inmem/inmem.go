package inmem

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

// Daemon is what the clusters need of the daemon. Its methods are called from Run's
// goroutine alone, without a lock held.
type Daemon interface {
	// Report takes a provider's whole list of flavors, and the number of the
	// instructions that were carried out when it was made.
	Report(provider string, generation wire.Generation, flavors []v1alpha1.Flavor, honoured uint64) error
	// Instructions are what the ledger says of a provider; the zero value: not known yet.
	Instructions(provider string) wire.Instructions
	// Confirm is the tree of manifests that the remote has for a consumer now.
	Confirm(ctx context.Context, consumer string) (tree.Hash, error)
	// Wake tells that Observe has something new.
	Wake()
}

// Options configure Clusters.
type Options struct {
	// Providers by name, each with its nodes.
	Providers map[string][]Node
	// Consumers by name.
	Consumers []string
	// Pace is how long a controller takes for one step (default 100 ms).
	Pace time.Duration
	// Now is the clock of the agents' lives; default time.Now.
	Now func() time.Time
}

// Clusters are all clusters of a fleet.
type Clusters struct {
	pace time.Duration

	mu         sync.Mutex
	providers  map[string]*provider
	consumers  map[string]*consumer
	desired    map[string]delivery.Desired
	seen       v1alpha1.ConsumerObservations
	generation uint64
}

// New makes the clusters; nothing happens in them before Run.
func New(o Options) *Clusters {
	if o.Pace <= 0 {
		o.Pace = 100 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Clusters{
		pace: o.Pace, providers: map[string]*provider{}, consumers: map[string]*consumer{},
		desired: map[string]delivery.Desired{}, seen: v1alpha1.ConsumerObservations{},
	}
	for name, nodes := range o.Providers {
		c.providers[name] = newProvider(name, nodes, uint64(o.Now().UnixNano())) //nolint:gosec // after 1970
	}
	for _, name := range o.Consumers {
		c.consumers[name] = newConsumer(name)
	}
	return c
}

// Deliver implements the reconciler's Delivery.
func (c *Clusters) Deliver(desired map[string]delivery.Desired) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.desired = maps.Clone(desired)
	c.look()
}

// Observe implements the reconciler's Delivery.
func (c *Clusters) Observe() (v1alpha1.ConsumerObservations, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen), c.generation
}

// Run lets controllers and agents work until the context ends. An error is a report that
// the daemon refused, or manifests that cannot be read.
func (c *Clusters) Run(ctx context.Context, d Daemon) error {
	tick := time.NewTicker(c.pace)
	defer tick.Stop()
	for {
		if err := c.turn(ctx, d); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// turn is one step of everything.
func (c *Clusters) turn(ctx context.Context, d Daemon) error {
	for _, name := range slices.Sorted(maps.Keys(c.consumers)) {
		if err := c.pass(ctx, d, c.consumers[name]); err != nil {
			return err
		}
	}
	told := map[string]wire.Instructions{}
	for name := range c.providers {
		told[name] = d.Instructions(name)
	}
	c.mu.Lock()
	for name, p := range c.providers {
		p.hear(told[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.consumers)) {
		c.liqo(c.consumers[name])
	}
	c.schedule()
	news := c.look()
	var reports []report
	for _, name := range slices.Sorted(maps.Keys(c.providers)) {
		reports = append(reports, c.providers[name].report())
	}
	c.mu.Unlock()
	for _, r := range reports {
		if err := d.Report(r.provider, r.generation, r.flavors, r.honoured); err != nil {
			return err
		}
	}
	if news {
		d.Wake()
	}
	return nil
}

// look renews what Observe gives, and reports whether that is something new.
func (c *Clusters) look() bool {
	news := false
	for name, want := range c.desired {
		on := c.consumers[name]
		if on == nil {
			continue
		}
		now := map[string]v1alpha1.ConsumerObservation{}
		for _, k := range want.Contracts {
			now[k.Metadata.Name] = on.observe(want, k)
		}
		if !reflect.DeepEqual(now, c.seen[name]) {
			c.seen[name], news = now, true
			c.generation++
		}
	}
	return news
}
