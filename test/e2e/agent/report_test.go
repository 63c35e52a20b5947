// Package agent tries the agent as a whole: what it reports against what a
// market takes, and, with the tag e2e, the program on a real API server.
package agent

import (
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/agent"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// keys are annotations and labels that the agent reads.
var keys = []string{
	"gpu.fluidos.eu/model", "gpu.fluidos.eu/vendor", "gpu.fluidos.eu/memory", "gpu.fluidos.eu/memory_per_gpu", "gpu.fluidos.eu/count",
	"gpu.fluidos.eu/tier", "gpu.fluidos.eu/compute_capability", "gpu.fluidos.eu/sharing-strategy", "gpu.fluidos.eu/other",
	"cost.fluidos.eu/hourly-rate", "cost.fluidos.eu/currency", "location.fluidos.eu/region", "location.fluidos.eu/city",
	"network.fluidos.eu/latency_ms", "workload.fluidos.eu/hpc-score",
	"nvidia.com/gpu.product", "nvidia.com/gpu.memory", "nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gpu.compute.major",
	"amd.com/gpu.product-name", "amd.com/gpu.vram", "fleetbroker.io/pool", "topology.kubernetes.io/zone",
	"fleetbroker.io/cordon", "fleetbroker.io/drain", "fleetbroker.io/overcommit",
}

var values = rapid.OneOf(
	rapid.String(),
	rapid.StringN(200, 2000, -1),
	rapid.SampledFrom([]string{"nvidia-h100", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "80Gi", "40GB..80GB", "999999999Gi", "-1", "0", "1e9", "99999999999999999", "9223372036854775807", "3.20", "eur", "EUR", "mps", "true", "2026-12-01T08:00:00Z", "cpu=1.5 maxRisk=0.01", "memory=10 pods=9.999999999999999999999999 maxRisk=1", "\n", ""}),
)

// labels are what Kubernetes allows as a label's value.
var labels = rapid.OneOf(
	rapid.StringMatching(`([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`),
	rapid.SampledFrom([]string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "81559", "8", "99999999999999999", "9223372036854775807", "192G", "9Ei", ""}),
)

// A market refuses a whole report for one value that is out of bounds: whatever
// stands on nodes, quotas and pods, a report must not be refused.
func TestWhateverNodesSayTheReportIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := agent.State{Cluster: "paris"}
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprint("n", i),
				Labels:      rapid.MapOf(rapid.SampledFrom(keys), labels).Draw(t, "labels"),
				Annotations: rapid.MapOf(rapid.SampledFrom(keys), values).Draw(t, "annotations"),
			}}
			n.Labels["node-role.fluidos.eu/resources"] = "true"
			n.Status.Capacity = corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb", "rdma/hca"} {
				n.Status.Capacity[name] = *resource.NewQuantity(rapid.Int64Range(-1, 1<<50).Draw(t, string(name)), resource.DecimalSI)
			}
			n.Status.Allocatable = n.Status.Capacity
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			s.Nodes = append(s.Nodes, n)
		}
		grants := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("-1")}
		for range rapid.IntRange(0, 3).Draw(t, "grants") {
			s.Quotas = append(s.Quotas, &offloadingv1beta1.Quota{Spec: offloadingv1beta1.QuotaSpec{User: values.Draw(t, "user"), Resources: grants}})
			s.Slices = append(s.Slices, &authv1beta1.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: values.Draw(t, "slice"), Labels: map[string]string{"liqo.io/replicated": "true"}, Annotations: map[string]string{"fleetbroker.io/flavor": values.Draw(t, "flavor")}},
				Status: authv1beta1.ResourceSliceStatus{Resources: grants, Conditions: []authv1beta1.ResourceSliceCondition{
					{Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted},
				}},
			})
			s.Pods = append(s.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"offloading.liqo.io/origin": "rome", "liqo.io/creator-user": labels.Draw(t, "creator")}},
				Spec:       corev1.PodSpec{NodeName: rapid.SampledFrom([]string{"n0", "elsewhere"}).Draw(t, "on")},
			})
		}
		m, memory := market.New(market.Options{}), agent.Memory{}
		for n := range uint64(2) {
			flavors, next, _ := agent.Collect(s, memory)
			if err := m.Report("paris", wire.Generation{Epoch: 1, N: n + 1}, flavors, true); err != nil {
				t.Fatal(err)
			}
			memory, s.Nodes = next, nil // and withdrawn
		}
	})
}
