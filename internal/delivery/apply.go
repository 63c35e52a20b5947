package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// pokeManager owns the poke alone, so that applying a slice does not take it away.
const pokeManager = v1alpha1.FieldManager + "-poke"

// carryOut does the steps of one unit, each only when the one before succeeded.
func (c *conn) carryOut(ctx context.Context, steps []step) error {
	var made types.UID // of the virtual node that this unit's steps made
	for _, s := range steps {
		err := c.call(ctx, func(ctx context.Context) error {
			switch s.verb {
			case verbApply:
				if err := c.mayUseSecret(ctx, s.want); err != nil {
					return err
				}
				u, err := c.apply(ctx, s.want.key, s.want.u)
				if err == nil && s.key.Kind == kindVirtualNode {
					made = u.GetUID()
				}
				return err
			case verbHold:
				return c.annotate(ctx, s.key, manifests.AnnotationCreateVirtualNode, "false", c.manager)
			case verbPoke:
				uid := s.uid
				if uid == "" {
					uid = made
				}
				return c.annotate(ctx, s.key, annotationPoke, string(uid), pokeManager)
			case verbRemind:
				return c.remind(ctx, s.key, string(s.uid))
			case verbLetGo:
				_, err := c.apply(ctx, s.key, bare("v1", string(kindNamespace), s.key.Name))
				return err
			case verbDelete:
				return c.delete(ctx, s)
			}
			return fmt.Errorf("unknown verb %q", s.verb)
		})
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.verb, s.key, explain(err))
		}
	}
	return nil
}

// apply makes an object what it shall be, and takes over fields that others set
// otherwise.
func (c *conn) apply(ctx context.Context, k key, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := c.resource(k).Apply(ctx, k.Name, u, metav1.ApplyOptions{FieldManager: c.manager, Force: true})
	if err != nil {
		return nil, err
	}
	_, _ = trim(answer)
	c.note(k, answer)
	return answer, nil
}

// namespaceMaps are Liqo's: what is offloaded to a provider. They stand in its
// tenant namespace, beside the slices.
var namespaceMaps = gvr("offloading.liqo.io", "v1beta1", "namespacemaps")

// remind touches the NamespaceMaps beside a slice, and then the slice, so that
// one that is touched says that both were.
func (c *conn) remind(ctx context.Context, slice key, since string) error {
	maps := c.dynamic.Resource(namespaceMaps).Namespace(slice.Namespace)
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch, err := touch(annotationReminded, since)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if _, err := maps.Patch(ctx, list.Items[i].GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: pokeManager}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.annotate(ctx, slice, annotationReminded, since, pokeManager)
}

// touch is a patch that sets an annotation.
func touch(name, value string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
}

func (c *conn) annotate(ctx context.Context, k key, name, value, manager string) error {
	patch, err := touch(name, value)
	if err != nil {
		return err
	}
	answer, err := c.resource(k).Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, _ = trim(answer)
	c.note(k, answer)
	return nil
}

// delete ends exactly the object that was seen.
func (c *conn) delete(ctx context.Context, s step) error {
	err := c.resource(s.key).Delete(ctx, s.key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or already another one: a watch tells
		return nil
	}
	return err
}

func bare(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

// explain adds what to do to errors that an operator can end.
func explain(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: renew the cluster's kubeconfig", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: let the kubeconfig's user do this, or look at the policy that refuses it", err)
	}
	return err
}
