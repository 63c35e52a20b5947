package request

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Waits before an answer is asked for again.
const (
	// again is after trouble that has no Retry-After of its own.
	again = 2 * time.Second
	// followUp is how long to wait for instructions that tell of a reservation.
	followUp = 30 * time.Second
)

// workers wait for commits, several of which go into one.
const workers = 16

// Broker decides; errors that carry a *wire.Refusal are its answer, all others
// say nothing about what became of the call.
type Broker interface {
	// Reserve asks for capacity under an idempotency key.
	Reserve(ctx context.Context, key string, q wire.ReservationRequest) (wire.Reservation, error)
	// Release gives back what a reservation got.
	Release(ctx context.Context, id string) error
}

// Reconciler serves ResourceRequests. Its fields are set before SetUp and not
// changed.
type Reconciler struct {
	// Cluster that asks.
	Cluster string
	// Client reads from a cache and writes.
	Client client.Client
	// Broker to ask.
	Broker Broker
	// Instructions are what counts of what the brokers say, nil before the first.
	Instructions func() *wire.Instructions
	// Events of requests are made with it; nil makes none.
	Events events.EventRecorder
	// Log of what is asked and answered.
	Log *slog.Logger

	kicks   chan event.GenericEvent
	dropped atomic.Bool // the definitions in the cluster know no status.fleet, and that was said
}

// SetUp adds the controller to a manager, which may run already.
func (r *Reconciler) SetUp(mgr ctrl.Manager) error {
	r.kicks = make(chan event.GenericEvent, 1)
	err := ctrl.NewControllerManagedBy(mgr).Named("resourcerequests").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			SkipNameValidation:      new(true), // several agents may run in one process
		}).
		For(&crd.ResourceRequest{}).
		WatchesRawSource(source.Channel(r.kicks, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return r.all(ctx) }))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("serve ResourceRequests: %w", err)
	}
	return nil
}

// Kick looks at all requests again, because the instructions changed.
func (r *Reconciler) Kick() {
	select {
	case r.kicks <- event.GenericEvent{Object: &crd.ResourceRequest{}}:
	default: // one is on its way already
	}
}

func (r *Reconciler) all(ctx context.Context) []reconcile.Request {
	var list crd.ResourceRequestList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error("cannot list ResourceRequests", "error", err)
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

// Reconcile serves one request.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o := &crd.ResourceRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ours, err := r.claim(ctx, o)
	if err != nil || !ours {
		return reconcile.Result{}, err
	}
	before := o.DeepCopy()
	if !o.DeletionTimestamp.IsZero() {
		return r.release(ctx, o, before)
	}
	if controllerutil.AddFinalizer(o, crd.Finalizer) {
		// The event of this patch brings the request back.
		return reconcile.Result{}, ignoreGone(r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	}
	result := reconcile.Result{}
	switch s := &o.Status; {
	case s.Phase == crd.RequestFailed, s.Phase == crd.RequestReleased: // for good
	case s.ReservationName == "":
		s.Phase = crd.RequestPending
		result.RequeueAfter = r.ask(ctx, o)
	default:
		follow(&o.Status, r.Cluster, string(o.UID), r.Instructions())
		if o.Status.Contract == "" || o.Status.Phase == crd.RequestPending {
			result.RequeueAfter = followUp
		}
	}
	return result, r.write(ctx, o, before)
}

// claim reports whether a request is this agent's to serve, and makes it so where nobody
// serves it yet. Agents of one fleet have a Lease; those of two fleets in one cluster would
// each reserve for every request: the first to write its fleet's id serves it for good,
// because the other's ledger knows nothing of what was reserved. Until this agent knows its
// fleet it serves nothing; Kick brings the request back.
func (r *Reconciler) claim(ctx context.Context, o *crd.ResourceRequest) (ours bool, err error) {
	in := r.Instructions()
	switch {
	case in == nil:
		return false, r.waits(ctx, o)
	case o.Status.Fleet != "" || in.Fleet == "":
		return o.Status.Fleet == in.Fleet, nil
	case !o.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(o, crd.Finalizer):
		return false, nil // nobody's, and on its way
	}
	before := o.DeepCopy()
	o.Status.Fleet = in.Fleet
	if err := r.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, ignoreGone(err) // another agent was first: the event of its patch brings it back
	}
	if o.Status.Fleet == "" && !r.dropped.Swap(true) {
		r.Log.Warn("which fleet serves a ResourceRequest cannot be noted: agents of several fleets in this cluster would all serve it", "remedy", "kubectl apply -f install/agent/crds.yaml")
	}
	return true, nil
}

// waits says in a new request why nobody serves it yet.
func (r *Reconciler) waits(ctx context.Context, o *crd.ResourceRequest) error {
	if o.Status.Phase != "" || !o.DeletionTimestamp.IsZero() {
		return nil
	}
	before := o.DeepCopy()
	o.Status.Phase, o.Status.Reason = crd.RequestPending, "NoAnswer"
	o.Status.Message = "no broker has given this cluster's agent its instructions yet; the request is served once one has"
	return r.write(ctx, o, before)
}

// ask makes the reservation and returns after how long to ask again, 0 when
// there is an answer.
func (r *Reconciler) ask(ctx context.Context, o *crd.ResourceRequest) time.Duration {
	q, err := askOf(o)
	if err != nil {
		fail(&o.Status, "Invalid", err.Error())
		return 0
	}
	got, err := r.Broker.Reserve(ctx, string(o.UID), q)
	if err != nil {
		return r.refused(o, err)
	}
	answered(&o.Status, &got)
	r.Log.InfoContext(tracing.ParseTraceparent(got.Trace).In(ctx), "reservation answered", "namespace", o.Namespace, "name", o.Name, "reservation", got.ID, "phase", o.Status.Phase, "contract", got.Contract, "provider", got.TargetClusterID)
	return 0
}

// refused reads an error of Reserve: what is wrong with the request is for
// good, everything else for now.
func (r *Reconciler) refused(o *crd.ResourceRequest, err error) time.Duration {
	var no *wire.Refusal
	if errors.As(err, &no) {
		switch no.Status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusForbidden:
			// Not about the request: somebody has to wait, or to allow it.
		default:
			if no.Status < 500 {
				fail(&o.Status, no.Body.Reason, no.Body.Error)
				r.Log.Info("reservation refused", "namespace", o.Namespace, "name", o.Name, "reason", no.Body.Reason, "error", no.Body.Error)
				return 0
			}
		}
		o.Status.Reason, o.Status.Message = no.Body.Reason, no.Body.Error
		return max(no.RetryAfter, again)
	}
	o.Status.Reason, o.Status.Message = "NoAnswer", "no broker has answered yet: "+err.Error()
	return again
}

// release gives back what a request got, and lets the object go.
func (r *Reconciler) release(ctx context.Context, o, before *crd.ResourceRequest) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(o, crd.Finalizer) {
		return reconcile.Result{}, nil
	}
	err := r.Broker.Release(ctx, wire.ReservationID(r.Cluster, string(o.UID)))
	var no *wire.Refusal
	if err != nil && (!errors.As(err, &no) || no.Body.Reason != wire.ReasonNotFound) {
		o.Status.Reason, o.Status.Message = "Releasing", "its release is not on the ledger yet: "+err.Error()
		wait := again
		if no != nil {
			wait = max(no.RetryAfter, again)
		}
		return reconcile.Result{RequeueAfter: wait}, r.write(ctx, o, before)
	}
	controllerutil.RemoveFinalizer(o, crd.Finalizer)
	r.Log.Info("reservation released", "namespace", o.Namespace, "name", o.Name, "reservation", o.Status.ReservationName)
	return reconcile.Result{}, ignoreGone(r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// write patches the status where it changed.
func (r *Reconciler) write(ctx context.Context, o, before *crd.ResourceRequest) error {
	if apiequality.Semantic.DeepEqual(o.Status, before.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return ignoreGone(err)
	}
	r.tell(o, &before.Status)
	return nil
}

// tell makes an Event of what has become of a request.
func (r *Reconciler) tell(o *crd.ResourceRequest, was *crd.ResourceRequestStatus) {
	is := &o.Status
	if r.Events == nil || was.Phase == is.Phase && was.Reason == is.Reason {
		return
	}
	kind, reason, note := corev1.EventTypeNormal, is.Phase, "the reservation is "+is.Phase
	switch queued := is.Phase == crd.RequestPending && is.ReservationName != ""; {
	case queued && was.Phase == is.Phase && was.ReservationName != "":
		return // only why has changed
	case queued:
		reason, note = "Queued", "it waits in the queue"
	case is.Phase == crd.RequestPending && is.Reason == "":
		return // it is being asked
	case is.Phase == crd.RequestPending:
		reason, note = is.Reason, "it is not answered yet"
	case is.Phase == crd.RequestDegraded, is.Phase == crd.RequestFailed:
		kind = corev1.EventTypeWarning
	}
	for _, more := range []string{is.Contract, is.Message} {
		if more != "" {
			note += ": " + more
		}
	}
	r.Events.Eventf(o, nil, kind, reason, "FollowLedger", "%s", within.Note(note))
}

// ignoreGone lets the next event bring back what somebody else has changed.
func ignoreGone(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write a ResourceRequest: %w", err)
	}
	return nil
}

// timeOf is nil for the time that never comes.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &out
}
