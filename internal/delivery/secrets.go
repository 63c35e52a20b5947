package delivery

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// mayUseSecret refuses a virtual node that an intent has made with a Secret of
// people's, unless the Secret's label says that it is for the intent's tenant:
// a team that names another's would get at what is that one's.
func (c *conn) mayUseSecret(ctx context.Context, want *object) error {
	name := peoplesSecret(want)
	if name == "" {
		return nil
	}
	tenant, namespace := want.u.GetLabels()[v1alpha1.LabelTenant], want.key.Namespace
	secret, err := c.dynamic.Resource(gvr("", "v1", "secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("Secret %s of virtualNode.kubeconfigSecretRef is not in namespace %s: lay it there with the label %s=%s", name, namespace, v1alpha1.LabelTenant, tenant)
	case err != nil:
		return fmt.Errorf("see whether Secret %s of virtualNode.kubeconfigSecretRef is for tenant %s: %w", name, tenant, err)
	case secret.GetLabels()[v1alpha1.LabelTenant] != tenant:
		return fmt.Errorf("Secret %s of virtualNode.kubeconfigSecretRef is not for tenant %s: who may write it labels it %s=%[2]s, or the intent names another", name, tenant, v1alpha1.LabelTenant)
	}
	return nil
}

// peoplesSecret is the Secret of people's that an object is a virtual node made
// with, "" for none.
func peoplesSecret(want *object) string {
	if want.key.Kind != kindVirtualNode {
		return ""
	}
	name, _, _ := unstructured.NestedString(want.u.Object, "spec", "kubeconfigSecretRef", "name")
	if strings.HasPrefix(name, manifests.SecretOfSlice) {
		return ""
	}
	return name
}

// judgeSecrets looks at the Secrets of people's where another one applies, at all
// of them or those that were refused, until none is: such a Node may be made, but
// its contract says so and is not Active.
func (w *worker) judgeSecrets(ctx context.Context, c *conn, all bool) error {
	w.mu.Lock()
	beside, was := w.gitops != nil, maps.Clone(w.trouble)
	w.mu.Unlock()
	maps.DeleteFunc(was, func(unit key, _ string) bool { return unit.Kind != kindContract })
	if !beside || !all && len(was) == 0 {
		return nil
	}
	now := map[key]string{}
	var refused error
	for k, want := range w.desired.objects {
		unit := k.unit()
		if peoplesSecret(want) == "" || !all && was[unit] == "" {
			continue
		}
		if err := c.call(ctx, func(ctx context.Context) error { return c.mayUseSecret(ctx, want) }); err != nil {
			refused = explain(err)
			now[unit] = refused.Error()
		}
	}
	w.mu.Lock()
	maps.DeleteFunc(w.trouble, func(unit key, _ string) bool { return unit.Kind == kindContract })
	maps.Copy(w.trouble, now)
	w.mu.Unlock()
	if !maps.Equal(was, now) {
		w.bump()
	}
	return refused
}
