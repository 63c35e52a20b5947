//go:build e2e

package env_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

func TestNodesPodsAndLiqoObjects(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "objects"})
	ctx, api := testContext(t), client(t, cluster)

	_, err := env.CreateGPUNode(ctx, cluster.Config, env.GPUNode{
		Name: "gpu-1", GPUs: 8,
		Labels: map[string]string{"fleetbroker.io/pool": "h100"},
	})
	if err != nil {
		t.Fatal(err)
	}
	node, err := api.CoreV1().Nodes().Get(ctx, "gpu-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Allocatable[env.GPUResource]; got.Value() != 8 {
		t.Errorf("the node has %s GPUs, want 8", got.String())
	}
	if node.Labels["nvidia.com/gpu.product"] == "" || node.Labels["fleetbroker.io/pool"] != "h100" || len(node.Spec.Taints) != 0 {
		t.Errorf("got the labels %v and taints %v", node.Labels, node.Spec.Taints)
	}
	pod, err := env.RunPod(ctx, cluster.Config, "default", "worker", "gpu-1",
		corev1.ResourceList{env.GPUResource: resource.MustParse("2"), corev1.ResourceCPU: resource.MustParse("4")})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != "gpu-1" || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %s on %q", pod.Status.Phase, pod.Spec.NodeName)
	}

	for range 2 { // a second installation updates
		if err := env.InstallLiqoCRDs(ctx, cluster.Config); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := crclient.New(cluster.Config, crclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "slice"}}
	if err := objects.Create(ctx, slice); err != nil {
		t.Fatal(err)
	}
}

func TestKubectl(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "kubectl"})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml": "resources: [namespace.yaml]\n",
		"namespace.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: made}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := cluster.Kubectl(testContext(t), dir, "apply", "-k", "."); err != nil || got != "namespace/made created\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := cluster.Kubectl(testContext(t), "", "get", "namespace", "absent"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("got %v, want kubectl's own words", err)
	}
}
