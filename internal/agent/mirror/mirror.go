package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// AnnotationRefuse on a ProviderInstruction is why its cluster no longer
// honours the contract.
const AnnotationRefuse = v1alpha1.Group + "/refuse"

// Mirror writes pictures into a cluster.
type Mirror struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Events of contracts are made with it, on their pictures; nil makes none.
	Events events.EventRecorder

	announced map[string]bool // news that were told, by id
}

// Refusals are the contracts of a fleet that administrators refuse, with why.
func (m *Mirror) Refusals(ctx context.Context, fleet string) (map[string]string, error) {
	var list crd.ProviderInstructionList
	if err := m.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read ProviderInstructions: %w", err)
	}
	out := map[string]string{}
	for i := range list.Items {
		o := &list.Items[i]
		if why, whose := o.Annotations[AnnotationRefuse], o.Labels[v1alpha1.LabelFleet]; why != "" && (whose == "" || whose == fleet) {
			out[cmp.Or(o.Spec.Contract, o.Name)] = why
		}
	}
	return out, nil
}

// Pass brings the cluster in line with a state. What fails is tried again in
// the next pass.
func (m *Mirror) Pass(ctx context.Context, s State) error {
	want := Want(s)
	var (
		advertisements crd.AdvertisementList
		providers      crd.ProviderInstructionList
		reservations   crd.ReservationInstructionList
	)
	for _, list := range []client.ObjectList{&advertisements, &providers, &reservations} {
		if err := m.Client.List(ctx, list); err != nil {
			return fmt.Errorf("read mirrors: %w", err)
		}
	}
	shown, offered := apart(s.fleet(), pointers(advertisements.Items), want.Advertisements)
	errs := sync(ctx, m.Client, shown, offered, func(have, want *crd.Advertisement) (spec, status bool) {
		spec, status = !same(have.Spec, want.Spec), !same(have.Status, want.Status)
		have.Spec, have.Status = want.Spec, want.Status
		return spec, status
	})
	if s.Instructions == nil {
		return errors.Join(errs...)
	}
	errs = append(errs, m.announce(ctx, s)...)
	promised, owed := apart(s.fleet(), pointers(providers.Items), want.Providers)
	held, reserved := apart(s.fleet(), pointers(reservations.Items), want.Reservations)
	tell(m.Events, promised, owed, shownProvider)
	tell(m.Events, held, reserved, shownReservation)
	errs = append(errs, sync(ctx, m.Client, promised, owed, func(have, want *crd.ProviderInstruction) (spec, status bool) {
		spec, status = !same(have.Spec, want.Spec), !same(have.Status, want.Status)
		have.Spec, have.Status = want.Spec, want.Status
		return spec, status
	})...)
	errs = append(errs, sync(ctx, m.Client, held, reserved, func(have, want *crd.ReservationInstruction) (spec, status bool) {
		spec, status = !same(have.Spec, want.Spec), !same(have.Status, want.Status)
		have.Spec, have.Status = want.Spec, want.Status
		return spec, status
	})...)
	return errors.Join(errs...)
}

func same[T any](a, b T) bool { return apiequality.Semantic.DeepEqual(a, b) }

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// sync makes, changes and removes objects of one kind. take copies what is
// wanted into what is there and says what that changes.
func sync[T client.Object](ctx context.Context, c client.Client, have, want []T, take func(have, want T) (spec, status bool)) []error {
	var errs []error
	fail := func(err error) {
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) { // the cache lags: next time
			errs = append(errs, fmt.Errorf("write a mirror: %w", err))
		}
	}
	there := map[string]T{}
	for _, o := range have {
		there[o.GetName()] = o
	}
	for _, w := range want {
		o, is := there[w.GetName()]
		delete(there, w.GetName())
		if !is {
			fresh, ok := w.DeepCopyObject().(T)
			if !ok {
				continue // a copy is of its own type
			}
			if err := c.Create(ctx, fresh); err != nil {
				fail(err)
				continue
			}
			if _, status := take(fresh, w); status {
				fail(c.Status().Update(ctx, fresh))
			}
			continue
		}
		spec, status := take(o, w)
		if labels := o.GetLabels(); labels[v1alpha1.LabelFleet] != w.GetLabels()[v1alpha1.LabelFleet] {
			labels = maps.Clone(labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[v1alpha1.LabelFleet], spec = w.GetLabels()[v1alpha1.LabelFleet], true
			o.SetLabels(labels)
		}
		if spec {
			if err := c.Update(ctx, o); err != nil {
				fail(err)
				continue
			}
			take(o, w) // the answer carries the old status
		}
		if status {
			fail(c.Status().Update(ctx, o))
		}
	}
	for _, o := range there {
		fail(c.Delete(ctx, o))
	}
	return errs
}
