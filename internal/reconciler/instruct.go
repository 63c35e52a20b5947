package reconciler

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Instructions are what the ledger says of a cluster; the channel is closed
// once that may have changed. Before the first good round they have no
// version: nothing is known, which is not the same as nothing owed. Safe for
// any goroutine.
func (r *Reconciler) Instructions(cluster string) (wire.Instructions, <-chan struct{}) {
	changed := r.listeners.of(cluster) // before looking, so that no change falls between
	s := r.standing.Load()
	if s == nil {
		return wire.Instructions{}, changed
	}
	return s.tell(cluster, r.announced.Of(cluster, r.opts.Now())), changed
}

// Head is the newest commit of the ledger that clusters are told of, "" before the
// first good round. Safe for any goroutine.
func (r *Reconciler) Head() string {
	if s := r.standing.Load(); s != nil {
		return s.commit.String()
	}
	return ""
}

// Vouches implements the server's Broker: a daemon that is alone knows of all that
// it wrote.
func (r *Reconciler) Vouches() error { return nil }

// instructed is what a cluster is told with some news.
type instructed struct {
	news         []wire.News
	instructions wire.Instructions
}

// tell is instructions, made once as long as the news are the same.
func (s *standing) tell(cluster string, news []wire.News) wire.Instructions {
	last, _ := s.told.Load(cluster)
	if t, ok := last.(*instructed); ok && slices.Equal(t.news, news) {
		return t.instructions
	}
	t := &instructed{news, s.instructions(cluster, news)}
	s.told.Store(cluster, t)
	return t.instructions
}

// instructions is a pure function of the standing and of news.
func (s *standing) instructions(cluster string, news []wire.News) wire.Instructions {
	out := wire.Instructions{Fleet: s.id, Provide: []wire.Instruction{}, Consume: []wire.Instruction{}, Requests: []wire.RequestState{}, News: news}
	if c := s.fleet.Clusters[cluster]; c != nil && c.HasRole("consumer") {
		out.Deliver = modeOf(s.fleet.Policy, c) == delivery.Agent
	}
	for _, c := range s.ledger.HeldBy(cluster) {
		out.Provide = append(out.Provide, s.instruction(c))
	}
	for _, c := range s.ledger.Consumer(cluster) {
		out.Consume = append(out.Consume, s.instruction(c))
	}
	for _, it := range s.requests().byCluster[cluster] {
		state := wire.RequestState{ID: it.Metadata.Name, Key: it.Metadata.Annotations[v1alpha1.AnnotationIdempotencyKey]}
		if st := s.ledger.State(it.Metadata.Namespace, it.Metadata.Name); st != nil {
			state.State, state.Reason, state.Message = st.Status.State, st.Status.Reason, st.Status.Message
		}
		out.Requests = append(out.Requests, state)
	}
	// Marshalling plain values cannot fail, and equal lists give equal bytes.
	text, _ := json.Marshal(out)
	out.Version = fmt.Sprintf("%x", sha256.Sum256(text))[:32]
	out.Ledger, out.Seq, out.At = s.commit.String(), s.seq, s.at
	out.Traces = tracing.Texts(s.traces.Among(s.ledger.HeldBy(cluster), func(c *v1alpha1.Contract) string { return c.Metadata.Name }))
	return out
}

func (s *standing) instruction(c *v1alpha1.Contract) wire.Instruction {
	it := s.requests().byName[c.Spec.Intent.Name]
	return wire.Instruction{
		Contract: c.Metadata.Name, Slice: c.Spec.Slice,
		Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name,
		Request:  it != nil && it.Metadata.Namespace == c.Metadata.Namespace,
		Consumer: c.Spec.Consumer, ConsumerLiqoID: liqoID(s.fleet, c.Spec.Consumer), ConsumerEndpoint: endpoint(s.fleet, c.Spec.Consumer),
		Provider: c.Spec.Provider, ProviderLiqoID: liqoID(s.fleet, c.Spec.Provider), ProviderEndpoint: endpointOf(s.fleet, c),
		Flavor: c.Spec.Flavor, Class: cmp.Or(c.Spec.Class, "default"),
		Resources: c.Spec.Resources, GPUs: c.Spec.GPUs, Nodes: c.Spec.Nodes,
		Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message, Since: c.Status.Since, Term: c.Spec.Term, Stage: c.Spec.Stage,
		Priority: c.Spec.Priority,
	}
}

// liqoID is a cluster's id in Liqo.
func liqoID(f *fleet.Fleet, cluster string) string {
	if c := f.Clusters[cluster]; c != nil && c.Spec.Liqo.ClusterID != "" {
		return c.Spec.Liqo.ClusterID
	}
	return cluster
}

// endpoint is the address of a cluster's API server, as its file says.
func endpoint(f *fleet.Fleet, cluster string) string {
	if c := f.Clusters[cluster]; c != nil {
		return c.Spec.Endpoint
	}
	return ""
}

// endpointOf is the address of a contract's provider: its agent's word when the
// contract was made.
func endpointOf(f *fleet.Fleet, c *v1alpha1.Contract) string {
	return cmp.Or(c.Spec.Endpoint, endpoint(f, c.Spec.Provider))
}

// Owed is what a cluster must provide, in the words of agents of the first
// form. They know no phases beyond Reserved that would be owed, so that all
// live contracts bear it. Safe for any goroutine.
func (r *Reconciler) Owed(cluster string) []wire.Reservation {
	s := r.standing.Load()
	if s == nil {
		return nil
	}
	var out []wire.Reservation
	for _, c := range s.ledger.HeldBy(cluster) {
		if !c.Status.Phase.Charged() {
			continue
		}
		one := wire.Reservation{
			ID: c.Metadata.Name, RequesterID: c.Spec.Consumer, TargetClusterID: c.Spec.Provider,
			Requested: texts(inFirstForm(c)),
			Status: wire.ReservationStatus{
				Phase: wire.PhaseReserved, Message: "contract " + c.Metadata.Name + " for " + c.Metadata.Namespace + "/" + c.Spec.Intent.Name,
				ReservedAt: instant(c.Spec.Term.Start), ExpiresAt: instant(c.Spec.Term.End),
			},
			CreatedAt: c.Spec.Term.Start.Time,
		}
		out = append(out, one)
	}
	return out
}

// Held is the capacity that contracts keep of a cluster, those being released
// too, in the first form's words. Safe for any goroutine.
func (r *Reconciler) Held(cluster string) wire.Quantities {
	sum := v1alpha1.Resources{v1alpha1.CPU: {}, v1alpha1.Memory: {}}
	s := r.standing.Load()
	if s == nil {
		return texts(sum)
	}
	if q, ok := s.held.Load(cluster); ok {
		return q.(wire.Quantities)
	}
	for _, c := range s.ledger.HeldBy(cluster) {
		sum = sum.Add(inFirstForm(c))
	}
	q, _ := s.held.LoadOrStore(cluster, texts(sum))
	return q.(wire.Quantities)
}

// instant is nil for the time that never comes.
func instant(t v1alpha1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}

// inFirstForm are a contract's resources in the names that the first form has.
func inFirstForm(c *v1alpha1.Contract) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.EphemeralStorage} {
		if a, ok := c.Spec.Resources[name]; ok {
			out[name] = a
		}
	}
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		out[v1alpha1.GPU] = c.Spec.Resources[g.ResourceName]
	}
	return out
}

// texts are quantities as the first form writes them.
func texts(r v1alpha1.Resources) wire.Quantities {
	text := func(name string) string {
		if a, ok := r[name]; ok {
			return a.Canonical(name)
		}
		return ""
	}
	return wire.Quantities{CPU: text(v1alpha1.CPU), Memory: text(v1alpha1.Memory), GPU: text(v1alpha1.GPU), Storage: text(v1alpha1.EphemeralStorage)}
}
