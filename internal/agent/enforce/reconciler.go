package enforce

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// labelReplicated is on the provider's copy of a consumer's ResourceSlice
// (Liqo v1.2.0, pkg/consts/replication.go).
const labelReplicated = "liqo.io/replicated"

// Defaults of a Reconciler.
const (
	// DefaultPatience covers the ways that a slice and its instruction take apart.
	DefaultPatience = 5 * time.Second
	// DefaultSilence is longer than a long poll that finds nothing.
	DefaultSilence = 75 * time.Second
)

// Reconciler answers slices. Its fields are set before SetUp and not changed.
type Reconciler struct {
	// Client reads from a cache and writes statuses.
	Client client.Client
	// Book of what the brokers say.
	Book *Book
	// Flavors are those collected last; nil while none were. Not modified.
	Flavors func() []v1alpha1.Flavor
	// Ask lets the brokers be heard soon; may be nil.
	Ask func()
	// Changed is called after the refusals, or what was honoured, have changed.
	Changed func()
	// Count is told what became of a slice whose status was written.
	Count func(Verdict, string)
	// Trace is that in which a contract is on its way, for log lines; may be nil.
	Trace func(contract string) tracing.Origin
	// Answered is told which answer was written for a contract's slice, and when it began
	// to be; may be nil.
	Answered func(ctx context.Context, contract string, a Answer, began time.Time)
	// Patience and Silence; zero takes the defaults.
	Patience, Silence time.Duration
	// Now is the clock.
	Now func() time.Time
	// Log of what is decided.
	Log *slog.Logger

	mu      sync.Mutex
	kicks   chan event.GenericEvent
	causes  map[types.NamespacedName]cause
	given   map[types.NamespacedName]Given
	refused map[string]string // by contract
	// drained are the consumers whose Tenant says so: Liqo takes their slices
	// away here, and tells them nothing.
	drained map[string]bool
	// answering: a slice is being answered, by promises not older than by.
	answering bool
	by        uint64
}

// cause is why a slice is answered as it is, and since when.
type cause struct {
	reason string
	since  time.Time
}

// SetUp adds the controller to a manager, which may run already.
func (r *Reconciler) SetUp(mgr ctrl.Manager) error {
	if r.Patience <= 0 {
		r.Patience = DefaultPatience
	}
	if r.Silence <= 0 {
		r.Silence = DefaultSilence
	}
	r.kicks = make(chan event.GenericEvent, 1)
	r.causes, r.given, r.refused = map[types.NamespacedName]cause{}, map[types.NamespacedName]Given{}, map[string]string{}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request { return r.all(ctx, o.GetNamespace()) })
	err := ctrl.NewControllerManagedBy(mgr).Named("resourceslices").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,         // two at once could take the same free capacity
			SkipNameValidation:      new(true), // several agents may run in one process
		}).
		For(&authv1beta1.ResourceSlice{}, builder.WithPredicates(predicate.NewPredicateFuncs(ours))).
		Watches(&authv1beta1.Tenant{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			r.noteDrained(ctx)
			return r.all(ctx, o.GetNamespace())
		})).
		WatchesRawSource(source.Channel(r.kicks, all)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("answer slices of class %s: %w", Class, err)
	}
	return nil
}

// Kick looks at all slices again, because the book or the flavors changed.
func (r *Reconciler) Kick() {
	select {
	case r.kicks <- event.GenericEvent{Object: &authv1beta1.Tenant{}}:
	default: // one is on its way already
	}
}

// Refused are the standing contracts that are not honoured, with why.
func (r *Reconciler) Refused() map[string]string {
	all := r.Book.All()
	standing := map[string]bool{}
	for _, p := range all {
		standing[p.Contract] = p.Standing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.refused, func(contract, _ string) bool { return !standing[contract] })
	out := maps.Clone(r.refused)
	for _, p := range all {
		if p.Standing && r.drained[p.ConsumerID] {
			out[p.Contract] = "the Tenant of " + p.ConsumerID + " is Drained: its slices and pods are gone here until it is Active again"
		}
	}
	return out
}

// noteDrained looks at which consumers' Tenants are Drained.
func (r *Reconciler) noteDrained(ctx context.Context) {
	var list authv1beta1.TenantList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error("cannot list tenants", "error", err)
		return
	}
	r.setDrained(list.Items)
}

// setDrained takes over what Tenants say.
func (r *Reconciler) setDrained(tenants []authv1beta1.Tenant) {
	now := map[string]bool{}
	for i := range tenants {
		if t := &tenants[i]; t.Spec.TenantCondition == authv1beta1.TenantConditionDrained {
			now[string(t.Spec.ClusterID)] = true
		}
	}
	r.mu.Lock()
	changed := !maps.Equal(now, r.drained)
	r.drained = now
	r.mu.Unlock()
	if changed && r.Changed != nil {
		r.Changed()
	}
}

// ours reports whether a slice is one of another cluster's that is answered
// here.
func ours(o client.Object) bool {
	s, ok := o.(*authv1beta1.ResourceSlice)
	return ok && s.Spec.Class == Class && s.Labels[labelReplicated] == "true"
}

// all are the slices of a namespace, "" for every one.
func (r *Reconciler) all(ctx context.Context, namespace string) []reconcile.Request {
	var list authv1beta1.ResourceSliceList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error("cannot list slices", "error", err)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if s := &list.Items[i]; ours(s) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return out
}

// Honoured is the number on the ledger of the newest promises of which one stands no
// longer and by which, or by newer ones, slices are answered: none is being granted any
// more what had ended there. 0: none.
func (r *Reconciler) Honoured() uint64 {
	seq := r.Book.Ending()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answering {
		return min(seq, r.by)
	}
	return seq
}

// begin notes that a slice is being answered. What is returned ends that.
func (r *Reconciler) begin() (end func()) {
	by := r.Book.Ending()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answering, r.by = true, by
	return func() {
		r.mu.Lock()
		r.answering = false
		r.mu.Unlock()
		if r.Book.Ending() != by && r.Changed != nil {
			r.Changed()
		}
	}
}

// Reconcile answers one slice.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.begin()()
	var s authv1beta1.ResourceSlice
	err := r.Client.Get(ctx, request.NamespacedName, &s)
	if err != nil && !errors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("read slice %s: %w", request, err)
	}
	if err != nil || !ours(&s) || !s.DeletionTimestamp.IsZero() {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	tenant, err := r.tenant(ctx, s.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Now()
	answer, promise := r.decide(&s, tenant, now)
	before := answerText(&s)
	if apply(&s, answer, metav1.NewTime(now.Truncate(time.Second))) {
		if err := r.Client.Status().Update(ctx, &s); err != nil {
			if errors.IsConflict(err) || errors.IsNotFound(err) {
				return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil // Liqo wrote as well, or it is gone
			}
			return reconcile.Result{}, fmt.Errorf("answer slice %s: %w", request, err)
		}
		if before != answerText(&s) {
			r.Log.InfoContext(r.traced(ctx, promise), "slice answered", "slice", s.Name, "consumer", consumerOf(&s), "verdict", answer.Verdict, "reason", answer.Reason, "message", answer.Message)
		}
		if r.Count != nil {
			r.Count(answer.Verdict, answer.Reason)
		}
		if r.Answered != nil && promise != nil {
			r.Answered(ctx, promise.Contract, answer, now)
		}
	}
	r.note(&s, promise, answer)
	if answer.Unsure && r.Ask != nil {
		r.Ask()
	}
	return reconcile.Result{RequeueAfter: answer.Again}, nil
}

// traced is a context in which log lines name the trace that a promise is on its way in.
func (r *Reconciler) traced(ctx context.Context, promise *Promise) context.Context {
	if r.Trace == nil || promise == nil {
		return ctx
	}
	return r.Trace(promise.Contract).In(ctx)
}

// answerText tells answers apart that are worth a line in the log.
func answerText(s *authv1beta1.ResourceSlice) string {
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			return string(c.Status) + c.Reason + c.Message
		}
	}
	return ""
}

// tenant is the one of a namespace, nil for none.
func (r *Reconciler) tenant(ctx context.Context, namespace string) (*authv1beta1.Tenant, error) {
	var list authv1beta1.TenantList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("read the Tenant of %s: %w", namespace, err)
	}
	if len(list.Items) != 1 { // Liqo allows one; of two nobody knows whose the namespace is
		return nil, nil
	}
	return &list.Items[0], nil
}

// decide answers a slice and remembers since when the cause stands.
func (r *Reconciler) decide(s *authv1beta1.ResourceSlice, tenant *authv1beta1.Tenant, now time.Time) (Answer, *Promise) {
	flavors := r.Flavors()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Case{
		Slice: s, Tenant: tenant, Now: now, Patience: r.Patience,
		Heard: flavors != nil && now.Sub(r.Book.Heard()) <= r.Silence,
		Fleet: r.Book.Fleet(), Promise: r.Book.Promise(consumerOf(s), s.Name),
	}
	if c.Promise != nil {
		given := make(map[string]Given, len(r.given))
		for name, g := range r.given {
			given[name.Name] = g
		}
		c.Offer = OfferOf(flavors, c.Promise, given)
	}
	answer := Decide(c)
	name := client.ObjectKeyFromObject(s)
	was := r.causes[name]
	if answer.Reason != was.reason {
		was = cause{reason: answer.Reason, since: now}
		r.causes[name] = was
	}
	c.Since, c.Confirmed = was.since, r.Book.Heard().After(was.since)
	return Decide(c), c.Promise
}

// note remembers what an answer means for the others.
func (r *Reconciler) note(s *authv1beta1.ResourceSlice, p *Promise, a Answer) {
	r.mu.Lock()
	changed := false
	switch name := client.ObjectKeyFromObject(s); {
	case a.Verdict == Grant && p != nil:
		r.given[name] = Given{Flavor: p.Flavor, Resources: p.Resources, Nodes: p.Nodes}
	case a.Verdict == Withdraw, a.Verdict == Deny:
		delete(r.given, name)
	}
	if p != nil {
		was, had := r.refused[p.Contract]
		switch {
		case a.Refused && was != a.Message:
			r.refused[p.Contract], changed = a.Message, true
		case !a.Refused && had && a.Verdict != Leave: // what is left as it is may be looked at too early
			delete(r.refused, p.Contract)
			changed = true
		}
	}
	r.mu.Unlock()
	if changed && r.Changed != nil {
		r.Changed()
	}
}

// forget drops what is remembered of a slice that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.causes, name)
	delete(r.given, name)
}
