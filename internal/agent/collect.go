package agent

import (
	"fmt"
	"maps"
	"sort"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/agent/bynode"
	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/agent/usage"
	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// State is what a cluster's API server says. Nothing in it is modified.
type State struct {
	// Cluster is the id under which it reports.
	Cluster string
	// Nodes and Pods are all of the cluster.
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Quotas and Slices are Liqo's, all namespaces.
	Quotas []*offloadingv1beta1.Quota
	Slices []*authv1beta1.ResourceSlice
	// Fleet is the id of the fleet whose agent this is, "" where it has none; nil while
	// no broker was heard: then what another fleet holds is not told apart.
	Fleet *string
	// Enforced means that the agent itself answers slices of its class.
	Enforced bool
	// LimitsEnforcement is how Liqo is installed to enforce limits, for as long as no
	// Quota shows it; "" where nobody said.
	LimitsEnforcement string
	// Now is when all this was read.
	Now time.Time
	// Hasher gives nodes their hashes; nil where the agent may not label nodes: none is
	// reported by itself.
	Hasher *bynode.Hasher
	// Promises are what the ledger promises of the cluster.
	Promises []enforce.Promise
	// Measured is what pods use of CPU and memory, nil where nothing is measured.
	Measured map[types.NamespacedName]v1alpha1.Resources
}

// Memory is what a Collect tells the next one, so that names stay while nodes
// change. The zero Memory is a start: names then follow from the nodes alone.
type Memory struct {
	// primary is the kind of node that has a pool's bare name.
	primary map[string]string
	// home is the flavor that a slice is of.
	home map[string]string
	// specs are the last facts of flavors.
	specs map[string]v1alpha1.FlavorSpec
	// averages are what slices take of flavors that are sold more than once, by
	// flavor and slice.
	averages map[[2]string]usage.Average
	// unlabelled are the hashes of nodes that do not bear them, by node.
	unlabelled map[string]string
	// short says of contracts why a node has not their piece of it.
	short map[string]string
}

// Collect makes the cluster's flavors, in order of their names. Problems are
// for the log: what was ignored and why.
func Collect(s State, before Memory) (flavors []v1alpha1.Flavor, next Memory, problems []string) {
	groups, primary, problems := groupsOf(s.Nodes, before.primary)
	grants, sliceByUser := grantsOf(s.Quotas, s.Slices, s.Fleet)
	c := &collector{state: s, before: before, groups: groups, byNode: map[string]int{}, load: make([]load, len(groups)), names: within.NamesOf(s.Nodes)}
	for i := range s.Promises {
		c.names.Add(s.Promises[i].Resources)
	}
	for i, g := range groups {
		for _, n := range g.nodes {
			c.byNode[n.Name] = i
		}
	}
	c.countPods(sliceByUser)
	c.makeFlavors(&problems)
	if level := either(enforcementOf(s.Quotas), s.LimitsEnforcement); level != "" {
		for _, f := range c.flavors {
			f.Spec.Labels = maps.Clone(f.Spec.Labels)
			if f.Spec.Labels == nil {
				f.Spec.Labels = map[string]string{}
			}
			f.Spec.Labels[v1alpha1.LabelEnforcement] = level
		}
	}
	c.attribute(grants)
	problems = append(problems, c.bound(grants)...)
	c.onNodes()
	c.countUse()
	c.next.primary = primary
	flavors, bad := within.Flavors(c.sorted())
	return flavors, c.next, append(problems, bad...)
}

// load is what runs on a group's nodes.
type load struct {
	own    v1alpha1.Resources
	slices map[string]v1alpha1.Resources
	byNode map[string]v1alpha1.Resources
	// on is by node and slice, "" for the provider's own.
	on bynode.Runs
}

// collector is the work of one Collect.
type collector struct {
	state  State
	before Memory
	next   Memory
	groups []*group
	byNode map[string]int
	load   []load
	// flavors with the groups they are cut from, and an index by name.
	flavors []*offered
	byName  map[string]*offered
	// strays are what slices run on nodes that are not offered.
	strays map[string]v1alpha1.Resources
	// strayOn is the same by node and slice.
	strayOn bynode.Runs
	// names are the resources that the cluster's nodes have, or that it is promised to have.
	names within.Names
	// takes is what slices' pods take, wherever they run.
	takes map[string]v1alpha1.Resources
}

// offered is a flavor in the making: the group it is cut from, and what slices
// hold of it in the names that Kubernetes has for it.
type offered struct {
	v1alpha1.Flavor
	group int
	held  map[string]v1alpha1.Resources
}

// countPods adds up the requests of live pods: the provider's own by group, the
// offloaded ones by slice too.
func (c *collector) countPods(sliceByUser map[string]string) {
	for i := range c.load {
		c.load[i] = load{own: v1alpha1.Resources{}, slices: map[string]v1alpha1.Resources{}, byNode: map[string]v1alpha1.Resources{}, on: bynode.Runs{}}
	}
	c.strays, c.takes = map[string]v1alpha1.Resources{}, map[string]v1alpha1.Resources{}
	c.strayOn = bynode.Runs{}
	virtual := map[string]bool{}
	for _, n := range c.state.Nodes {
		virtual[n.Name] = isVirtual(n)
	}
	for _, p := range c.state.Pods {
		if !isLive(p) || virtual[p.Spec.NodeName] {
			continue
		}
		slice := ""
		if isOffloaded(p) {
			slice = sliceOf(p, sliceByUser)
		}
		if slice != "" {
			measured := c.state.Measured[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
			c.takes[slice] = c.takes[slice].Add(requests(p).Max(measured))
		}
		i, here := c.byNode[p.Spec.NodeName]
		switch r := c.names.Of(requests(p), isUsual); {
		case here:
			c.load[i].add(p.Spec.NodeName, slice, r)
		case slice != "":
			c.strays[slice] = c.strays[slice].Add(r)
			c.strayOn.Add(p.Spec.NodeName, slice, r)
		}
	}
}

// add counts a pod. An offloaded one that names no slice counts as the
// provider's own: the capacity is gone either way.
func (l *load) add(node, slice string, r v1alpha1.Resources) {
	l.byNode[node] = l.byNode[node].Add(r)
	l.on.Add(node, slice, r)
	if slice == "" {
		l.own = l.own.Add(r)
		return
	}
	l.slices[slice] = l.slices[slice].Add(r)
}

// makeFlavors cuts each group into one flavor for each kind of accelerator.
func (c *collector) makeFlavors(problems *[]string) {
	c.byName = map[string]*offered{}
	c.next.specs = map[string]v1alpha1.FlavorSpec{}
	for i, g := range c.groups {
		capacity := v1alpha1.Resources{}
		for _, n := range g.nodes {
			allocatable := amounts(n.Status.Allocatable)
			if !inService(n) {
				allocatable = least(allocatable, c.load[i].byNode[n.Name])
			}
			capacity = capacity.Add(allocatable)
		}
		wishes, bad := g.wishes()
		*problems = append(*problems, bad...)
		could := g.couldBe(wishes.nodes)
		for k := range max(1, len(g.facts.GPUs)) {
			f := c.cut(i, k, capacity)
			if could != nil {
				f.Spec.ScalableTo = inFlavor(could, f.Spec.GPU, k == 0)
			}
			f.Spec.Cordon, f.Spec.Drain, f.Spec.Overcommit = wishes.cordon, wishes.drain, wishes.overcommit
			f.Spec.Partition = wishes.partition
			if f.Spec.Price != nil {
				f.Spec.Price.Windows = wishes.windows
			}
			*problems = append(*problems, within.Capacities(&f.Flavor)...)
			if c.byName[f.Metadata.Name] != nil {
				*problems = append(*problems, fmt.Sprintf("flavor %s is made by two pools: rename one in its nodes' label %s", f.Metadata.Name, labelPool))
				continue
			}
			c.flavors = append(c.flavors, f)
			c.byName[f.Metadata.Name] = f
			c.next.specs[f.Metadata.Name] = factsOnly(f.Spec)
		}
	}
}

// cut makes the flavor of the k-th accelerator of a group.
func (c *collector) cut(i, k int, capacity v1alpha1.Resources) *offered {
	g := c.groups[i]
	spec := v1alpha1.FlavorSpec{
		Type:         "K8Slice",
		Architecture: g.facts.Architecture,
		Location:     g.facts.Location,
		Properties:   g.facts.Properties,
		Labels:       g.facts.Labels,
		NodeSelector: g.selector(),
		Class:        c.class(),
	}
	if k < len(g.facts.Prices) {
		price := g.facts.Prices[k]
		spec.Price = &price
	}
	name := g.name
	if k < len(g.facts.GPUs) {
		gpu := g.facts.GPUs[k]
		spec.GPU = &gpu
		if gpu.Profile != "" && len(g.facts.GPUs) > 1 || k > 0 {
			suffix := either(gpu.Profile, gpu.ResourceName)
			name = v1alpha1.CutName(g.name+"-"+dnsName(suffix), maxName)
		}
	}
	if len(g.facts.GPUs) > 1 {
		spec.Pool = g.name
	}
	// What nodes have beside the usual is told once: with the first flavor.
	spec.Capacity = inFlavor(capacity, spec.GPU, k == 0)
	spec.Used = inFlavor(c.load[i].own, spec.GPU, k == 0)
	return &offered{Flavor: flavor(c.state.Cluster, name, spec), group: i}
}

// countUse tells what slices take, on average, of what flavors sell more than
// once within a risk.
func (c *collector) countUse() {
	c.next.averages = map[[2]string]usage.Average{}
	for _, f := range c.flavors {
		if _, bounded := f.Spec.Overcommit[keyMaxRisk]; !bounded {
			continue
		}
		for slice, held := range f.Spec.Held {
			if c.next.home[slice] != f.Metadata.Name {
				continue
			}
			of := v1alpha1.Resources{}
			for name := range f.Spec.Overcommit {
				if amount, has := held[name]; has {
					of[name] = amount
				}
			}
			key := [2]string{f.Metadata.Name, slice}
			average := c.before.averages[key].Next(c.state.Now, of, c.takes[slice])
			c.next.averages[key] = average
			if f.Spec.Usage == nil {
				f.Spec.Usage = map[string]v1alpha1.Resources{}
			}
			f.Spec.Usage[slice] = average.Told()
		}
	}
}

// class is that of the slices in which the cluster sells.
func (c *collector) class() string {
	if c.state.Enforced {
		return enforce.Class
	}
	return "default"
}

func flavor(cluster, name string, spec v1alpha1.FlavorSpec) v1alpha1.Flavor {
	return v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: cluster},
		Spec:     spec,
	}
}

// inFlavor is a resource list in the names a flavor uses: its accelerator
// counts as gpu, other accelerators of the node are other flavors' business.
func inFlavor(r v1alpha1.Resources, gpu *v1alpha1.FlavorGPU, extended bool) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for name, amount := range r {
		switch {
		case gpu != nil && name == gpu.ResourceName:
			out[v1alpha1.GPU] = amount
		case isHugePages(name) && amount.IsZero(): // every kubelet names the sizes that it could have
		case isShared(name), extended && isExtended(name) && !isGPU(name):
			out[name] = amount
		}
	}
	return out
}

// factsOnly is a flavor without its figures.
func factsOnly(spec v1alpha1.FlavorSpec) v1alpha1.FlavorSpec {
	spec.Capacity, spec.Used, spec.Held = nil, nil, nil
	spec.Cordon, spec.Drain, spec.Overcommit, spec.ScalableTo = false, v1alpha1.Time{}, nil, nil
	return spec
}

// sorted is all flavors, in order of their names.
func (c *collector) sorted() []v1alpha1.Flavor {
	sort.Slice(c.flavors, func(i, j int) bool { return c.flavors[i].Metadata.Name < c.flavors[j].Metadata.Name })
	out := make([]v1alpha1.Flavor, 0, len(c.flavors))
	for _, f := range c.flavors {
		out = append(out, f.Flavor)
	}
	return out
}

// inHeld is what a slice has, in the names of a flavor; accelerators of other
// flavors keep their own name, so that nothing is left untold.
func inHeld(r v1alpha1.Resources, gpu *v1alpha1.FlavorGPU) v1alpha1.Resources {
	out := maps.Clone(r)
	if gpu != nil {
		if amount, ok := out[gpu.ResourceName]; ok {
			delete(out, gpu.ResourceName)
			out[v1alpha1.GPU] = amount
		}
	}
	return out
}
