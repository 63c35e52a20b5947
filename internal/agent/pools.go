package agent

import (
	"sort"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxName is what Kubernetes and the market allow for a name.
const maxName = 63

// group is nodes of equal facts: one offer, or one for each kind of
// accelerator on them.
type group struct {
	name  string
	facts facts
	nodes []*corev1.Node
	// split means that the pool's label is on nodes of other groups too.
	split bool
}

// groupsOf sorts offered nodes into groups, in order of their names. keep is
// which kind had a pool's bare name before, by pool; the answer is which has it
// now.
func groupsOf(nodes []*corev1.Node, keep map[string]string) (groups []*group, primary map[string]string, problems []string) {
	pools := map[string]map[string]*group{} // pool name, facts key
	for _, n := range oldestFirst(nodes) {
		if !isOffered(n) {
			continue
		}
		f, bad := factsOf(n)
		problems = append(problems, bad...)
		key := f.key()
		pool := poolName(f)
		if pools[pool] == nil {
			pools[pool] = map[string]*group{}
		}
		g := pools[pool][key]
		if g == nil {
			g = &group{facts: f}
			pools[pool][key] = g
		}
		g.nodes = append(g.nodes, n)
	}
	primary = map[string]string{}
	for _, pool := range sortedKeys(pools) {
		kinds := pools[pool]
		primary[pool] = primaryOf(kinds, keep[pool])
		for _, key := range sortedKeys(kinds) {
			g := kinds[key]
			g.name, g.split = pool, len(kinds) > 1
			if key != primary[pool] {
				g.name = v1alpha1.CutName(pool, maxName-len(key)-1) + "-" + key
			}
			groups = append(groups, g)
		}
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].name < groups[j].name })
	return groups, primary, problems
}

// poolName is the pool's label, or a name made of the node's kind: a new price
// or label must not rename what is reserved.
func poolName(f facts) string {
	if name := dnsName(f.Pool); name != "" {
		return v1alpha1.CutName(name, maxName)
	}
	kind := either(f.Architecture, "nodes")
	if len(f.GPUs) > 0 {
		kind = either(f.GPUs[0].Model, f.GPUs[0].Vendor, "gpu")
	}
	key := f.kind().key()
	return v1alpha1.CutName(either(dnsName(kind), "nodes"), maxName-len(key)-1) + "-" + key
}

// primaryOf is the kind that has the pool's bare name: the one that had it, or
// that of the oldest node.
func primaryOf(kinds map[string]*group, before string) string {
	if kinds[before] != nil {
		return before
	}
	first := ""
	for _, key := range sortedKeys(kinds) {
		if first == "" || older(kinds[key].nodes[0], kinds[first].nodes[0]) {
			first = key
		}
	}
	return first
}

func oldestFirst(nodes []*corev1.Node) []*corev1.Node {
	out := append([]*corev1.Node(nil), nodes...)
	sort.Slice(out, func(i, j int) bool { return older(out[i], out[j]) })
	return out
}

func older(a, b *corev1.Node) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// telling are labels that tell apart nodes under one pool's label.
var telling = []string{corev1.LabelArchStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone, "nvidia.com/gpu.product", "amd.com/gpu.product-name", "node.kubernetes.io/instance-type"}

// selector finds the group's nodes.
func (g *group) selector() map[string]string {
	out := map[string]string{labelResources: "true"}
	if g.facts.Pool != "" {
		out = map[string]string{labelPool: g.facts.Pool}
	}
	if g.facts.Pool != "" && !g.split {
		return out
	}
	for _, label := range telling {
		value := g.nodes[0].Labels[label]
		for _, n := range g.nodes {
			if n.Labels[label] != value {
				value = ""
			}
		}
		if value != "" {
			out[label] = value
		}
	}
	return out
}
