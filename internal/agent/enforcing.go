package agent

import (
	"context"
	"fmt"
	"maps"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Modes of Options.Enforce.
const (
	// EnforceAuto enforces where Liqo is installed and the agent may answer slices.
	EnforceAuto = "auto"
	// EnforceNever leaves slices to Liqo's own class.
	EnforceNever = "never"
)

// listen takes what counts of what the brokers say.
func (a *agent) listen(in wire.Instructions, at time.Time, changed bool) {
	a.book.Hear(at)
	if !changed {
		return
	}
	promises := make([]enforce.Promise, 0, len(in.Provide))
	for _, i := range in.Provide {
		promises = append(promises, enforce.Promise{
			Contract: i.Contract, Slice: i.Slice, ConsumerID: i.ConsumerLiqoID, Consumer: i.Consumer,
			Tenant: i.Tenant, Intent: i.Intent, Flavor: i.Flavor, Resources: i.Resources, Standing: i.Phase.Charged(),
			Nodes: i.Nodes, Priority: i.Priority, Start: i.Term.Start,
		})
	}
	a.book.Tell(in.Fleet, promises, in.Seq)
	a.instructions.Store(&in)
	tell(a.told)
	a.Log.Info("instructions changed", "ledger", in.Ledger, "provide", len(in.Provide), "consume", len(in.Consume))
	a.kick()
}

// honoured is the number of the instructions that what is collected now stands for:
// none while slices are left to Liqo, or what is known of the cluster is old.
func (a *agent) honoured() uint64 {
	e := a.enforcer.Load()
	if e == nil || a.sight.lost() {
		return 0
	}
	return e.Honoured()
}

// kick lets everything that follows from instructions be looked at again.
func (a *agent) kick() {
	if e := a.enforcer.Load(); e != nil {
		e.Kick()
	}
	if r := a.requests.Load(); r != nil {
		r.Kick()
	}
	a.touch()
}

// growing looks again and again for what has come to be served, until the
// context ends; it does not wait for an API server that hangs.
func (a *agent) growing(ctx context.Context) {
	ticker := time.NewTicker(liqoPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		grown := make(chan struct{})
		go func() {
			defer close(grown)
			a.grow(ctx)
		}()
		select {
		case <-ctx.Done():
			return
		case <-grown:
		}
	}
}

// grow watches what has come to be served, and starts what needs it.
func (a *agent) grow(ctx context.Context) {
	if err := a.cluster.watchLiqo(ctx); err != nil {
		a.Log.Warn("cannot watch Liqo", "error", err)
		return
	}
	if err := a.enforceFrom(ctx); err != nil {
		a.Log.Warn("cannot enforce the ledger yet", "error", err)
	}
	if err := a.hashFrom(ctx); err != nil {
		a.Log.Warn("cannot report nodes one by one yet", "error", err)
	}
	if err := a.serve(ctx); err != nil {
		a.Log.Warn("cannot serve the kinds of fleetbroker.io yet", "error", err)
	}
}

// enforceFrom starts answering slices once Liqo's kinds are watched, if the
// agent may.
func (a *agent) enforceFrom(ctx context.Context) error {
	if a.Enforce == EnforceNever || a.enforcer.Load() != nil || !a.cluster.allOfLiqo() {
		return nil
	}
	// What may not be listed would be waited for without end.
	for _, need := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: authv1beta1.ResourceSliceResource, Subresource: "status"},
		{Verb: "list", Resource: authv1beta1.TenantResource},
		{Verb: "watch", Resource: authv1beta1.TenantResource},
	} {
		need.Group = authv1beta1.GroupVersion.Group
		if ok, err := a.allowed(ctx, need); !ok || err != nil {
			return err
		}
	}
	if err := a.cluster.follow(ctx, &authv1beta1.Tenant{}); err != nil {
		return err
	}
	e := &enforce.Reconciler{
		Client: a.mgr.GetClient(), Book: &a.book, Patience: a.Patience, Silence: silence, Now: time.Now, Log: a.Log,
		Flavors: func() []v1alpha1.Flavor {
			if f := a.flavors.Load(); f != nil {
				return *f
			}
			return nil
		},
		Changed: a.touch, Trace: a.trace,
		Ask: func() {
			for _, f := range a.followers {
				f.nudge()
			}
		},
		Count:    func(v enforce.Verdict, reason string) { answers.WithLabelValues(a.Cluster, string(v), reason).Inc() },
		Answered: a.answered,
	}
	if err := e.SetUp(a.mgr); err != nil {
		return err
	}
	a.enforcer.Store(e)
	a.touch() // what is sold is of another class now
	a.Log.Info("enforcing the ledger", "class", enforce.Class)
	return nil
}

// trace is that in which a contract is on its way, as the broker named it.
func (a *agent) trace(contract string) tracing.Origin {
	in := a.instructions.Load()
	if in == nil {
		return tracing.Origin{}
	}
	return tracing.ParseTraceparent(in.Traces[contract])
}

// answered makes the span of a slice's answer, in the trace in which its contract is on its
// way, as the broker named it.
func (a *agent) answered(ctx context.Context, contract string, answer enforce.Answer, began time.Time) {
	o := a.trace(contract)
	if a.Tracer == nil || o.IsZero() {
		return
	}
	_, span := a.Tracer.Begin(ctx, "answer slice", began, o, nil)
	span.Set("fleetbroker.cluster", a.Cluster)
	span.Set("fleetbroker.contract", contract)
	span.Set("fleetbroker.verdict", string(answer.Verdict))
	span.Set("fleetbroker.reason", answer.Reason)
	span.End(nil)
}

// may asks the API server whether the agent may do something.
func (a *agent) may(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	client, err := kubernetes.NewForConfig(a.Config)
	if err != nil {
		return false, fmt.Errorf("ask what the agent may do: %w", err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what the agent may do: %w", err)
	}
	return answer.Status.Allowed, nil
}

// finish adds to what was collected what only the agent's other parts know. short says
// of contracts why a node has not their piece of it.
func (a *agent) finish(ctx context.Context, flavors []v1alpha1.Flavor, short map[string]string) {
	refused := maps.Clone(short)
	if e := a.enforcer.Load(); e != nil {
		maps.Copy(refused, e.Refused())
	}
	if m := a.mirror.Load(); m != nil {
		said, err := m.Refusals(ctx, a.book.Fleet())
		if err != nil && ctx.Err() == nil {
			a.Log.Warn("cannot read what administrators refuse", "error", err)
		}
		maps.Copy(refused, said)
	}
	byFlavor := map[string]map[string]string{}
	for _, p := range a.book.All() {
		why := refused[p.Contract]
		if why == "" || !p.Standing {
			continue
		}
		if byFlavor[p.Flavor] == nil {
			byFlavor[p.Flavor] = map[string]string{}
		}
		byFlavor[p.Flavor][p.Contract] = within.Reason(why)
	}
	for i := range flavors {
		s := &flavors[i].Spec
		s.Endpoint = a.Endpoint
		s.Refused = byFlavor[flavors[i].Metadata.Name]
		s.Cordon = s.Cordon || a.sight.lost()
	}
}
