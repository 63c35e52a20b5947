package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/bynode"
	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"pgregory.net/rapid"
)

var hashes = bynode.NewHasher("salt")

// hashed is a node that bears its hash.
func hashed(n *corev1.Node) { n.Labels[v1alpha1.LabelNode] = hashes.Of(n.Name) }

// drawNodes writes down what is reported of the first flavor's nodes, by their names.
func drawNodes(f v1alpha1.Flavor, names ...string) string {
	var out strings.Builder
	for _, name := range names {
		for _, g := range f.Spec.Nodes.Groups {
			for _, hash := range g.Nodes {
				if hash == hashes.Of(name) {
					free := g.Free
					if free == nil {
						free = g.Shape
					}
					fmt.Fprintf(&out, "%s %s free %s\n", name, figures(g.Shape), figures(free))
				}
			}
		}
		for _, slice := range sortedKeys(f.Spec.HeldOn) {
			if r, holds := f.Spec.HeldOn[slice][hashes.Of(name)]; holds {
				fmt.Fprintf(&out, "%s %s holds %s\n", name, slice, figures(r))
			}
		}
	}
	return out.String()
}

// Eight free GPUs that lie four and four on two nodes are reported as such, and what a
// contract holds where, by its pods and by the ledger: all nodes together no more than its
// slice's quota, so that a pod on another node than the ledger names is not counted twice.
func TestCollect_ReportsNodes(t *testing.T) {
	const size = "cpu=96 memory=1Ti pods=110 nvidia.com/gpu=8"
	s := State{
		Hasher: hashes,
		Nodes: []*corev1.Node{
			node("a", size, h100, pool("h100"), hashed), node("b", size, h100, pool("h100"), hashed), node("c", size, h100, pool("h100")),
			node("d", size, h100, hashed), node("cpu", "cpu=8 memory=32Gi pods=110", pool("cpu")),
		},
		Pods: []*corev1.Pod{
			pod("own-a", "a", "cpu=4 nvidia.com/gpu=4"), pod("own-b", "b", "nvidia.com/gpu=4"),
			pod("train-0", "a", "cpu=2 nvidia.com/gpu=1", offloaded("train-ca3704aa0b06", "")),
			pod("stray", "d", "nvidia.com/gpu=1", offloaded("train-ca3704aa0b06", "")),
		},
	}
	s.Quotas = append(s.Quotas, quota("liqo-tenant-rome", "train", "cpu=8 nvidia.com/gpu=3"))
	s.Promises = []enforce.Promise{{
		Contract: "train", Slice: "train", Flavor: "h100", Standing: true, Priority: 5,
		Nodes: []v1alpha1.ContractNode{{Node: hashes.Of("b"), Resources: v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(2), v1alpha1.CPU: v1alpha1.AmountOf(4000)}}},
	}, {
		Contract: "later", Slice: "later", Flavor: "h100", Standing: true,
		Nodes: []v1alpha1.ContractNode{{Node: hashes.Of("b"), Resources: v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(3)}}},
	}}
	s.Cluster = "paris"
	flavors, next, problems := Collect(s, Memory{})
	if len(problems) > 0 || len(flavors) != 2 {
		t.Fatalf("%d flavors, problems %v", len(flavors), problems)
	}
	compare(t, drawNodes(flavors[1], "a", "b", "c", "d"), `
a cpu=96 gpu=8 memory=1Ti pods=110 free cpu=92 gpu=4 memory=1Ti pods=109
a train holds cpu=2 gpu=1 pods=1
b cpu=96 gpu=8 memory=1Ti pods=110 free cpu=96 gpu=4 memory=1Ti pods=109
b train holds cpu=4 gpu=1
d train holds gpu=1 pods=1
`)
	if flavors[0].Spec.Nodes != nil {
		t.Errorf("a flavor without accelerators tells nodes: %+v", flavors[0].Spec.Nodes)
	}
	if got := fmt.Sprint(next.unlabelled); got != fmt.Sprint(map[string]string{"c": hashes.Of("c")}) {
		t.Errorf("to be labelled: %s, want c", got)
	}
	if why := next.short["later"]; len(next.short) != 1 || !strings.HasPrefix(why, "node "+hashes.Of("b")+": 2 of 3 gpu are left") {
		t.Errorf("short: %v", next.short)
	}
	s.Hasher = nil
	if flavors, next, _ = Collect(s, Memory{}); flavors[1].Spec.Nodes != nil || len(next.unlabelled)+len(next.short) > 0 {
		t.Errorf("without the right nodes are told: %+v", flavors[1].Spec)
	}
}

// What is reported of any cluster's nodes passes the brokers' check, and on no node more
// is free than is.
func TestNodesAreTold_AsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := drawHistory(t)
		s := drawState(t)
		s.Hasher = hashes
		names := map[string]*corev1.Node{}
		for _, n := range s.Nodes {
			hashed(n)
			names[hashes.Of(n.Name)] = n
		}
		flavors, _, _ := Collect(s, memory)
		for i := range flavors {
			f := &flavors[i]
			if err := onnodes.Report(&f.Spec); err != nil {
				t.Fatalf("%s is refused: %v\n%s", f.Ref(), err, draw(flavors))
			}
			if f.Spec.Nodes == nil {
				continue
			}
			for _, g := range f.Spec.Nodes.Groups {
				free := g.Free
				if free == nil {
					free = g.Shape
				}
				for _, hash := range g.Nodes {
					left := free[v1alpha1.GPU]
					for _, nodes := range f.Spec.HeldOn {
						left = left.Sub(nodes[hash][v1alpha1.GPU])
					}
					if really := reallyFree(State{Nodes: []*corev1.Node{names[hash]}, Pods: podsOn(s.Pods, names[hash].Name)}, v1alpha1.GPU); left.Int64() > really {
						t.Fatalf("%d GPUs are free on %s, really %d\n%+v", left.Int64(), names[hash].Name, really, f.Spec)
					}
				}
			}
		}
	})
}

func podsOn(pods []*corev1.Pod, node string) (out []*corev1.Pod) {
	for _, p := range pods {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// Accelerators that are no cards, such as TPUs, are a node's too: four that are free on each of
// two nodes are no eight.
func TestCollect_ReportsNodesOfTPUs(t *testing.T) {
	const size = "cpu=96 memory=1Ti pods=110 google.com/tpu=8"
	s := State{
		Hasher: hashes, Cluster: "paris",
		Nodes: []*corev1.Node{node("a", size, pool("tpu"), hashed), node("b", size, pool("tpu"), hashed)},
		Pods:  []*corev1.Pod{pod("own-a", "a", "google.com/tpu=4"), pod("own-b", "b", "google.com/tpu=4")},
		Promises: []enforce.Promise{{
			Contract: "train", Slice: "train", Flavor: "tpu", Standing: true,
			Nodes: []v1alpha1.ContractNode{{Node: hashes.Of("b"), Resources: v1alpha1.Resources{"google.com/tpu": v1alpha1.AmountOf(4)}}},
		}},
	}
	s.Quotas = append(s.Quotas, quota("liqo-tenant-rome", "train", "google.com/tpu=4"))
	flavors, _, problems := Collect(s, Memory{})
	if len(problems) > 0 || len(flavors) != 1 {
		t.Fatalf("%d flavors, problems %v", len(flavors), problems)
	}
	compare(t, drawNodes(flavors[0], "a", "b"), `
a cpu=96 google.com/tpu=8 memory=1Ti pods=110 free cpu=96 google.com/tpu=4 memory=1Ti pods=109
b cpu=96 google.com/tpu=8 memory=1Ti pods=110 free cpu=96 google.com/tpu=4 memory=1Ti pods=109
b train holds google.com/tpu=4
`)
	if err := onnodes.Report(&flavors[0].Spec); err != nil {
		t.Error(err)
	}
}

// 5,000 nodes, no two of which are alike, with 5,000 contracts on them, are reported
// within what a broker takes (8 MiB unpacked, server's maxReport; the market's entries).
func TestReport_OfFiveThousandNodes(t *testing.T) {
	const nodes, maxReport = 5000, 8 << 20
	s := State{Cluster: "paris", Hasher: hashes}
	for i := range nodes {
		name := fmt.Sprintf("gpu-node-%04d.paris.example.org", i)
		s.Nodes = append(s.Nodes, node(name, "cpu=192 memory=2Ti pods=110 ephemeral-storage=7Ti nvidia.com/gpu=8 rdma/hca=8", h100, pool("h100"), hashed,
			labelled("nvidia.com/gpu.clique", fmt.Sprintf("00000000-0000-0000-0000-%012d.%d", i/18, i%2)), labelled("topology.kubernetes.io/rack", fmt.Sprint("rack-", i/8))))
		s.Pods = append(s.Pods, pod(fmt.Sprint("own-", i), name, fmt.Sprintf("cpu=%dm memory=%dMi nvidia.com/gpu=%d", 100+i, 200+i, i%4)))
		slice := fmt.Sprintf("vision-train-run-%04d-0-0", i)
		s.Pods = append(s.Pods, pod(fmt.Sprint("train-", i), name, "cpu=8 memory=64Gi nvidia.com/gpu=4", offloaded(slice+"-ca3704aa0b06", "")))
	}
	flavors, _, _ := Collect(s, Memory{})
	if len(flavors) != 1 || len(flavors[0].Spec.Nodes.Groups) < nodes*9/10 || len(flavors[0].Spec.HeldOn) != nodes {
		t.Fatalf("%d flavors", len(flavors))
	}
	raw, err := json.Marshal(wire.FlavorReport{Flavors: flavors})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := pack(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnodes.Report(&flavors[0].Spec); err != nil || len(raw) > maxReport || onnodes.Entries(&flavors[0].Spec) > 200_000 {
		t.Errorf("%d bytes, %d packed, %d entries, %v", len(raw), len(packed), onnodes.Entries(&flavors[0].Spec), err)
	}
	t.Logf("%d groups: %d bytes, %d packed, %d entries", len(flavors[0].Spec.Nodes.Groups), len(raw), len(packed), onnodes.Entries(&flavors[0].Spec))
}
