package delivery

import (
	"context"
	"errors"
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
		return fmt.Errorf("Secret %s of virtualNode.kubeconfigSecretRef is not labelled for tenant %s: whoever may write it adds the label %s=%[2]s, or the intent names another", name, tenant, v1alpha1.LabelTenant)
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

// besideTool does what is left to be done where another one applies: it looks at all
// Secrets of people's, or those that were refused, and ends what Argo CD leaves.
func (w *worker) besideTool(ctx context.Context, c *conn, all bool) error {
	w.mu.Lock()
	tool, was, idle := w.gitops, maps.Clone(w.trouble), w.down || w.older
	w.mu.Unlock()
	maps.DeleteFunc(was, func(unit key, _ string) bool { return unit.Kind != kindContract })
	if tool == nil {
		return nil
	}
	now := map[key]string{}
	err := w.judgeSecrets(ctx, c, all, was, now)
	if tool.mode == ArgoCD && !idle {
		err = errors.Join(err, w.endUnpruned(ctx, c, now))
	}
	if maps.Equal(was, now) {
		return err
	}
	w.mu.Lock()
	maps.DeleteFunc(w.trouble, func(unit key, _ string) bool { return unit.Kind == kindContract })
	maps.Copy(w.trouble, now)
	w.mu.Unlock()
	w.bump()
	return err
}

// judgeSecrets looks at the Secrets of people's, at all of them or those that were
// refused, until none is: such a Node may be made, but its contract says so and is not
// Active.
func (w *worker) judgeSecrets(ctx context.Context, c *conn, all bool, was, now map[key]string) error {
	if !all && len(was) == 0 {
		return nil
	}
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
	return refused
}
