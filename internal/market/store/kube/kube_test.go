package kube

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// What an API server refuses is told apart from one that is out of reach, and from
// what another try settles.
func TestOutcome(t *testing.T) {
	kind := schema.GroupResource{Group: "market.fleetbroker.io", Resource: "advertisements"}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "fleetbroker")
	for name, test := range map[string]struct {
		err  error
		want store.Refusal // "": none
		is   error
	}{
		"no right":         {err: apierrors.NewForbidden(kind, "paris", errors.New(`User "x" cannot update resource`)), want: store.RefusalForbidden},
		"no token":         {err: apierrors.NewUnauthorized("Unauthorized"), want: store.RefusalForbidden},
		"quota":            {err: apierrors.NewForbidden(kind, "paris", errors.New("exceeded quota: market, requested: count/advertisements.market.fleetbroker.io=1, used: 4, limited: 4")), want: store.RefusalQuota},
		"etcd is full":     {err: apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded")), want: store.RefusalFull},
		"not as defined":   {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Advertisement"}, "paris", field.ErrorList{field.Required(field.NewPath("spec"), "")}), want: store.RefusalInvalid},
		"too large":        {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), want: store.RefusalInvalid},
		"another was it":   {err: apierrors.NewConflict(kind, "paris", errors.New("changed")), is: store.ErrConflict},
		"it is there":      {err: apierrors.NewAlreadyExists(kind, "paris"), is: store.ErrConflict},
		"it is not there":  {err: apierrors.NewNotFound(kind, "paris"), is: store.ErrNotFound},
		"no namespace":     {err: gone, is: gone},
		"busy":             {err: apierrors.NewTooManyRequests("too many", 1)},
		"an unknown error": {err: fmt.Errorf("dial: %w", errors.New("connection refused"))},
		"restarts":         {err: apierrors.NewServiceUnavailable("apiserver is shutting down")},
		"no answer":        {err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTimeout, Code: 504}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(test.err)
			var refused *store.RefusedError
			if errors.As(got, &refused) != (test.want != "") || refused != nil && refused.Why != test.want {
				t.Errorf("got %v, want a refusal %q", got, test.want)
			}
			if test.is != nil && !errors.Is(got, test.is) {
				t.Errorf("got %v, want %v", got, test.is)
			}
			if test.want == "" && test.is == nil && !errors.Is(got, test.err) {
				t.Errorf("got %v, want %v", got, test.err)
			}
			if name == "no namespace" && errors.Is(got, store.ErrNotFound) {
				t.Error("a missing namespace looks like a missing object")
			}
		})
	}
}
