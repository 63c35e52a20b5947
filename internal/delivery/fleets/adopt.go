package fleets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Adoption takes a fleet's objects out of the set of before into its own.
type Adoption struct {
	// Set of the fleet.
	Set Set
	// Client of the cluster, for parent and Lease.
	Client kubernetes.Interface
	// Identity of this daemon in Leases.
	Identity string
	// Objects that are in the cluster, as caches have them.
	Objects iter.Seq[*unstructured.Unstructured]
	// Wanted reports whether the fleet's ledger gives an object, or what it was made of.
	Wanted func(*unstructured.Unstructured) bool
	// Resource is where an object is changed.
	Resource func(*unstructured.Unstructured) dynamic.ResourceInterface
	// Changed is told an object as it is after it was taken.
	Changed func(*unstructured.Unstructured)
}

// attempts bounds how often one object is tried that others write at the same time.
const attempts = 5

// Run adopts what is to be adopted, once for a cluster. What of the old set is not
// the fleet's is named and stays. The error is a *BusyError while a daemon still holds
// the Lease of the old name and there is something to take.
func (a Adoption) Run(ctx context.Context, elder *Elder, now time.Time) (taken int, left []string, err error) {
	if a.Set.Fleet == "" {
		return 0, nil, nil
	}
	parent, err := a.Client.CoreV1().ConfigMaps(a.Set.Namespace).Get(ctx, a.Set.Name(), metav1.GetOptions{})
	if err == nil && parent.Annotations[annotationAdopted] != "" {
		return 0, nil, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, nil, err
	}
	var mine []*unstructured.Unstructured
	for u := range a.Objects {
		switch {
		case !a.Set.Before(u):
		case a.Wanted(u):
			mine = append(mine, u)
		default:
			left = append(left, nameOf(u))
		}
	}
	slices.Sort(left)
	if len(mine) == 0 {
		return 0, left, nil
	}
	lease, err := a.Client.CoordinationV1().Leases(a.Set.Namespace).Get(ctx, a.Set.old().Name(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, nil, err
	}
	if err == nil {
		if holder := elder.holder(lease, a.Identity, now); holder != "" {
			return 0, nil, &BusyError{Holder: holder, Lease: a.Set.Namespace + "/" + a.Set.old().Name()}
		}
	}
	for _, u := range mine {
		if err := a.take(ctx, u); err != nil {
			return taken, nil, fmt.Errorf("adopt %s: %w", nameOf(u), err)
		}
		taken++
	}
	return taken, left, nil
}

// BusyError says that what was applied before is still applied by another daemon.
type BusyError struct{ Holder, Lease string }

// Error says who, and what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("daemon %s still holds Lease %s and applies this fleet's objects by the name that all fleets had before: stop it, and nothing is touched until then", e.Holder, e.Lease)
}

// take puts one object into the set: its label, whose it is, and its managed fields
// in one request. One that is gone meanwhile needs nothing.
func (a Adoption) take(ctx context.Context, cached *unstructured.Unstructured) error {
	resource := a.Resource(cached)
	for range attempts {
		live, err := resource.Get(ctx, cached.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !a.Set.Before(live) {
			return nil
		}
		patch, err := a.Set.patch(live)
		if err != nil {
			return err
		}
		after, err := resource.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: a.Set.Name()})
		switch {
		case err == nil:
			a.Changed(after)
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
	}
	return errors.New("others change it all the time")
}

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch makes an object of the old set one of this.
func (s Set) patch(live *unstructured.Unstructured) ([]byte, error) {
	entries, err := s.managed(live.GetManagedFields())
	if err != nil {
		return nil, err
	}
	ops := []operation{
		{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}, // another version is a conflict
		{"replace", "/metadata/managedFields", entries},
	}
	add := func(field, key, value string) {
		ops = append(ops, operation{"add", "/metadata/" + field + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key), value})
	}
	switch {
	case live.GetKind() != kindNamespace:
		add("labels", LabelPartOf, s.ID())
		add("labels", v1alpha1.LabelFleet, s.Fleet)
	default:
		add("annotations", s.Applied(kindNamespace), live.GetAnnotations()[AnnotationApplied])
		if live.GetLabels()[v1alpha1.LabelTenant] != "" {
			add("annotations", v1alpha1.LabelFleet, s.Fleet)
		}
	}
	return json.Marshal(ops)
}

// managed gives what the old manager applied to this set's: fields that are no longer
// applied would else belong to a manager that no longer exists, and stay until deleted.
func (s Set) managed(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	old := s.old().Name()
	object := &metav1.PartialObjectMetadata{}
	for _, e := range entries {
		if e.Manager == old && e.Operation == metav1.ManagedFieldsOperationApply {
			e.Operation = metav1.ManagedFieldsOperationUpdate // the form that the library takes over from
		}
		object.ManagedFields = append(object.ManagedFields, e)
	}
	if err := csaupgrade.UpgradeManagedFields(object, sets.New(old), s.Name()); err != nil {
		return nil, fmt.Errorf("take over managed fields: %w", err)
	}
	return object.ManagedFields, nil
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// Elder watches whether the Lease of the old name is still renewed: by this one's own
// clock, since it saw it change.
type Elder struct {
	version string
	since   time.Time
}

// holder is who still holds it, "" for nobody.
func (e *Elder) holder(lease *coordinationv1.Lease, identity string, now time.Time) string {
	spec := &lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == identity {
		return ""
	}
	if lease.ResourceVersion != e.version {
		e.version, e.since = lease.ResourceVersion, now
	}
	lasts := 30 * time.Second
	if spec.LeaseDurationSeconds != nil {
		lasts = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	if now.Sub(e.since) >= lasts {
		return ""
	}
	return *spec.HolderIdentity
}
