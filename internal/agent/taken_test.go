package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Who may make a pod, a node or a slice in a cluster may write what they like there: the
// cluster's report is taken all the same. One that is refused would leave the cluster
// silent, and its contracts lost to everybody.
func TestReportsAreTakenWhateverTheClusterHas(t *testing.T) {
	honest := func(name string) *corev1.Node { return node(name, big, pool("p"), h100) }
	many := func(n int, of string, each string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, " example.org/%s%d=%s", of, i, each)
		}
		return out.String()
	}
	for name, s := range map[string]State{
		"own pod of many resources":   {Pods: podsOf(pod("x", "a", "cpu=1"+many(100, "r", "1")))},
		"slice's pod of many":         {Pods: podsOf(pod("x", "a", "cpu=1"+many(100, "r", "1"), offloaded("s0-ca3704aa0b06", "")))},
		"own pod of huge amounts":     {Pods: podsOf(pod("x", "a", "cpu=1 example.org/x=2P example.org/y=4E memory=4E"), pod("y", "a", "example.org/y=4E"))},
		"slice's pods of huge":        {Pods: podsOf(pod("x", "a", "cpu=1 example.org/y=4E", offloaded("s0-ca3704aa0b06", "")), pod("y", "a", "example.org/y=4E", offloaded("s0-ca3704aa0b06", "")))},
		"quotas of huge amounts":      {Quotas: []*offloadingv1beta1.Quota{quota("rome", "s0", "example.org/y=4E cpu=4P nvidia.com/gpu=4E"), quota("oslo", "s0", "example.org/y=4E cpu=4P nvidia.com/gpu=4E")}},
		"quota of many resources":     {Quotas: []*offloadingv1beta1.Quota{quota("rome", "s0", "cpu=1"+many(100, "r", "1"))}},
		"quota of many instances":     {Quotas: []*offloadingv1beta1.Quota{quota("rome", "s0", "cpu=1"+strings.ReplaceAll(many(100, "r", "1"), "example.org/", "nvidia.com/mig-"))}},
		"a thousand nodes of huge":    {Nodes: hugeNodes(2000)},
		"architecture is no name":     {Nodes: nodesOf(node("b", big, pool("q"), func(n *corev1.Node) { n.Status.NodeInfo.Architecture = "\x1b[2J" + strings.Repeat("x", 300) }))},
		"drain after the years":       {Nodes: nodesOf(node("b", big, pool("q"), annotated(noteDrain, "9999-12-31T23:59:59-14:00")))},
		"many notes, and enforced":    {Nodes: nodesOf(node("b", big, pool("q"), notesOf(300))), LimitsEnforcement: "Hard"},
		"thousands of kinds of nodes": {Nodes: kinds(2500)},
		"labels that are odd":         {Nodes: nodesOf(node("b", big, pool("q"), labelled("nvidia.com/gpu.product", "A.-_B"), labelled("nvidia.com/gpu.memory", "99999999999999999999"), labelled("nvidia.com/gpu.replicas", "2147483648"), labelled("nvidia.com/gpu.count", "9223372036854775807"), labelled("amd.com/gpu.vram", "1e9999")))},
		"odd annotations":             {Nodes: nodesOf(node("b", big, pool("q"), annotated("cost.fluidos.eu/hourly-rate", "1e30"), annotated("cost.fluidos.eu/currency", "EUR"), annotated("gpu.fluidos.eu/memory", "1e30"), annotated("gpu.fluidos.eu/count", "NaN"), annotated("provider.fluidos.eu/carbon-intensity", "999999"), annotated("location.fluidos.eu/city", "x\u202ey"), annotated(noteMaxNodes, "10000"), annotated(noteOvercommit, "cpu=NaN maxRisk=1e400")))},
		"node of many resources":      {Nodes: nodesOf(node("b", big+many(100, "r", "1"), pool("p"), h100))},
		"node of huge amounts":        {Nodes: nodesOf(node("b", "cpu=4P memory=4E pods=4E nvidia.com/gpu=4E example.org/x=4E", pool("p"), h100), node("c", "cpu=4P memory=4E pods=4E nvidia.com/gpu=4E", pool("p"), h100))},
		"resource's name is too long": {Pods: podsOf(pod("x", "a", "cpu=1 "+strings.Repeat("a", 63)+"."+strings.Repeat("b", 63)+"."+strings.Repeat("c", 63)+"."+strings.Repeat("d", 61)+"/"+strings.Repeat("e", 63)+"=1"))},
		"capital domain":              {Pods: podsOf(pod("x", "a", "cpu=1 Example.org/x=1 kubernetes.io/x=1 a/b/c=1 /x=1 x/=1"))},
		"hostile names of resources":  {Pods: podsOf(podWith("x", "a", "a b/\x1b[2Jc", "é/x", "\n", "gpu", "nvidia.com/mig-\n"))},
		"thousands of slices":         {Pods: crowd(6000)},
		"hostile user":                {Pods: podsOf(pod("x", "a", "cpu=1", offloaded("\x1b[31m\n../é", "")), pod("y", "a", "cpu=1", offloaded("", strings.Repeat("x", 5000))))},
	} {
		t.Run(name, func(t *testing.T) {
			s.Cluster, s.Nodes = "paris", append(s.Nodes, honest("a"))
			for _, hash := range []string{"whole", "by node"} {
				if hash == "by node" {
					s.Hasher = hashes
				}
				flavors, memory, _ := Collect(s, Memory{})
				takes(t, hash, flavors)
				s.Nodes = nil
				flavors, _, _ = Collect(s, memory)
				takes(t, hash+" without nodes", flavors)
				s.Nodes = append(nodesOf(), honest("a"))
			}
		})
	}
}

func podsOf(pods ...*corev1.Pod) []*corev1.Pod     { return pods }
func nodesOf(nodes ...*corev1.Node) []*corev1.Node { return nodes }

func podWith(name, node string, resources ...string) *corev1.Pod {
	p := pod(name, node, "")
	for _, r := range resources {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(r)] = resource.MustParse("1")
	}
	return p
}

func crowd(n int) (out []*corev1.Pod) {
	for i := range n {
		out = append(out, pod(fmt.Sprint("x", i), "a", "cpu=1m", offloaded(fmt.Sprintf("s%d-ca3704aa0b06", i), "")))
	}
	return out
}

func hugeNodes(n int) (out []*corev1.Node) {
	for i := range n {
		out = append(out, node(fmt.Sprint("h", i), "cpu=4P memory=4E pods=4E nvidia.com/gpu=4E", pool("p"), h100, hashed))
	}
	return out
}

func kinds(n int) (out []*corev1.Node) {
	for i := range n {
		out = append(out, node(fmt.Sprint("k", i), big, pool(fmt.Sprint("k", i))))
	}
	return out
}

func notesOf(n int) nodeOption {
	return func(node *corev1.Node) {
		for i := range n {
			node.Annotations[fmt.Sprintf("provider.fluidos.eu/x%d", i)] = "y"
		}
	}
}

func takes(t *testing.T, what string, flavors []v1alpha1.Flavor) {
	t.Helper()
	raw, err := json.Marshal(wire.FlavorReport{Flavors: flavors})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if len(raw) > 8<<20 {
		t.Errorf("%s: the report has %d bytes", what, len(raw))
	}
	var read wire.FlavorReport
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Errorf("%s: does not decode: %v", what, err)
		return
	}
	m := market.New(market.Options{Now: time.Now})
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, read.Flavors, true); err != nil {
		t.Errorf("%s: refused: %v", what, err)
	}
}

// Pods that wait for room, as whoever may make a pod makes them.
func TestDemandIsTakenWhateverPodsAsk(t *testing.T) {
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + ".d/" + strings.Repeat("e", 50)
	asking := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := waiting(name, "vision.train")
		change(p)
		return p
	}
	tolerating := func(p *corev1.Pod, n int, value string) {
		for i := range n {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.TaintIntent, Value: fmt.Sprint(value, i)})
		}
	}
	wanting := func(p *corev1.Pod, n int, name, amount string) {
		for i := range n {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint(name, i))] = resource.MustParse(amount)
		}
	}
	for name, pods := range map[string][]*corev1.Pod{
		"many resources": {asking("a", func(p *corev1.Pod) { wanting(p, 100, "example.org/r", "1") })},
		"huge amounts":   {asking("a", func(p *corev1.Pod) { wanting(p, 1, "example.org/r", "4E") })},
		"no names":       {asking("a", func(p *corev1.Pod) { wanting(p, 1, "\x1b[2J/ ", "4") })},
		"many intents":   {asking("a", func(p *corev1.Pod) { tolerating(p, 100, "x") })},
		"long intents":   {asking("a", func(p *corev1.Pod) { tolerating(p, 2, strings.Repeat("x", 300)) })},
		"many kinds": func() (out []*corev1.Pod) {
			for i := range 2500 {
				out = append(out, asking(fmt.Sprint(i), func(p *corev1.Pod) {
					wanting(p, 60, fmt.Sprint(long, i), "1")
					tolerating(p, 60, fmt.Sprint(strings.Repeat("x", 50), i))
				}))
			}
			return out
		}(),
	} {
		d := Demand(State{Cluster: "rome", Pods: pods})
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var read v1alpha1.Demand
		if err := json.Unmarshal(raw, &read); err != nil || len(raw) > 4<<20 || len(read.Pending) == 0 {
			t.Errorf("%s: %d bytes, %d kinds, %v", name, len(raw), len(read.Pending), err)
		}
		if err := market.CheckDemand(&read); err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
	}
}

// A pool that is scaled to nothing takes no figure of its contracts with it: what the ledger
// promises, a slice holds, and a flavor without nodes has what is held of it, so that nothing
// that was sold of it seems to be too much. What only pods or slices ask for, nobody has.
func TestHeldOfPromisesWithoutNodes(t *testing.T) {
	const sold = "cpu=4 nvidia.com/gpu=1 rdma/hca=1"
	s := State{
		Cluster: "paris", Nodes: nodesOf(node("a", big+" rdma/hca=8", pool("p"), h100)),
		Quotas:   []*offloadingv1beta1.Quota{quota("rome", "s0", sold+" example.org/x=1")},
		Slices:   []*authv1beta1.ResourceSlice{accepted("rome", "s0", sold+" example.org/x=1")},
		Promises: []enforce.Promise{{Contract: "s0", Slice: "s0", Flavor: "p", Resources: within.Amounts(quantities(sold))}},
	}
	_, memory, _ := Collect(s, Memory{})
	s.Nodes = nil
	flavors, _, problems := Collect(s, memory)
	if len(flavors) != 1 || len(problems) > 0 {
		t.Fatalf("%d flavors, %v", len(flavors), problems)
	}
	f := &flavors[0].Spec
	for what, r := range map[string]v1alpha1.Resources{"capacity": f.Capacity, "held": f.Held["s0"]} {
		if _, odd := r["example.org/x"]; odd || r["rdma/hca"].Int64() != 1 || r[v1alpha1.GPU].Int64() != 1 {
			t.Errorf("%s is %v", what, r.Canonical())
		}
	}
}
