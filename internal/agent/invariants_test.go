package agent

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// drawState is a small cluster in any condition: pools that are mixed, nodes
// out of service or unlabelled, pods of all kinds, grants with and without pods.
func drawState(t *rapid.T) State {
	s := State{Cluster: "paris"}
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		n := node(fmt.Sprint("n", i), "cpu=16 memory=64Gi pods=110 nvidia.com/gpu=8", h100, younger(rapid.IntRange(0, 3).Draw(t, "age")))
		if p := rapid.SampledFrom([]string{"a", "a", "b", ""}).Draw(t, "pool"); p != "" {
			pool(p)(n)
		}
		if rapid.IntRange(0, 3).Draw(t, "zone") == 0 {
			labelled(corev1.LabelTopologyZone, "z")(n)
		}
		rapid.SampledFrom([]nodeOption{func(*corev1.Node) {}, func(*corev1.Node) {}, cordoned, notReady, deleting}).Draw(t, "condition")(n)
		s.Nodes = append(s.Nodes, n)
	}
	slice := rapid.SampledFrom([]string{"s0", "s1", "s2"})
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		p := pod(fmt.Sprint("p", i), "", fmt.Sprintf("cpu=%d nvidia.com/gpu=%d", rapid.IntRange(0, 3).Draw(t, "cpu"), rapid.IntRange(0, 2).Draw(t, "gpu")))
		if len(s.Nodes) > 0 && rapid.IntRange(0, 5).Draw(t, "bound") > 0 {
			bindIfFits(s, p, s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")])
		}
		if rapid.Bool().Draw(t, "offloaded") {
			offloaded(slice.Draw(t, "slice")+"-ca3704aa0b06", "")(p)
		}
		p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded}).Draw(t, "phase")
		s.Pods = append(s.Pods, p)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "quotas") {
		s.Quotas = append(s.Quotas, quota("liqo-tenant-rome", fmt.Sprint("s", i), fmt.Sprintf("cpu=4 nvidia.com/gpu=%d", rapid.IntRange(0, 4).Draw(t, "granted"))))
	}
	return s
}

// bindIfFits is what a scheduler and a kubelet do: no node runs more than it has.
func bindIfFits(s State, p *corev1.Pod, n *corev1.Node) {
	left := amounts(n.Status.Allocatable).Sub(requests(p))
	for _, other := range s.Pods {
		if other.Spec.NodeName == n.Name {
			left = left.Sub(requests(other))
		}
	}
	for _, amount := range left {
		if amount.Int64() < 0 {
			return
		}
	}
	p.Spec.NodeName = n.Name
}

// drawHistory is a Memory that some earlier state has left.
func drawHistory(t *rapid.T) Memory {
	memory := Memory{}
	for range rapid.IntRange(0, 2).Draw(t, "history") {
		_, memory, _ = Collect(drawState(t), memory)
	}
	return memory
}

// Never more is free by the report than is free on nodes in service, less what
// is granted and not used yet.
func TestNeverMoreIsOfferedThanIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := drawHistory(t)
		s := drawState(t)
		flavors, _, _ := Collect(s, memory)
		for _, resource := range []string{"cpu", v1alpha1.GPU} {
			offered := int64(0)
			for _, f := range flavors {
				free := f.Spec.Capacity[resource].Sub(f.Spec.Used[resource])
				for _, held := range f.Spec.Held {
					free = free.Sub(held[resource])
				}
				offered += max(free.Int64(), 0)
			}
			if limit := reallyFree(s, resource); offered > limit {
				t.Fatalf("%d %s are offered, %d are free in\n%s", offered, resource, limit, draw(flavors))
			}
		}
	})
}

// reallyFree counts, without the code under test, what nothing runs on.
func reallyFree(s State, resource string) int64 {
	raw, scale := corev1.ResourceName(resource), int64(1000)
	if resource == v1alpha1.GPU {
		raw, scale = "nvidia.com/gpu", 1
	}
	free := int64(0)
	for _, n := range s.Nodes {
		if n.Labels[labelPool] == "" || n.Spec.Unschedulable || n.DeletionTimestamp != nil || n.Status.Conditions[0].Status != corev1.ConditionTrue {
			continue
		}
		left := n.Status.Allocatable.Name(raw, "").Value() * scale
		for _, p := range s.Pods {
			if p.Spec.NodeName == n.Name && p.Status.Phase != corev1.PodSucceeded {
				left -= p.Spec.Containers[0].Resources.Requests.Name(raw, "").Value() * scale
			}
		}
		free += left
	}
	return max(free, 0)
}

// Nothing that is granted or runs is left out, whatever happened to its flavor.
func TestNothingHeldIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := drawHistory(t)
		s := drawState(t)
		flavors, _, _ := Collect(s, memory)
		told := func(slice string) (gpus int64, found bool) {
			for _, f := range flavors {
				if held, ok := f.Spec.Held[slice]; ok {
					gpus, found = gpus+held[v1alpha1.GPU].Int64(), true
				}
			}
			return gpus, found
		}
		for _, q := range s.Quotas {
			slice := q.OwnerReferences[0].Name
			gpus, found := told(slice)
			if want := q.Spec.Resources.Name("nvidia.com/gpu", "").Value(); !found || gpus < want {
				t.Fatalf("%s was granted %d GPUs, told are %d (%v) in\n%s", slice, want, gpus, found, draw(flavors))
			}
		}
		running := map[string]int64{}
		for _, p := range s.Pods {
			if isLive(p) && isOffloaded(p) {
				running[withoutUserSuffix(p.Labels[labelCreator])] += p.Spec.Containers[0].Resources.Requests.Name("nvidia.com/gpu", "").Value()
			}
		}
		for slice, want := range running {
			if gpus, found := told(slice); !found || gpus < want {
				t.Fatalf("%s runs with %d GPUs, told are %d (%v) in\n%s", slice, want, gpus, found, draw(flavors))
			}
		}
	})
}

// The order in which the cache lists objects is chance and must not matter.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := drawHistory(t)
		s := drawState(t)
		want, _, _ := Collect(s, memory)
		shuffled := State{Cluster: s.Cluster, Nodes: slices.Clone(s.Nodes), Pods: slices.Clone(s.Pods), Quotas: slices.Clone(s.Quotas)}
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		random.Shuffle(len(shuffled.Nodes), func(i, j int) { shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i] })
		random.Shuffle(len(shuffled.Pods), func(i, j int) { shuffled.Pods[i], shuffled.Pods[j] = shuffled.Pods[j], shuffled.Pods[i] })
		random.Shuffle(len(shuffled.Quotas), func(i, j int) { shuffled.Quotas[i], shuffled.Quotas[j] = shuffled.Quotas[j], shuffled.Quotas[i] })
		got, _, _ := Collect(shuffled, memory)
		if draw(got) != draw(want) {
			t.Fatalf("got\n%s\nwant\n%s", draw(got), draw(want))
		}
	})
}

// A second look at the same cluster says the same.
func TestNothingChangesByItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := drawHistory(t)
		s := drawState(t)
		first, memory, _ := Collect(s, memory)
		second, _, _ := Collect(s, memory)
		if draw(first) != draw(second) {
			t.Fatalf("first\n%s\nthen\n%s", draw(first), draw(second))
		}
		seen := map[string]bool{}
		for _, f := range first {
			if seen[f.Metadata.Name] || f.Metadata.Namespace != "paris" || dnsName(f.Metadata.Name) != f.Metadata.Name {
				t.Fatalf("name %q among\n%s", f.Ref(), draw(first))
			}
			seen[f.Metadata.Name] = true
		}
	})
}

// Ten thousand pods on a thousand nodes, as a large cluster has them.
func BenchmarkCollect(b *testing.B) {
	s := State{Cluster: "paris"}
	for i := range 1000 {
		s.Nodes = append(s.Nodes, node(fmt.Sprint("n", i), big, pool(fmt.Sprint("pool-", i%10)), h100))
	}
	for i := range 10000 {
		p := pod(fmt.Sprint("p", i), fmt.Sprint("n", i%1000), "cpu=1 memory=1Gi")
		if i%2 == 0 {
			offloaded(fmt.Sprintf("s%d-ca3704aa0b06", i%100), "")(p)
		}
		s.Pods = append(s.Pods, p)
	}
	for i := range 100 {
		s.Quotas = append(s.Quotas, quota("liqo-tenant-rome", fmt.Sprint("s", i), "cpu=100 nvidia.com/gpu=4"))
	}
	_, memory, _ := Collect(s, Memory{})
	b.ResetTimer()
	for range b.N {
		Collect(s, memory)
	}
}
