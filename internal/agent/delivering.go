package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
)

// observeInterval is how often a broker is told what is seen while that stays
// the same. It takes an agent for silent after three of them.
const observeInterval = 10 * time.Second

// delivering applies the cluster's manifests while the brokers say that this is
// the agent's task, until the context ends.
func (a *agent) delivering(ctx context.Context) {
	for {
		if in := a.instructions.Load(); in != nil && in.Deliver {
			a.Log.Info("applies this cluster's manifests")
			a.deliver(ctx, in.Fleet)
			a.Log.Info("does not apply this cluster's manifests")
		}
		select {
		case <-ctx.Done():
			return
		case <-a.told:
		}
	}
}

// deliver applies manifests until the context ends or it is not the agent's
// task any more, or the fleet has another id than it had.
func (a *agent) deliver(ctx context.Context, fleet string) {
	host, _ := os.Hostname()
	d := delivery.New(delivery.Options{
		Access: ownAccess{a.Cluster, a.Config, a.providers},
		// Asked before anything is corrected: the broker asks the repository.
		Confirm:  func(ctx context.Context, _ string) (tree.Hash, error) { return a.root(ctx) },
		Identity: host + "-fleet-agent-" + a.Cluster,
		Fleet:    fleet,
		Tracer:   a.Tracer,
		Log:      a.Log,
	})
	defer d.Close()
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	s := &applying{agent: a, d: d, fleet: fleet}
	tasks.Go(func() { s.observing(ctx) })
	s.following(ctx)
}

// applying is one time of being the one that applies.
type applying struct {
	*agent
	d     *delivery.Deliverer
	fleet string // whose manifests they are

	// tellers order what each broker hears of what is seen; observing alone uses them.
	tellers []teller

	mu   sync.Mutex
	root string // of the manifests that were handed over
}

// following hands manifests over as the brokers give them, one broker after the
// other when one does not answer.
func (s *applying) following(ctx context.Context) {
	since, retry, at := "", time.Duration(0), 0
	for ctx.Err() == nil {
		if in := s.instructions.Load(); in != nil && (!in.Deliver || in.Fleet != s.fleet) {
			return
		}
		m, err := s.lines[at%len(s.lines)].Manifests(ctx, since, pollWait)
		if err == nil {
			err = s.take(ctx, m)
		}
		var refusal *wire.Refusal
		switch {
		case err == nil:
			since, retry = m.Version, 0
			continue
		case errors.Is(err, transport.ErrUnchanged):
			retry = 0
			continue
		case errors.As(err, &refusal) && refusal.Body.Reason == wire.ReasonNotDelivered && len(s.lines) == 1:
			return
		}
		if retry == 0 && ctx.Err() == nil {
			s.Log.Warn("broker gives no manifests", "broker", s.Brokers[at%len(s.lines)], "error", err)
		}
		at++
		retry = min(max(2*retry, firstRetry), lastRetry)
		pause(ctx, retry)
	}
}

// take hands manifests over, unless the repository has others: a broker that
// lags must not bring back what another has released.
func (s *applying) take(ctx context.Context, m wire.Manifests) error {
	root, err := s.agent.root(ctx)
	if err != nil {
		return err
	}
	want := delivery.Unpacked(m)
	if root != want.Root {
		return fmt.Errorf("it gives manifests %.7s, and the repository has %s", m.Root, root.Short())
	}
	if s.KubeconfigsDir == "" {
		want.Peers = nil
	}
	s.d.Deliver(map[string]delivery.Desired{s.Cluster: want})
	s.mu.Lock()
	s.root = m.Root
	s.mu.Unlock()
	return nil
}

// root is the hash of the manifests in the repository now.
func (a *agent) root(ctx context.Context) (tree.Hash, error) {
	var errs []error
	for _, line := range a.lines {
		text, err := line.ManifestsRoot(ctx)
		if err == nil {
			return tree.ParseHash(text)
		}
		errs = append(errs, err)
	}
	return tree.Hash{}, errors.Join(errs...)
}

// observing tells every broker what is seen, at once when it is something else.
func (s *applying) observing(ctx context.Context) {
	ticker := time.NewTicker(observeInterval)
	defer ticker.Stop()
	warned := false
	for {
		err := s.observe(ctx)
		if err != nil && !warned && ctx.Err() == nil {
			s.Log.Warn("cannot report what is seen of the manifests", "error", err)
		}
		warned = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.d.Changed():
		}
	}
}

func (s *applying) observe(ctx context.Context) error {
	// The root before what is seen: newer manifests say less of what is absent.
	s.mu.Lock()
	root := s.root
	s.mu.Unlock()
	status, known := s.d.Status()[s.Cluster]
	all, _ := s.d.Observe()
	if !known {
		return nil // nothing was handed over yet
	}
	seen := all[s.Cluster]
	if seen == nil {
		seen = map[string]v1alpha1.ConsumerObservation{} // there are none, which is not the same as nothing known
	}
	report := wire.Observed{
		Root: root, Applied: !status.Commit.IsZero() && status.Pending == 0, Contracts: seen,
		Leading: status.Leading, Pending: status.Pending, Problem: status.Problem, Troubles: status.Troubles, Admission: status.Admission,
	}
	report.Fit()
	if s.tellers == nil {
		s.tellers = make([]teller, len(s.lines))
	}
	var errs []error
	for i, line := range s.lines {
		errs = append(errs, s.tellers[i].tell(ctx, line, report, time.Now()))
	}
	return errors.Join(errs...)
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// ownAccess reaches the agent's own cluster as the agent does, and others by
// kubeconfig.
type ownAccess struct {
	cluster string
	config  *rest.Config
	others  access.Kubeconfigs
}

// RESTConfig implements delivery.Access.
func (a ownAccess) RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	if cluster.Metadata.Name == a.cluster {
		return rest.CopyConfig(a.config), nil
	}
	other := *cluster
	other.Spec.Access = nil // a Secret of the daemon's namespace
	return a.others.RESTConfig(ctx, &other)
}
