//go:build e2e

package delivery

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// without is access to the clusters but for one, of which there is no kubeconfig.
type without struct {
	testAccess
	cluster string
}

// RESTConfig implements Access.
func (w without) RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	if cluster.Metadata.Name == w.cluster {
		return nil, errors.New("no kubeconfig")
	}
	return w.testAccess.RESTConfig(ctx, cluster)
}

// A provider that cannot be peered with is in the log and in the status, and stops nothing
// else on the consumer.
func testNoPeering(t *testing.T, access testAccess) {
	r, rome := newRig(t, without{access, "paris"}, nil), watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train"))
	want.Peers = map[string]Peer{"paris": {
		Provider: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "paris"}}, Needed: true,
		ConsumerID: "rome", ProviderID: "paris", OnConsumer: tenantNamespace, OnProvider: "liqo-tenant-rome",
	}}
	r.deliver(want)
	envtest.Eventually(t, "the status to say why there is no peering, and the slice to be applied", func(context.Context) bool {
		return len(r.Status()["rome"].Troubles) == 1 && rome.get(sliceKey("train")) != nil
	})
	r.lines.Wants(t, "FB1078")
	gone := desired(t, "rome")
	r.deliver(gone)
	r.settled(t, gone)
}

// A pod that its budget keeps on a node that is drained is deleted once the grace of the
// contract's release is over, and not before.
func testGraceIsOver(t *testing.T, access testAccess) {
	ctx := t.Context()
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	first := desired(t, "rome", contract("rome", "train"))
	r.deliver(first)
	r.settled(t, first)
	node := nodeKey("train").Name
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": []any{"virtualnode-controller.liqo.io/finalizer"}})) // Liqo drains first
	rome.createNode(node, "True", "4")
	api, err := kubernetes.NewForConfig(access["rome"].Config)
	if err != nil {
		t.Fatal(err)
	}
	labels, one := map[string]string{"app": "train"}, intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	if _, err := api.PolicyV1().PodDisruptionBudgets("vision").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: labels}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "train", Image: "train"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	envtest.Eventually(t, "the pod to be made, once the namespace has its ServiceAccount", func(ctx context.Context) bool {
		_, err := api.CoreV1().Pods("vision").Create(ctx, pod, metav1.CreateOptions{})
		return err == nil
	})
	stays := func() bool {
		got, err := api.CoreV1().Pods("vision").Get(ctx, "train", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil && got.DeletionTimestamp == nil
	}
	release := func(grace time.Duration) Desired {
		return desired(t, "rome", contract("rome", "train", releasing, func(c *v1alpha1.Contract) {
			c.Spec.Grace, c.Status.Since = v1alpha1.Duration{Duration: grace}, v1alpha1.TimeOf(time.Now().Add(-time.Minute))
		}))
	}
	r.deliver(release(time.Hour))
	envtest.Eventually(t, "the drain to be seen held up", func(context.Context) bool {
		all, _ := r.Observe()
		o := all["rome"]["vision-train-0-aaaa"]
		return len(o.Blockers) == 1 && o.Blockers[0] == "pod vision/train (PodDisruptionBudget train allows no disruption)"
	})
	if !stays() {
		t.Fatal("within the grace the pod was deleted")
	}
	r.deliver(release(time.Second))
	envtest.Eventually(t, "the pod to be deleted after the grace", func(context.Context) bool { return !stays() })
	r.lines.Wants(t, "FB1072")

	// What Liqo and a kubelet would do.
	now := int64(0)
	if err := api.CoreV1().Pods("vision").Delete(ctx, "train", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": nil}))
	rome.delete(key{Kind: kindNode, Name: node})
	gone := desired(t, "rome")
	r.deliver(gone)
	r.settled(t, gone)
}
