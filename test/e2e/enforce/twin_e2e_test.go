//go:build e2e

package enforce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
)

// replicator is crd-replicator's finalizer on what it copies.
const replicator = "crdreplicator.liqo.io/resource"

// newClient knows Liqo's kinds and the agents'.
func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, crd.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// twin stands in for Liqo between a consumer and a provider.
type twin struct {
	consumer, provider           client.Client
	consumerID, providerID       string
	consumerSpace, providerSpace string

	mu   sync.Mutex
	last error
	held string // the slice that is not replicated for now
	// granted by Liqo itself, of its own class.
	granted []string
	// level is how limits are enforced (the controller's flag); "" is None.
	level offloadingv1beta1.LimitsEnforcement
}

// enforces sets how limits are enforced from now on.
func (w *twin) enforces(level offloadingv1beta1.LimitsEnforcement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = level
}

func (w *twin) enforced() offloadingv1beta1.LimitsEnforcement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.level, offloadingv1beta1.NoLimitsEnforcement)
}

// hold stops replicating a slice, or all ("*"); "" goes on with all.
func (w *twin) hold(slice string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = slice
}

func (w *twin) holds(slice string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held == slice || w.held == "*"
}

// grantDefault answers a slice of Liqo's own class as Liqo does: with what it
// asks.
func (w *twin) grantDefault(slice string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = append(w.granted, slice)
}

// byLiqo grants a slice of the class default.
func (w *twin) byLiqo(ctx context.Context, there *authv1beta1.ResourceSlice) error {
	w.mu.Lock()
	mine := slices.Contains(w.granted, there.Name)
	w.mu.Unlock()
	if !mine || resources(there) != "" {
		return nil
	}
	there.Status.Resources = there.Spec.Resources
	there.Status.Conditions = append(there.Status.Conditions, authv1beta1.ResourceSliceCondition{
		Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted, LastTransitionTime: metav1.Now(),
	})
	return w.provider.Status().Update(ctx, there)
}

// startTwin peers two clusters and replicates between them until the test ends.
func startTwin(t *testing.T, consumer, provider client.Client, consumerID, providerID string) *twin {
	t.Helper()
	w := &twin{
		consumer: consumer, provider: provider, consumerID: consumerID, providerID: providerID,
		consumerSpace: "liqo-tenant-" + providerID, providerSpace: "liqo-tenant-" + consumerID,
	}
	labels := map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": consumerID}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.providerSpace, Labels: labels}},
		&authv1beta1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: consumerID, Namespace: w.providerSpace, Labels: map[string]string{"liqo.io/remote-cluster-id": consumerID}},
			Spec:       authv1beta1.TenantSpec{ClusterID: liqov1beta1.ClusterID(consumerID), TenantCondition: authv1beta1.TenantConditionActive},
		},
	} {
		if err := provider.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				err := w.pass(ctx)
				w.mu.Lock()
				w.last = err
				w.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Logf("the stand-in for Liqo last said: %v", w.last)
		}
	})
	return w
}

// pass brings the provider's copies in line with the consumer's slices, and
// back. What is written by somebody else meanwhile is for the next pass.
func (w *twin) pass(ctx context.Context) error {
	var wanted, copies authv1beta1.ResourceSliceList
	if err := w.consumer.List(ctx, &wanted, client.InNamespace(w.consumerSpace)); err != nil {
		return err
	}
	if err := w.provider.List(ctx, &copies, client.InNamespace(w.providerSpace)); err != nil {
		return err
	}
	there := map[string]*authv1beta1.ResourceSlice{}
	for i := range copies.Items {
		there[copies.Items[i].Name] = &copies.Items[i]
	}
	for i := range wanted.Items {
		if w.holds(wanted.Items[i].Name) {
			continue
		}
		if err := w.slice(ctx, &wanted.Items[i], there[wanted.Items[i].Name]); err != nil && !errors.IsConflict(err) {
			return fmt.Errorf("slice %s: %w", wanted.Items[i].Name, err)
		}
	}
	for _, s := range there {
		if err := w.quota(ctx, s); err != nil && !errors.IsConflict(err) {
			return fmt.Errorf("quota of %s: %w", s.Name, err)
		}
	}
	if err := w.collect(ctx, there); err != nil {
		return fmt.Errorf("quotas without a slice: %w", err)
	}
	return w.nodes(ctx, wanted.Items)
}

// collect removes quotas whose slice is gone, as the garbage collector would.
func (w *twin) collect(ctx context.Context, there map[string]*authv1beta1.ResourceSlice) error {
	var quotas offloadingv1beta1.QuotaList
	if err := w.provider.List(ctx, &quotas, client.InNamespace(w.providerSpace)); err != nil {
		return err
	}
	for i := range quotas.Items {
		q := &quotas.Items[i]
		if len(q.OwnerReferences) == 1 && there[q.OwnerReferences[0].Name] == nil {
			if err := client.IgnoreNotFound(w.provider.Delete(ctx, q)); err != nil {
				return err
			}
		}
	}
	return nil
}

// slice replicates one slice's spec there and its status back.
func (w *twin) slice(ctx context.Context, s, there *authv1beta1.ResourceSlice) error {
	if !s.DeletionTimestamp.IsZero() {
		if there != nil {
			return client.IgnoreNotFound(w.provider.Delete(ctx, there))
		}
		if controllerutil.RemoveFinalizer(s, replicator) {
			return w.consumer.Update(ctx, s)
		}
		return nil
	}
	if s.Labels["liqo.io/replication"] != "true" || s.Labels["liqo.io/remoteID"] != w.providerID {
		return nil
	}
	if controllerutil.AddFinalizer(s, replicator) {
		return w.consumer.Update(ctx, s)
	}
	spec := *s.Spec.DeepCopy()
	consumer := liqov1beta1.ClusterID(w.consumerID)
	spec.ConsumerClusterID = &consumer
	if there == nil {
		labels := maps.Clone(s.Labels) // both are copied once
		maps.Copy(labels, map[string]string{"liqo.io/originID": w.consumerID, "liqo.io/replicated": "true", "liqo.io/replication": "false", "liqo.io/remote-cluster-id": w.consumerID})
		there = &authv1beta1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: w.providerSpace, Annotations: maps.Clone(s.Annotations), Labels: labels},
			Spec:       spec,
		}
		return w.provider.Create(ctx, there)
	}
	if !apiequality.Semantic.DeepEqual(there.Spec, spec) {
		there.Spec = spec
		return w.provider.Update(ctx, there)
	}
	// Liqo authenticates slices of every class.
	if len(there.Status.Conditions) == 0 {
		there.Status.Conditions = []authv1beta1.ResourceSliceCondition{{
			Type: authv1beta1.ResourceSliceConditionTypeAuthentication, Status: authv1beta1.ResourceSliceConditionAccepted,
			LastTransitionTime: metav1.Now(), Reason: "ResourceSliceAuthenticationAccepted",
		}}
		return w.provider.Status().Update(ctx, there)
	}
	if err := w.byLiqo(ctx, there); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(s.Status, there.Status) {
		s.Status = there.Status
		return w.consumer.Status().Update(ctx, s)
	}
	return nil
}

// quota follows what is granted, while it is accepted.
func (w *twin) quota(ctx context.Context, s *authv1beta1.ResourceSlice) error {
	if resources(s) != authv1beta1.ResourceSliceConditionAccepted || !s.DeletionTimestamp.IsZero() {
		return nil
	}
	q := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-ca3704aa0b06", Namespace: s.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, w.provider, q, func() error {
		q.Spec = offloadingv1beta1.QuotaSpec{User: q.Name, LimitsEnforcement: w.enforced(), Resources: s.Status.Resources}
		return controllerutil.SetControllerReference(s, q, w.provider.Scheme())
	})
	return err
}

// nodes make a Node of each virtual node whose slice is granted, and take it
// away with the virtual node.
func (w *twin) nodes(ctx context.Context, list []authv1beta1.ResourceSlice) error {
	var virtual offloadingv1beta1.VirtualNodeList
	if err := w.consumer.List(ctx, &virtual, client.InNamespace(w.consumerSpace)); err != nil {
		return err
	}
	want := map[string]*offloadingv1beta1.VirtualNode{}
	for i := range virtual.Items {
		want[virtual.Items[i].Name] = &virtual.Items[i]
	}
	var have corev1.NodeList
	if err := w.consumer.List(ctx, &have, client.MatchingLabels{"liqo.io/type": "virtual-node"}); err != nil {
		return err
	}
	for i := range have.Items {
		if want[have.Items[i].Name] == nil {
			if err := client.IgnoreNotFound(w.consumer.Delete(ctx, &have.Items[i])); err != nil {
				return err
			}
		}
	}
	granted := map[string]*authv1beta1.ResourceSlice{}
	for i := range list {
		if resources(&list[i]) == authv1beta1.ResourceSliceConditionAccepted {
			granted[list[i].Name] = &list[i]
		}
	}
	for _, v := range want {
		if err := w.node(ctx, v, granted); err != nil {
			return err
		}
	}
	return nil
}

// node makes the Node of a virtual node, or brings it up to date. Like Liqo it takes size and
// labels from the slice that adopts the virtual node, or from the virtual node where the
// slice says that none is to be made of it; the credentials name the slice then.
func (w *twin) node(ctx context.Context, v *offloadingv1beta1.VirtualNode, granted map[string]*authv1beta1.ResourceSlice) error {
	s := granted[v.Name]
	byHand := v.Spec.KubeconfigSecretRef != nil
	if byHand {
		s = granted[strings.TrimPrefix(v.Spec.KubeconfigSecretRef.Name, "kubeconfig-resourceslice-")]
	}
	if s == nil || byHand == (s.Annotations["liqo.io/create-virtual-node"] == "true") {
		return nil
	}
	size, labels := v.Spec.ResourceQuota.Hard, map[string]string(nil)
	if !byHand {
		size, labels = s.Status.Resources, s.Status.NodeLabels
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, w.consumer, n, func() error {
		n.Labels = map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": w.providerID}
		maps.Copy(n.Labels, v.Spec.Labels)
		maps.Copy(n.Labels, labels) // the provider's go over ours
		return nil
	}); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	if apiequality.Semantic.DeepEqual(n.Status.Allocatable, size) && len(n.Status.Conditions) > 0 {
		return nil
	}
	n.Status = corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	return w.consumer.Status().Update(ctx, n)
}

// resources is the status of a slice's condition Resources, "" for none.
func resources(s *authv1beta1.ResourceSlice) authv1beta1.ResourceSliceConditionStatus {
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			return c.Status
		}
	}
	return ""
}
