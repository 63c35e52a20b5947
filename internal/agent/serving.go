package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent/mirror"
	"github.com/fleetbroker/fleetbroker/internal/agent/request"
	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// ownKind is a kind of our own with what the agent does with it.
type ownKind struct {
	kind   string
	plural string
	object client.Object
	verbs  []string
}

var (
	asked   = []ownKind{{"ResourceRequest", "resourcerequests", &crd.ResourceRequest{}, []string{"list", "watch", "patch"}}}
	shown   = []string{"list", "watch", "create", "update", "delete"}
	mirrors = []ownKind{
		{"Advertisement", "advertisements", &crd.Advertisement{}, shown},
		{"ProviderInstruction", "providerinstructions", &crd.ProviderInstruction{}, shown},
		{"ReservationInstruction", "reservationinstructions", &crd.ReservationInstruction{}, shown},
	}
)

// serve starts what needs kinds of our own, once they are served and the agent
// may use them.
func (a *agent) serve(ctx context.Context) error {
	if a.requests.Load() == nil {
		ok, err := a.followOwn(ctx, asked)
		if err != nil {
			return err
		}
		if ok {
			r := &request.Reconciler{
				Cluster: a.Cluster, Client: a.mgr.GetClient(), Broker: brokers(a.lines), Instructions: a.instructions.Load, Log: a.Log,
				Events: a.mgr.GetEventRecorder("fleet-agent"),
			}
			if err := r.SetUp(a.mgr); err != nil {
				return err
			}
			a.requests.Store(r)
			a.Log.Info("serving ResourceRequests")
		}
	}
	if a.mirror.Load() == nil {
		ok, err := a.followOwn(ctx, mirrors)
		if err != nil {
			return err
		}
		if ok {
			a.mirror.Store(&mirror.Mirror{Client: a.mgr.GetClient(), Events: a.mgr.GetEventRecorder("fleet-agent")})
			tell(a.collected)
			a.Log.Info("showing what is offered and promised")
		}
	}
	return nil
}

// followOwn watches kinds of our own, all or none.
func (a *agent) followOwn(ctx context.Context, kinds []ownKind) (bool, error) {
	for _, k := range kinds {
		_, err := a.cluster.mapper.RESTMapping(schema.GroupKind{Group: v1alpha1.Group, Kind: k.kind})
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look for %s: %w", k.kind, err)
		}
		for _, verb := range k.verbs {
			if ok, err := a.allowed(ctx, authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.Group, Resource: k.plural}); !ok || err != nil {
				return false, err
			}
		}
	}
	for _, k := range kinds {
		if err := a.cluster.follow(ctx, k.object); err != nil {
			return false, err
		}
	}
	return true, nil
}

// allowed is may, and says once what is not.
func (a *agent) allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	ok, err := a.may(ctx, what)
	if err != nil || ok {
		return ok, err
	}
	if a.toldMayNot == nil {
		a.toldMayNot = map[authorizationv1.ResourceAttributes]bool{}
	}
	if !a.toldMayNot[what] {
		a.Log.Warn("this account has not every right, and the agent does without; see install/agent",
			"verb", what.Verb, "resource", path.Join(what.Resource, what.Subresource), "group", what.Group)
	}
	a.toldMayNot[what] = true
	return false, nil
}

// showing mirrors what is known after every collection, until the context ends.
func (a *agent) showing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.collected:
		}
		if m, flavors := a.mirror.Load(), a.flavors.Load(); m != nil && flavors != nil {
			a.show(ctx, m, *flavors)
		}
	}
}

func (a *agent) show(ctx context.Context, m *mirror.Mirror, flavors []v1alpha1.Flavor) {
	s := mirror.State{Cluster: a.Cluster, Now: time.Now(), Flavors: flavors, Instructions: a.instructions.Load(), Refused: map[string]string{}}
	for i := range flavors {
		for contract, why := range flavors[i].Spec.Refused {
			s.Refused[contract] = why
		}
	}
	if a.cluster.allOfLiqo() {
		var list authv1beta1.ResourceSliceList
		if err := a.cluster.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			a.Log.Warn("cannot show what is promised", "error", err)
			return
		}
		s.Slices = list.Items
	}
	if err := m.Pass(ctx, s); err != nil && ctx.Err() == nil {
		a.Log.Warn("cannot show what is offered and promised", "error", err)
	}
}

// brokers asks one broker after the other until one answers.
type brokers []transport.Transport

// Reserve implements request.Broker. The key makes it safe to ask the next when
// it is not known what became of the call.
func (b brokers) Reserve(ctx context.Context, key string, q wire.ReservationRequest) (out wire.Reservation, err error) {
	err = b.each(ctx, func(t transport.Transport) error {
		out, err = t.Reserve(ctx, key, q)
		return err
	})
	return out, err
}

// Release implements request.Broker.
func (b brokers) Release(ctx context.Context, id string) error {
	return b.each(ctx, func(t transport.Transport) error { return t.Release(ctx, id) })
}

// each calls until there is an answer that another broker could not better.
func (b brokers) each(ctx context.Context, call func(transport.Transport) error) error {
	var errs []error
	for _, t := range b {
		err := call(t)
		if err == nil {
			return nil
		}
		var no *wire.Refusal
		if errors.As(err, &no) && no.Status < 500 {
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}
