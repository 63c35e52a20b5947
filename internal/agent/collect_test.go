package agent

import (
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const big = "cpu=64 memory=512Gi pods=110 nvidia.com/gpu=8"

func TestCollect(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  State
		want   string
	}{
		"a pool": {
			reason: "capacities add up, under the pool's name",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("h100-pool"), h100), node("b", big, pool("h100-pool"), h100), node("c", big, h100)},
			},
			want: `
paris/h100-pool nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=128 gpu=16 memory=1Ti pods=220
`,
		},
		"virtual nodes": {
			reason: "another cluster's capacity is not ours to offer, nor are pods on it ours",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("p"), h100), node("v", big, pool("p"), h100, labelled("liqo.io/type", "virtual-node"))},
				Pods:  []*corev1.Pod{pod("x", "v", "cpu=1 nvidia.com/gpu=1")},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
`,
		},
		"own pods": {
			reason: "requests of bound pods that have not ended are used, whatever their phase",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("p"), h100), node("other", big)},
				Pods: []*corev1.Pod{
					pod("running", "a", "cpu=1 memory=1Gi nvidia.com/gpu=1"),
					pod("starting", "a", "cpu=500m", phase(corev1.PodPending)),
					pod("waiting", "", "cpu=32", phase(corev1.PodPending)),
					pod("done", "a", "cpu=32", phase(corev1.PodSucceeded)),
					pod("failed", "a", "cpu=32", phase(corev1.PodFailed)),
					pod("elsewhere", "other", "cpu=32"),
				},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  used cpu=1500m gpu=1 memory=1Gi pods=2
`,
		},
		"init containers, sidecars, overhead": {
			reason: "as the scheduler counts: max of init and main, sidecars on both, overhead on top",
			state: State{
				Nodes: []*corev1.Node{node("a", "cpu=64 pods=110", pool("p"))},
				Pods: []*corev1.Pod{
					pod("init", "a", "cpu=1", initial("cpu=4", false)),                         // 4
					pod("sidecar", "a", "cpu=1", initial("cpu=2", true)),                       // 3
					pod("both", "a", "cpu=1", initial("cpu=2", true), initial("cpu=4", false)), // 6
					pod("overhead", "a", "cpu=1", overhead("cpu=250m")),                        // 1.25
				},
			},
			want: `
paris/p
  capacity cpu=64 pods=110
  used cpu=14250m pods=4
`,
		},
		"nodes out of service": {
			reason: "they add exactly what runs on them",
			state: State{
				Nodes: []*corev1.Node{
					node("a", big, pool("p"), h100), node("b", big, pool("p"), h100, cordoned),
					node("c", big, pool("p"), h100, notReady), node("d", big, pool("p"), h100, deleting),
				},
				Pods: []*corev1.Pod{
					pod("own", "b", "cpu=2 nvidia.com/gpu=1"),
					pod("theirs", "c", "cpu=4 nvidia.com/gpu=2", offloaded("s1-ca3704aa0b06", "s1")),
				},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s1", "cpu=8 nvidia.com/gpu=2")},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=70 gpu=11 memory=512Gi pods=112
  used cpu=2 gpu=1 pods=1
  held s1 cpu=8 gpu=2 pods=1
`,
		},
		"granted and running": {
			reason: "the larger of both counts for each resource; offloaded pods are never used",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("p"), h100)},
				Pods: []*corev1.Pod{
					pod("x", "a", "cpu=9 nvidia.com/gpu=1", offloaded("s1-ca3704aa0b06", "")),
					pod("drains", "a", "cpu=3 nvidia.com/gpu=1", offloaded("s2-ca3704aa0b06", "s2")), // its quota has gone
					pod("by node name", "a", "cpu=1", offloaded("", "s3")),
					pod("nameless", "a", "cpu=1", offloaded("", "")),
				},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s1", "cpu=8 memory=64Gi nvidia.com/gpu=4")},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  used cpu=1 pods=1
  held s1 cpu=9 gpu=4 memory=64Gi pods=1
  held s2 cpu=3 gpu=1 pods=1
  held s3 cpu=1 pods=1
`,
		},
		"slice without quota": {
			reason: "an accepted slice is granted before its quota is seen; a denied one, and our own as a consumer, are not",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("p"), h100)},
				Slices: []*authv1beta1.ResourceSlice{
					accepted("liqo-tenant-rome", "s1", "cpu=8 nvidia.com/gpu=4"),
					accepted("liqo-tenant-rome", "denied", "cpu=8", func(s *authv1beta1.ResourceSlice) {
						s.Status.Conditions[0].Status = authv1beta1.ResourceSliceConditionDenied
					}),
					accepted("liqo-tenant-lyon", "ours", "cpu=8", func(s *authv1beta1.ResourceSlice) { s.Labels[labelReplicated] = "false" }),
				},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held s1 cpu=8 gpu=4
`,
		},
		"two consumers, one name": {
			reason: "slices of one name add up: none is forgotten",
			state: State{
				Nodes:  []*corev1.Node{node("a", big, pool("p"), h100)},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s", "cpu=8"), quota("liqo-tenant-oslo", "s", "cpu=2")},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held s cpu=10
`,
		},
		"zones in one pool": {
			reason: "an offer is homogeneous; the oldest node's kind keeps the name",
			state: State{Nodes: []*corev1.Node{
				node("a", "cpu=8", pool("p"), labelled(corev1.LabelTopologyZone, "z1"), younger(5)),
				node("b", "cpu=4", pool("p"), labelled(corev1.LabelTopologyZone, "z2")),
				node("c", "cpu=2", pool("p"), labelled(corev1.LabelTopologyZone, "z1"), younger(9)),
			}},
			want: `
paris/p
  capacity cpu=4
paris/p-7e8fd4
  capacity cpu=10
`,
		},
		"MIG profiles beside whole cards": {
			reason: "a flavor for each profile, one pool: CPU and memory are shared",
			state: State{
				Nodes: []*corev1.Node{node("a", "cpu=64 memory=512Gi rdma/hca=4 nvidia.com/gpu=4 nvidia.com/mig-1g.10gb=14 nvidia.com/mig-3g.40gb=4", pool("p"), h100)},
				Pods:  []*corev1.Pod{pod("x", "a", "cpu=1 nvidia.com/mig-1g.10gb=2")},
				Quotas: []*offloadingv1beta1.Quota{
					quota("liqo-tenant-rome", "whole", "cpu=8 nvidia.com/gpu=2"),
					quota("liqo-tenant-rome", "part", "cpu=4 nvidia.com/mig-3g.40gb=1"),
				},
			},
			want: `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1 pool=p
  capacity cpu=64 gpu=4 memory=512Gi rdma/hca=4
  used cpu=1 pods=1
  held whole cpu=8 gpu=2
paris/p-1g-10gb nvidia-h100 10Gi nvidia.com/mig-1g.10gb/7 pool=p
  capacity cpu=64 gpu=14 memory=512Gi
  used cpu=1 gpu=2 pods=1
paris/p-3g-40gb nvidia-h100 40Gi nvidia.com/mig-3g.40gb/2 pool=p
  capacity cpu=64 gpu=4 memory=512Gi
  used cpu=1 pods=1
  held part cpu=4 gpu=1
`,
		},
		"huge pages": {
			reason: "they are memory that pods get by name alone: sold by the size, and a size of which a node has none is not told",
			state: State{
				Nodes:  []*corev1.Node{node("a", "cpu=64 memory=448Gi hugepages-1Gi=64Gi hugepages-2Mi=0", pool("p")), node("b", "cpu=64 memory=512Gi hugepages-1Gi=0 hugepages-2Mi=0", pool("p"))},
				Pods:   []*corev1.Pod{pod("x", "a", "cpu=1 hugepages-1Gi=8Gi")},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "held", "cpu=8 hugepages-1Gi=16Gi")},
			},
			want: `
paris/p
  capacity cpu=128 hugepages-1Gi=64Gi memory=960Gi
  used cpu=1 hugepages-1Gi=8Gi pods=1
  held held cpu=8 hugepages-1Gi=16Gi
`,
		},
		"pinned and annotated slices": {
			reason: "where a slice is pinned, and what its contract says, decide which flavor holds it",
			state: State{
				Nodes: []*corev1.Node{node("a", big, pool("a"), h100), node("b", big, pool("b"), h100), node("c", big, pool("c"), h100)},
				Slices: []*authv1beta1.ResourceSlice{
					accepted("liqo-tenant-rome", "pinned", "nvidia.com/gpu=1", func(s *authv1beta1.ResourceSlice) { s.Status.NodeSelector = map[string]string{labelPool: "b"} }),
					accepted("liqo-tenant-rome", "said", "nvidia.com/gpu=2", func(s *authv1beta1.ResourceSlice) { s.Annotations[v1alpha1.AnnotationFlavor] = "c" }),
					accepted("liqo-tenant-rome", "wrong", "nvidia.com/gpu=3", func(s *authv1beta1.ResourceSlice) { s.Annotations[v1alpha1.AnnotationFlavor] = "nowhere" }),
				},
			},
			want: `
paris/a nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held wrong gpu=3
paris/b nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held pinned gpu=1
paris/c nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held said gpu=2
`,
		},
		"running on another flavor's nodes": {
			reason: "what runs somewhere is told there too: nothing is sold twice",
			state: State{
				Nodes:  []*corev1.Node{node("a", big, pool("a"), h100), node("b", big, pool("b"), h100)},
				Pods:   []*corev1.Pod{pod("x", "b", "nvidia.com/gpu=1", offloaded("s-ca3704aa0b06", "s"))},
				Slices: []*authv1beta1.ResourceSlice{accepted("liqo-tenant-rome", "s", "nvidia.com/gpu=2", func(s *authv1beta1.ResourceSlice) { s.Annotations[v1alpha1.AnnotationFlavor] = "a" })},
			},
			want: `
paris/a nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held s gpu=2
paris/b nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
  held s gpu=1 pods=1
`,
		},
		"slices without GPUs": {
			reason: "they are of a flavor without GPUs where there is one",
			state: State{
				Nodes:  []*corev1.Node{node("a", big, pool("a"), h100), node("z", "cpu=8", pool("z"))},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s", "cpu=2 nvidia.com/gpu=0")},
			},
			want: `
paris/a nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=64 gpu=8 memory=512Gi pods=110
paris/z
  capacity cpu=8
  held s cpu=2
`,
		},
		"nothing offered, something granted": {
			reason: "a cluster that offers nothing tells what it holds all the same",
			state: State{
				Nodes:  []*corev1.Node{node("a", big, h100)},
				Quotas: []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s", "cpu=2 nvidia.com/gpu=1")},
			},
			want: `
paris/withdrawn  0 nvidia.com/gpu/1 cordoned
  capacity cpu=2 gpu=1
  held s cpu=2 gpu=1
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			compare(t, draw(collect(t, tc.state)), tc.want)
		})
	}
}

func TestWithdrawalKeepsWhatIsHeld(t *testing.T) {
	offeredState := State{
		Cluster: "paris",
		Nodes:   []*corev1.Node{node("a", big, pool("p"), h100), node("b", big, pool("p"), h100)},
		Pods:    []*corev1.Pod{pod("x", "a", "cpu=4 nvidia.com/gpu=2", offloaded("s-ca3704aa0b06", "s"))},
		Quotas:  []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s", "cpu=8 nvidia.com/gpu=2")},
	}
	_, memory, _ := Collect(offeredState, Memory{})

	half := offeredState
	half.Nodes = []*corev1.Node{node("a", big, h100), node("b", big, pool("p"), h100)}
	flavors, memory, _ := Collect(half, memory)
	compare(t, draw(flavors), `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1
  capacity cpu=68 gpu=10 memory=512Gi pods=111
  held s cpu=8 gpu=2 pods=1
`)

	none := offeredState
	none.Nodes = []*corev1.Node{node("a", big, h100), node("b", big, h100)}
	for range 2 { // and it stays so
		flavors, memory, _ = Collect(none, memory)
		compare(t, draw(flavors), `
paris/p nvidia-h100 80Gi nvidia.com/gpu/1 cordoned
  capacity cpu=8 gpu=2 pods=1
  held s cpu=8 gpu=2 pods=1
`)
	}

	gone := none
	gone.Pods, gone.Quotas = nil, nil
	flavors, memory, _ = Collect(gone, memory)
	compare(t, draw(flavors), "")

	flavors, _, _ = Collect(offeredState, memory)
	if len(flavors) != 1 || flavors[0].Spec.Cordon {
		t.Errorf("offered again: %s", draw(flavors))
	}
}

func TestNamesStayWhileNodesComeAndGo(t *testing.T) {
	z1, z2 := labelled(corev1.LabelTopologyZone, "z1"), labelled(corev1.LabelTopologyZone, "z2")
	first := State{Cluster: "paris", Nodes: []*corev1.Node{node("a", "cpu=8", pool("p"), z1), node("b", "cpu=4", pool("p"), z2, younger(1)), node("c", "cpu=2", pool("p"), z1, younger(2))}}
	_, memory, _ := Collect(first, Memory{})
	second := first
	second.Nodes = first.Nodes[1:] // the oldest node goes; its kind stays
	flavors, _, _ := Collect(second, memory)
	compare(t, draw(flavors), `
paris/p
  capacity cpu=2
paris/p-9274f6
  capacity cpu=4
`)
}

func TestASliceStaysWhereItWas(t *testing.T) {
	s := State{
		Cluster: "paris",
		Nodes:   []*corev1.Node{node("b", big, pool("b"), h100)},
		Quotas:  []*offloadingv1beta1.Quota{quota("liqo-tenant-rome", "s", "nvidia.com/gpu=1")},
	}
	_, memory, _ := Collect(s, Memory{})
	s.Nodes = append(s.Nodes, node("a", big, pool("a"), h100)) // now the first that fits
	flavors, _, _ := Collect(s, memory)
	if flavors[0].Spec.Held != nil || flavors[1].Spec.Held["s"] == nil {
		t.Errorf("the slice moved:\n%s", draw(flavors))
	}
}

// How Liqo enforces shows in the newest Quota, and in every flavor.
func TestEnforcement(t *testing.T) {
	older, newer := quota("liqo-tenant-rome", "s1", "cpu=1"), quota("liqo-tenant-rome", "s2", "cpu=1")
	older.CreationTimestamp, newer.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	older.Spec.LimitsEnforcement, newer.Spec.LimitsEnforcement = offloadingv1beta1.NoLimitsEnforcement, offloadingv1beta1.HardLimitsEnforcement
	for name, c := range map[string]struct {
		quotas []*offloadingv1beta1.Quota
		want   string
	}{
		"nobody knows": {nil, ""},
		"the newest":   {[]*offloadingv1beta1.Quota{newer, older}, "Hard"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enforcementOf(c.quotas); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// How Liqo is installed to enforce is reported until a Quota shows how it does.
func TestEnforcement_AsInstalled(t *testing.T) {
	shows := quota("liqo-tenant-rome", "s1", "cpu=1")
	shows.Spec.LimitsEnforcement = offloadingv1beta1.SoftLimitsEnforcement
	for name, c := range map[string]struct {
		installed string
		quotas    []*offloadingv1beta1.Quota
		want      string
	}{
		"nobody says":   {"", nil, ""},
		"as installed":  {"Hard", nil, "Hard"},
		"a Quota shows": {"Hard", []*offloadingv1beta1.Quota{shows}, "Soft"},
	} {
		flavors, _, _ := Collect(State{Nodes: []*corev1.Node{node("a", big, pool("a"))}, Quotas: c.quotas, LimitsEnforcement: c.installed}, Memory{})
		if got := flavors[0].Spec.Labels[v1alpha1.LabelEnforcement]; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
