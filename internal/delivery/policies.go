package delivery

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/delivery/fields"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// decidePolicy leaves a policy alone that says what is rendered, whoever made it:
// install/consumer makes them, and gives nobody else the right to write one, because who
// writes what admission changes is worth the cluster's administrator. There is no right
// to delete one either.
func (w *worker) decidePolicy(k key, want *object, live *unstructured.Unstructured) decision {
	switch {
	case want == nil && live != nil && w.guarded() && (w.ours(live) || manifests.OwnPolicy(w.own.Fleet, k.Name)):
		return decision{trouble: fmt.Sprintf("%s is no longer rendered: once what is rendered stands, delete it by hand: kubectl delete %s %s", k, strings.ToLower(string(k.Kind)), k.Name)}
	case want == nil || live != nil && !terminating(live) && fields.Covered(live.Object["spec"], want.u.Object["spec"]):
		return decision{}
	}
	return decideObject(k, want, live, true, false)
}

// guarded reports whether any policies are wanted. Those that stand without are for
// who installed them.
func (w *worker) guarded() bool {
	for k := range w.desired.objects {
		if isPolicy(k.Kind) {
			return true
		}
	}
	return false
}

// outdated is what is told of a policy that says otherwise than what is rendered, and that
// the account may not write; "" for what failed otherwise. It keeps tenants apart in its
// own way, an older version's or that of another Cluster file: nothing waits for it, as
// all waits for one that is missing.
func (w *worker) outdated(k key, live *unstructured.Unstructured, err error) string {
	if !isPolicy(k.Kind) || live == nil || !apierrors.IsForbidden(err) {
		return ""
	}
	return fmt.Sprintf("%s is not what is rendered for this cluster: apply install/consumer again, as `fleetbroker install %s` writes it", k, w.name)
}
