package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// node is one node behind a flavor with whole cards.
type node struct {
	hash  string
	shape v1alpha1.Resources
	// own is what the provider's own pods have of it.
	own v1alpha1.Resources
	// gone: it is not reported; squeezed: it was gone once, or its owner took more of it, so
	// that it may be oversold through nobody's fault.
	gone, squeezed bool
}

// byNode reports whether agents report flavors with whole cards node by node: in every third
// seed. What is drawn of nodes has a sequence of its own, so that other seeds are as they
// would be without.
func (s *sim) byNode() bool { return s.seed%3 == 0 }

// dealNodes makes a provider's flavors with whole cards lie on nodes of equal shape, of the
// first of which its own pods have what they use.
func (p *provider) dealNodes(i int) {
	r := rand.New(rand.NewPCG(p.s.seed, uint64(1000+i))) //nolint:gosec // drawn by the seed
	for k, o := range p.flavors {
		cards := o.capacity[v1alpha1.GPU].Int64()
		if o.gpu == nil || o.gpu.UnitsPerGPU > 1 || cards == 0 {
			continue
		}
		n := min(cards, int64(1)<<r.IntN(3))
		shape := v1alpha1.Resources{}
		for _, name := range []string{v1alpha1.GPU, v1alpha1.CPU, v1alpha1.Memory, v1alpha1.EphemeralStorage} {
			shape[name] = v1alpha1.AmountOf(o.capacity[name].Int64() / n)
		}
		for j := range n {
			o.nodes = append(o.nodes, &node{hash: fmt.Sprintf("n%013d", 10_000*i+100*k+int(j)), shape: shape, own: v1alpha1.Resources{}})
		}
		o.nodes[0].own = o.used.Clone()
	}
}

// free is what a node has for contracts.
func (n *node) free() v1alpha1.Resources {
	out := n.shape.Sub(n.own)
	for name, a := range out {
		out[name] = a.Max(v1alpha1.Amount{})
	}
	return out
}

// tellNodes adds to a flavor what its agent reports of nodes, and what contracts have there
// as far as they hold all of it. Agents of every other provider refuse what lies on a node
// that is gone; of the others daemons see it by themselves.
func (p *provider) tellNodes(o *offered, f *v1alpha1.Flavor) {
	if len(o.nodes) == 0 {
		return
	}
	f.Spec.Nodes = &v1alpha1.FlavorNodes{}
	for _, n := range o.nodes {
		if !n.gone {
			f.Spec.Nodes.Groups = append(f.Spec.Nodes.Groups, v1alpha1.NodeGroup{Shape: n.shape, Free: n.free(), Nodes: []string{n.hash}})
		}
	}
	for _, k := range p.on(o) {
		sum, on := v1alpha1.Resources{}, map[string]v1alpha1.Resources{}
		for _, part := range k.Spec.Nodes {
			on[part.Node] = inFlavor(part.Resources, o)
			sum = sum.Add(on[part.Node])
			if n := o.node(part.Node); n != nil && n.gone && p.name[len(p.name)-1]%2 == 0 && o.class == "fleetbroker" && k.Status.Phase.Charged() {
				if f.Spec.Refused == nil {
					f.Spec.Refused = map[string]string{}
				}
				f.Spec.Refused[k.Metadata.Name] = onnodes.Refusal(n.hash, "it is gone")
			}
		}
		if held, holds := f.Spec.Held[k.Spec.Slice]; holds && len(on) > 0 && !less(held, sum) {
			if f.Spec.HeldOn == nil {
				f.Spec.HeldOn = map[string]map[string]v1alpha1.Resources{}
			}
			f.Spec.HeldOn[k.Spec.Slice] = on
		}
	}
}

// on are the contracts that hold something of a flavor, by name.
func (p *provider) on(o *offered) (out []*v1alpha1.Contract) {
	for _, name := range sortedKeys(p.s.books.contracts) {
		if k := p.s.books.contracts[name]; k.Spec.Provider == p.name && k.Spec.Flavor == o.name && k.Status.Phase.Held() {
			out = append(out, k)
		}
	}
	return out
}

func (o *offered) node(hash string) *node {
	if i := slices.IndexFunc(o.nodes, func(n *node) bool { return n.hash == hash }); i >= 0 {
		return o.nodes[i]
	}
	return nil
}

// less reports whether a has less of something than b.
func less(a, b v1alpha1.Resources) bool {
	return slices.ContainsFunc(b.Names(), func(name string) bool { return a[name].Less(b[name]) })
}

// resizeNodes takes a node out of service, brings one back, or gives GPUs of one to its
// owner's pods.
func (p *provider) resizeNodes(o *offered) {
	r := p.s.rng
	n := o.nodes[r.IntN(len(o.nodes))]
	switch {
	case n.gone:
		n.gone, o.capacity = false, o.capacity.Add(n.shape)
	case r.IntN(2) == 0:
		n.gone, o.capacity = true, o.capacity.Sub(n.shape)
		o.used, n.own = o.used.Sub(n.own), v1alpha1.Resources{}
	default:
		had := n.own[v1alpha1.GPU]
		n.own = n.own.Clone()
		n.own[v1alpha1.GPU] = v1alpha1.AmountOf(r.Int64N(n.shape[v1alpha1.GPU].Int64() + 1))
		o.used[v1alpha1.GPU] = o.used[v1alpha1.GPU].Add(n.own[v1alpha1.GPU]).Sub(had)
	}
	n.squeezed, o.squeezed = true, true
	p.s.log("%s/%s node %s: gone %v, own %v", p.name, o.name, n.hash, n.gone, n.own.Canonical())
	p.changed()
}

// checkNodes is invariant 2 by node: a contract with cards names the nodes on which all of
// them lie, one where a node could have them all, and where nothing was taken of a node,
// what contracts have there fits.
func (s *sim) checkNodes(ch change) {
	k := ch.after
	if k == nil || !k.Status.Phase.Held() {
		return
	}
	p := s.providerNamed(k.Spec.Provider)
	if p == nil {
		return
	}
	o := p.flavor(k.Spec.Flavor)
	if o == nil || len(o.nodes) == 0 || k.Spec.GPUs == nil || k.Spec.GPUs.Count == 0 {
		return
	}
	gpus := int64(0)
	for _, part := range k.Spec.Nodes {
		gpus += inFlavor(part.Resources, o)[v1alpha1.GPU].Int64()
	}
	if gpus != k.Spec.GPUs.Count || k.Spec.GPUs.Count <= o.nodes[0].shape[v1alpha1.GPU].Int64() && len(k.Spec.Nodes) != 1 {
		s.fail("2", "contract %s of %d GPUs names %d nodes with %d together, of %s/%s with %s each", k.Metadata.Name, k.Spec.GPUs.Count, len(k.Spec.Nodes), gpus, p.name, o.name, o.nodes[0].shape[v1alpha1.GPU].Canonical(v1alpha1.GPU))
		return
	}
	if ch.before != nil && slices.EqualFunc(ch.before.Spec.Nodes, k.Spec.Nodes, func(a, b v1alpha1.ContractNode) bool {
		return a.Node == b.Node && a.Resources.Equal(b.Resources)
	}) {
		return
	}
	if ch.before != nil && len(ch.before.Spec.Nodes) > 0 && ch.before.Spec.Nodes[0].Part != k.Spec.Nodes[0].Part {
		s.counts.Remapped++
	}
	free := s.freeOn(p, o)
	for _, part := range k.Spec.Nodes {
		n := o.node(part.Node)
		if n == nil || n.squeezed {
			continue
		}
		for name, left := range free[n.hash] {
			if left.Int64() < 0 {
				s.fail("2", "contract %s oversells node %s of %s/%s: %s of %s too much", k.Metadata.Name, n.hash, p.name, o.name, v1alpha1.AmountOf(-left.Int64()).Canonical(name), name)
			}
		}
	}
}

// freeOn is what each node has left by the ledger.
func (s *sim) freeOn(p *provider, o *offered) map[string]v1alpha1.Resources {
	free := map[string]v1alpha1.Resources{}
	for _, n := range o.nodes {
		free[n.hash] = n.shape.Sub(n.own)
	}
	for _, k := range p.on(o) {
		for _, part := range k.Spec.Nodes {
			for name, a := range inFlavor(part.Resources, o) {
				if left, counted := free[part.Node][name]; counted {
					free[part.Node][name] = left.Sub(a)
				}
			}
		}
	}
	return free
}

// fitsNodes reports whether so many replicas fit a flavor's nodes, each on one. Where
// contracts without nodes have something there, nobody can say.
func (s *sim) fitsNodes(p *provider, o *offered, need v1alpha1.Resources, replicas int) bool {
	if slices.ContainsFunc(p.on(o), func(k *v1alpha1.Contract) bool { return len(k.Spec.Nodes) == 0 }) {
		return false
	}
	free := s.freeOn(p, o)
	for _, n := range o.nodes {
		for left := free[n.hash]; !n.gone && replicas > 0 && !less(left, need); replicas-- {
			left = left.Sub(need)
		}
	}
	return replicas == 0
}

// judgeNodes: at rest nothing is left on a node that is gone while another one of its flavor
// has room for it, but for what may yet come back within the grace, and for what an intent
// holds that was refused for good: what exists stays, and nothing new is tried. Where contracts
// without cards share the nodes nobody says where they lie.
func (s *sim) judgeNodes(led *ledger.Ledger) {
	for _, p := range s.providers {
		for _, o := range p.flavors {
			all := p.on(o)
			loose := slices.ContainsFunc(all, func(k *v1alpha1.Contract) bool { return len(k.Spec.Nodes) == 0 })
			left := o.capacity.Sub(o.used)
			for _, k := range all {
				left = left.Sub(inFlavor(k.Spec.Resources, o))
			}
			if p.gone || loose || slices.ContainsFunc(left.Names(), func(name string) bool { return left[name].Int64() < 0 }) {
				continue
			}
			for _, k := range all {
				if st := led.State(k.Metadata.Namespace, k.Spec.Intent.Name); st != nil && st.Status.State == v1alpha1.IntentRefused {
					continue
				}
				waits := k.Status.Since.Add(s.knobs.grace + 30*time.Second).After(epoch.Add(s.tl.now))
				if k.Status.Phase == v1alpha1.PhaseDegraded && k.Status.Reason == ledger.DegradedNode && !waits {
					s.judgePart(p, o, k)
				}
			}
		}
	}
}

func (s *sim) judgePart(p *provider, o *offered, k *v1alpha1.Contract) {
	free := s.freeOn(p, o)
	taken := map[string]bool{}
	for _, part := range k.Spec.Nodes {
		taken[part.Node] = true
	}
	for _, part := range k.Spec.Nodes {
		if n := o.node(part.Node); n != nil && !n.gone {
			continue
		}
		for _, n := range o.nodes {
			if !n.gone && !taken[n.hash] && !less(free[n.hash], perNode(inFlavor(part.Resources, o))) && len(k.Spec.Nodes) == 1 {
				s.fail("liveness", "contract %s waits for node %s of %s/%s, which is gone, and node %s has room", k.Metadata.Name, part.Node, p.name, o.name, n.hash)
			}
		}
	}
}

// perNode is what of resources nodes bound.
func perNode(r v1alpha1.Resources) v1alpha1.Resources {
	out := r.Clone()
	delete(out, v1alpha1.Pods)
	return out
}
