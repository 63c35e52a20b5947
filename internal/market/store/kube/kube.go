// Package kube is the Kubernetes API as a market's store: objects of one
// namespace, read and written by a client and followed by one reflector for each
// kind.
//
// Invariants:
//   - What Advertisement gives was read from the API server at that moment, not
//     from a cache.
//   - Nothing is written but by create, or by update under a resourceVersion; a
//     Heartbeat alone is replaced whatever it was, because its name is its writer's.
//   - Everything is written as store.Manager, and an update takes all of the object from
//     whoever had a part in it: an entry of another account that stays, such as one that
//     states a time to come, would make the object another's for good. Of managed fields an
//     object that is handed on has what store.Foreign leaves: who wrote it last, if that is
//     another account.
//
// The daemon's main makes it, package store calls it. Safe for concurrent use.
package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// API implements store.API. Make it with New.
type API struct {
	client    client.WithWatch
	namespace string
	beat      atomic.Pointer[string] // the resourceVersion of the Heartbeat that was written last
	again     chan struct{}          // all is to be listed again
}

// callTimeout bounds a single request; watches have none.
const callTimeout = 10 * time.Second

// New makes one for a namespace. Nothing is asked before the first call.
func New(config *rest.Config, namespace string) (*API, error) {
	scheme := runtime.NewScheme()
	if err := marketcrd.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 500, 1000 // the store has budgets of its own
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the market's store: %w", err)
	}
	return &API{client: c, namespace: namespace, again: make(chan struct{}, 1)}, nil
}

// Installed reports whether the cluster serves the kinds, of which an account without rights
// learns too where one is missing. An error means that it is not known, or that they may not
// be read.
func (a *API) Installed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var unread error
	for _, list := range []client.ObjectList{&marketcrd.AdvertisementList{}, &marketcrd.HeartbeatList{}, &marketcrd.AdvertisementPartList{}, &marketcrd.ObservationList{}} {
		switch err := a.client.List(ctx, list, client.InNamespace(a.namespace), client.Limit(1)); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return false, nil
		case err != nil && unread == nil:
			unread = fmt.Errorf("look for the market's store: %w", err)
		}
	}
	return unread == nil, unread
}

// Advertisement implements store.API.
func (a *API) Advertisement(ctx context.Context, provider string) (*marketcrd.Advertisement, error) {
	out := &marketcrd.Advertisement{}
	return out, a.get(ctx, provider, out)
}

// Part implements store.API.
func (a *API) Part(ctx context.Context, name string) (*marketcrd.AdvertisementPart, error) {
	out := &marketcrd.AdvertisementPart{}
	return out, a.get(ctx, name, out)
}

func (a *API) get(ctx context.Context, name string, into client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: name}, into); err != nil {
		return outcome(err)
	}
	into.SetManagedFields(store.Foreign(into.GetManagedFields()))
	return nil
}

// PutAdvertisement implements store.API.
func (a *API) PutAdvertisement(ctx context.Context, ad *marketcrd.Advertisement) (*marketcrd.Advertisement, error) {
	out := ad.DeepCopy()
	out.Namespace = a.namespace
	return out, a.put(ctx, out)
}

// put creates an object without a resourceVersion and updates one that has one.
func (a *API) put(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer o.SetManagedFields(nil)
	if o.GetResourceVersion() == "" {
		return outcome(a.client.Create(ctx, o, client.FieldOwner(store.Manager)))
	}
	o.SetManagedFields(allOurs())
	return outcome(a.client.Update(ctx, o, client.FieldOwner(store.Manager)))
}

// allOurs is an object's managed fields where the daemon alone writes it. The API server
// keeps what an update states, and adds its own time where the update changes anything.
func allOurs() []metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return []metav1.ManagedFieldsEntry{{
		Manager: store.Manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: marketcrd.GroupVersion.String(), Time: &now,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}}
}

// Observation implements store.API.
func (a *API) Observation(ctx context.Context, cluster string) (*marketcrd.Observation, error) {
	out := &marketcrd.Observation{}
	return out, a.get(ctx, cluster, out)
}

// PutObservation implements store.API.
func (a *API) PutObservation(ctx context.Context, o *marketcrd.Observation) (*marketcrd.Observation, error) {
	out := o.DeepCopy()
	out.Namespace = a.namespace
	return out, a.put(ctx, out)
}

// PutPart implements store.API.
func (a *API) PutPart(ctx context.Context, p *marketcrd.AdvertisementPart) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := p.DeepCopy()
	out.Namespace = a.namespace
	return outcome(a.client.Create(ctx, out, client.FieldOwner(store.Manager)))
}

// Parts implements store.API.
func (a *API) Parts(ctx context.Context) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(marketcrd.GroupVersion.WithKind("AdvertisementPartList"))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.client.List(ctx, list, client.InNamespace(a.namespace)); err != nil {
		return nil, outcome(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out, nil
}

// DeletePart implements store.API.
func (a *API) DeletePart(ctx context.Context, name string) error {
	return a.delete(ctx, name, &marketcrd.AdvertisementPart{})
}

// DeleteAdvertisement implements store.API.
func (a *API) DeleteAdvertisement(ctx context.Context, provider, version string) error {
	return a.delete(ctx, provider, &marketcrd.Advertisement{}, client.Preconditions{ResourceVersion: &version})
}

// DeleteObservation implements store.API.
func (a *API) DeleteObservation(ctx context.Context, cluster, version string) error {
	return a.delete(ctx, cluster, &marketcrd.Observation{}, client.Preconditions{ResourceVersion: &version})
}

// DeleteHeartbeat implements store.API.
func (a *API) DeleteHeartbeat(ctx context.Context, replica string) error {
	return a.delete(ctx, replica, &marketcrd.Heartbeat{})
}

func (a *API) delete(ctx context.Context, name string, o client.Object, options ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	o.SetName(name)
	o.SetNamespace(a.namespace)
	return outcome(client.IgnoreNotFound(a.client.Delete(ctx, o, options...)))
}

// PutHeartbeat implements store.API. One request is enough while nobody else writes it.
func (a *API) PutHeartbeat(ctx context.Context, h *marketcrd.Heartbeat) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	version := a.beat.Load()
	for range 3 {
		out := h.DeepCopy()
		out.Namespace = a.namespace
		if version != nil {
			out.ResourceVersion = *version
		}
		err := a.put(ctx, out)
		if err == nil {
			a.beat.Store(&out.ResourceVersion)
			return out.ResourceVersion, nil
		}
		if version = nil; !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			return "", err // what was written last is still known: a store that was away may come back older
		}
		was := &marketcrd.Heartbeat{}
		switch err := a.get(ctx, h.Name, was); {
		case err == nil:
			version = &was.ResourceVersion
		case !errors.Is(err, store.ErrNotFound):
			return "", err
		}
		if last := a.beat.Swap(nil); last != nil && older(was.ResourceVersion, *last) {
			return "", fmt.Errorf("%w: this replica's Heartbeat is of version %q, and was written as version %s", store.ErrSetBack, was.ResourceVersion, *last)
		}
	}
	return "", store.ErrConflict
}

// older reports whether an object's version is before another one; "" is of none.
func older(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	b, errThan := strconv.ParseUint(than, 10, 64)
	return errThan == nil && (version == "" || err == nil && a < b)
}

// full is how etcd refuses a write when it has no room; the API server hands it on.
const full = "database space exceeded"

// RefusalOf is that an API server was reached and refuses a request, nil where it does not.
func RefusalOf(err error) *store.RefusedError {
	why := store.Refusal("")
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		why = store.RefusalQuota
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		why = store.RefusalForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		why = store.RefusalInvalid
	case strings.Contains(err.Error(), full):
		why = store.RefusalFull
	default:
		return nil
	}
	return &store.RefusedError{Why: why, Cause: err}
}

// noNamespace reports whether an object is not there because its namespace is not.
func noNamespace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// outcome is an error of the API server in the store's words.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case RefusalOf(err) != nil:
		return RefusalOf(err)
	case apierrors.IsNotFound(err) && noNamespace(err):
		return err
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}
