//go:build e2e

package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// A provider that cannot be reached is reported as a peering that is missing, once, and that
// it is there again once it can be.
func testPeeringMissing(t *testing.T, cluster *env.Cluster) {
	provider := &fixedAccess{config: &rest.Config{Host: "https://127.0.0.1:1"}} // nobody listens there
	r := newRig(t, twoClusters{rome: &fixedAccess{config: cluster.Config}, paris: provider}, nil)
	want := desired(t, "rome", contract("rome", "train"))
	want.Peers = map[string]Peer{"paris": {
		Provider: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "paris"}}, Needed: true,
		ConsumerID: "id-rome", ProviderID: "id-paris", OnConsumer: tenantNamespace, OnProvider: "liqo-tenant-rome",
	}}
	r.deliver(want)
	envtest.Eventually(t, "the missing peering to be reported", func(context.Context) bool {
		return slices.ContainsFunc(r.Status()["rome"].Troubles, func(s string) bool {
			return strings.Contains(s, "paris") && strings.Contains(s, "127.0.0.1:1")
		})
	})
	r.lines.Wants(t, "FB1078")
	if n := strings.Count(r.lines.String(), "no peering"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	provider.set(cluster.Config) // the two are one cluster here: its API server answers as the provider's would
	r.settled(t, want)
	if !strings.Contains(r.lines.String(), "peering is there again") {
		t.Errorf("that it is there again is not logged:\n%s", &r.lines)
	}
}

// twoClusters are a consumer and a provider.
type twoClusters struct{ rome, paris Access }

// RESTConfig implements Access.
func (a twoClusters) RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	if cluster.Metadata.Name == "paris" {
		return a.paris.RESTConfig(ctx, cluster)
	}
	return a.rome.RESTConfig(ctx, cluster)
}

// A pod that its budget keeps on a Node is deleted once the grace of the release is over, and
// that is logged; not before.
func testPastBudgets(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	client, err := kubernetes.NewForConfig(access["rome"].Config)
	if err != nil {
		t.Fatal(err)
	}
	first := desired(t, "rome", contract("rome", "train"))
	r.deliver(first)
	r.settled(t, first)
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": []any{"example.org/eviction"}}))
	node := nodeKey("train").Name
	rome.createNode(node, "True", "4")
	made := func(err error) {
		t.Helper()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	const space, name = "default", "kept"
	_, err = client.CoreV1().ServiceAccounts(space).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	made(err)
	labels := map[string]string{"app": name}
	_, err = client.PolicyV1().PodDisruptionBudgets(space).Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{})
	made(err)
	none := int64(0)
	_, err = client.CoreV1().Pods(space).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &none, Containers: []corev1.Container{{Name: "c", Image: "example.org/train"}}},
	}, metav1.CreateOptions{})
	made(err)

	release := func(since time.Duration) {
		r.deliver(desired(t, "rome", contract("rome", "train", releasing, func(c *v1alpha1.Contract) {
			c.Spec.Grace, c.Status.Since = v1alpha1.Duration{Duration: time.Hour}, v1alpha1.TimeOf(time.Now().Add(-since))
		})))
	}
	release(time.Minute)
	envtest.Eventually(t, "what holds the release up to be reported", func(context.Context) bool {
		all := flat(r.Observe())
		o := all["vision-train-0-aaaa"]
		return slices.ContainsFunc(o.Blockers, func(s string) bool { return strings.Contains(s, "PodDisruptionBudget "+name+" allows no disruption") })
	})
	if _, err := client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("before the grace is over: %v", err)
	}
	release(2 * time.Hour)
	envtest.Eventually(t, "the pod to be deleted", func(ctx context.Context) bool {
		pod, err := client.CoreV1().Pods(space).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil
	})
	r.lines.Wants(t, "FB1072")
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": nil}))
	rome.delete(key{Kind: kindNode, Name: node})
	last := desired(t, "rome")
	r.deliver(last)
	r.settled(t, last)
}
