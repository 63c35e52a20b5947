package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

// consumer is a cluster in which capacity appears: its API server as far as
// delivery sees it, and Liqo behind it.
type consumer struct {
	s    *sim
	name string
	down bool
	// Objects by Liqo's namespace and name. A virtual node and its Node have the
	// slice's name.
	slices map[string]*liveSlice
	nodes  map[string]*liveNode
	// offloaded are the namespaces with a NamespaceOffloading: Ready or not.
	offloaded map[string]bool
	// The Lease: who may write, and until when if nobody renews it.
	holder string
	until  time.Duration
	// evictions are held up by a PodDisruptionBudget until then.
	evictions time.Duration
	busy      map[string]bool // slices that Liqo is about to look at
}

type liveSlice struct {
	contract, provider string
	resources          v1alpha1.Resources
	create             bool // create-virtual-node
	granted            v1alpha1.Resources
	denied             string
	deleting           bool
}

// liveNode is a VirtualNode and, once up, its Node.
type liveNode struct {
	contract    string
	up, ready   bool
	allocatable v1alpha1.Resources
	deleting    bool
}

// leaseTime is how long a silent holder keeps the Lease, at the worst.
var leaseTime = delivery.Takeover(delivery.DefaultLeaseDuration)

func newConsumer(s *sim, i int) *consumer {
	return &consumer{
		s: s, name: consumerName(i), slices: map[string]*liveSlice{}, nodes: map[string]*liveNode{},
		offloaded: map[string]bool{}, busy: map[string]bool{},
	}
}

// lease reports whether a daemon may write, taking the Lease when it is free.
func (c *consumer) lease(d *daemon) bool {
	if c.holder != d.name && c.s.tl.now < c.until {
		if h := c.s.daemonNamed(c.holder); h != nil && h.up && h.reaches(c) {
			c.until = c.s.tl.now + leaseTime // it renews
		}
		if c.s.tl.now < c.until {
			return false
		}
	}
	if c.holder != d.name {
		c.s.log("%s lease to %s", c.name, d.name)
	}
	c.holder, c.until = d.name, c.s.tl.now+leaseTime
	return true
}

// holds reports whether a daemon holds the Lease now, without taking it.
func (c *consumer) holds(d *daemon) bool { return c.holder == d.name && d.up && d.reaches(c) }

// changed lets Liqo and every daemon's watches see a change.
func (c *consumer) changed(name string) {
	if name != "" {
		c.kick(name, 20*time.Millisecond, 3*time.Second)
	}
	for _, d := range c.s.daemons {
		if d.up {
			d.twin.notice(c)
		}
	}
}

// kick books a look of Liqo's controllers at one slice.
func (c *consumer) kick(name string, lo, hi time.Duration) {
	if c.busy[name] {
		return
	}
	c.busy[name] = true
	c.s.after(span(c.s.rng, lo, hi), func() {
		c.busy[name] = false
		c.liqo(name)
	})
}

// liqo takes one step for one slice, and comes back while there is more.
func (c *consumer) liqo(name string) {
	sl, node := c.slices[name], c.nodes[name]
	if c.down {
		c.kick(name, 5*time.Second, 10*time.Second)
		return
	}
	switch {
	case node != nil && node.deleting:
		c.drain(name, node)
	case sl != nil && sl.deleting:
		if node == nil {
			delete(c.slices, name)
			c.s.log("%s slice %s is gone", c.name, name)
			c.revoke(name, sl)
			c.changed("")
		} else {
			node.deleting = true
			c.kick(name, time.Second, 5*time.Second)
		}
	case sl != nil && (sl.denied != "" || !sl.granted.Equal(sl.resources)): // what was denied may be asked back to what it had
		c.grant(name, sl)
	case sl != nil && node != nil && (!node.up || !node.ready || !node.allocatable.Equal(sl.granted)):
		if node.ready = node.up; !node.up {
			c.s.log("%s node %s joins", c.name, name)
		}
		node.up, node.allocatable = true, sl.granted.Clone()
		c.changed(name)
	case sl == nil && node != nil && node.up:
		node.up, node.ready = false, false
		c.changed("")
	}
}

// grant is the provider's answer to a slice, when it hears it.
func (c *consumer) grant(name string, sl *liveSlice) {
	p := c.s.providerNamed(sl.provider)
	if p == nil || p.down {
		c.kick(name, 5*time.Second, 20*time.Second)
		return
	}
	if p.refuses && !c.s.healed {
		sl.denied = "the provider refuses"
		c.s.log("%s slice %s is denied", c.name, name)
		p.rename(c.s.books.ever[sl.contract])
		c.kick(name, 20*time.Second, time.Minute)
		c.changed("")
		return
	}
	if !c.s.healed && c.s.rng.Float64() < c.s.knobs.denials {
		sl.denied = "the provider refuses"
		c.s.log("%s slice %s is denied", c.name, name)
		if c.s.rng.IntN(2) == 0 {
			p.refuse(sl.contract, c.s.books.ever[sl.contract])
		}
		c.kick(name, 20*time.Second, time.Minute)
		c.changed("")
		return
	}
	if !p.grantsNow(sliceOf(name), c.s.books.ever[sl.contract]) {
		c.kick(name, time.Second, 5*time.Second) // it is not known of yet, or no longer
		return
	}
	p.give(sliceOf(name), c.s.books.ever[sl.contract], sl.resources)
	sl.granted, sl.denied = sl.resources.Clone(), ""
	c.s.log("%s slice %s granted by %s", c.name, name, sl.provider)
	c.changed(name)
}

// sliceOf is a slice's name without Liqo's namespace: what agents report by.
func sliceOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// drain evicts the pods of a virtual node; budgets may hold it up.
func (c *consumer) drain(name string, node *liveNode) {
	if node.up && c.s.tl.now < c.evictions && !c.s.healed {
		c.kick(name, 5*time.Second, 20*time.Second)
		return
	}
	delete(c.nodes, name)
	c.s.log("%s node %s is gone", c.name, name)
	if sl := c.slices[name]; sl != nil && sl.deleting {
		c.kick(name, 50*time.Millisecond, time.Second)
	}
	c.changed("")
}

// revoke ends what a slice had been granted, some time after the slice is gone.
func (c *consumer) revoke(name string, sl *liveSlice) {
	p := c.s.providerNamed(sl.provider)
	if p == nil {
		return
	}
	var end func()
	end = func() {
		if p.down && !p.gone {
			c.s.after(10*time.Second, end)
			return
		}
		for _, other := range c.s.consumers {
			if s := other.slices[name]; s != nil && s.granted != nil {
				return // it was made anew meanwhile
			}
		}
		p.take(sliceOf(name))
	}
	c.s.after(span(c.s.rng, 100*time.Millisecond, 10*time.Second), end)
}

// fail makes the cluster unreachable for a while.
func (c *consumer) fail(d time.Duration) {
	if c.down {
		return
	}
	c.down = true
	c.s.log("%s is unreachable for %s", c.name, d.Truncate(time.Second))
	c.changed("")
	c.s.after(d, c.back)
}

func (c *consumer) back() {
	if !c.down {
		return
	}
	c.down = false
	c.s.log("%s is back", c.name)
	c.changed("")
}

// meddle is somebody's hand on our objects: one is deleted.
func (c *consumer) meddle() {
	names := slices.Sorted(maps.Keys(c.slices))
	if len(names) == 0 || c.down {
		return
	}
	name := names[c.s.rng.IntN(len(names))]
	sl, node := c.slices[name], c.nodes[name]
	if c.s.rng.IntN(2) == 0 && node != nil {
		c.s.log("%s somebody deletes virtual node %s", c.name, name)
		node.deleting = true
	} else if !sl.deleting {
		c.s.log("%s somebody deletes slice %s", c.name, name)
		sl.deleting = true
	}
	c.changed(name)
}
