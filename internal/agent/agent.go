package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fleetbroker/fleetbroker/internal/agent/bynode"
	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/agent/mirror"
	"github.com/fleetbroker/fleetbroker/internal/agent/replies"
	"github.com/fleetbroker/fleetbroker/internal/agent/request"
	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/agent/usage"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access/renew"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// settling is how long changes are gathered before flavors are made anew: many
// come together, and a report is due within a second.
const settling = 200 * time.Millisecond

// Options of an agent.
type Options struct {
	// Cluster is the id under which it reports, its certificate's common name.
	Cluster string
	// Config reaches the cluster's API server.
	Config *rest.Config
	// Brokers are the addresses reported to, https://host:port.
	Brokers []string
	// Endpoint of the cluster's API server as others reach it, published with
	// every flavor; empty publishes none.
	Endpoint string
	// Transport to the brokers: http, the default.
	Transport string
	// CertDir holds tls.crt, tls.key and ca.crt.
	CertDir string
	// Interval between reports while nothing changes.
	Interval time.Duration
	// Enforce says whether slices are granted as the ledger says, EnforceAuto (the default) or EnforceNever.
	Enforce string
	// LimitsEnforcement is how Liqo is installed to enforce limits: None, Soft, Hard, or
	// "" where nobody says. What Quotas show goes before it.
	LimitsEnforcement string
	// ReportNodes reports flavors with accelerators node by node, which needs the right to
	// label nodes.
	ReportNodes bool
	// Patience is how long a slice without a contract waits before it is denied; 0 takes the default.
	Patience time.Duration
	// MetricsAddress and HealthAddress to listen on; "0" does not. Metrics are
	// plain on the loopback interface, and elsewhere TLS for tokens that the
	// cluster reviews.
	MetricsAddress, HealthAddress string
	// WebhookAddress is where admission reviews are answered (package admission/hook), empty
	// or "0" nowhere; WebhookConfiguration the MutatingWebhookConfiguration that leads there.
	// It needs LeaseNamespace, in which its Secret is.
	WebhookAddress, WebhookConfiguration string
	// WebhookClientCA is hook.Server.ClientCA.
	WebhookClientCA string
	// LeaseNamespace holds the Lease by which one of several replicas speaks for
	// the cluster; empty: there is only this one.
	LeaseNamespace string
	// KubeconfigsDir holds <provider>.kubeconfig of the providers that this
	// cluster is to be peered with where the agent applies its manifests; empty:
	// another account peers. Their tokens are renewed before they end. KubeconfigPrograms
	// are those that they may run for credentials (access.Kubeconfigs).
	KubeconfigsDir     string
	KubeconfigPrograms []string
	// TokensDir keeps renewed tokens over a restart; empty keeps them in memory.
	TokensDir string
	// Tracer makes spans of what is done for a contract; nil: none.
	Tracer *tracing.Tracer
	// Log of everything.
	Log *slog.Logger
}

// agent is a running one.
type agent struct {
	Options
	cluster *cluster
	sight   *sight
	board   *board
	dirty   chan struct{}
	// collected is told that there is something new to show.
	collected chan struct{}
	senders   []*sender
	// lines to the brokers, in the order of Brokers.
	lines     []transport.Transport
	providers access.Kubeconfigs // of KubeconfigsDir
	mgr       manager.Manager
	followers []*follower
	book      enforce.Book
	// instructions are what counts of what the brokers say, nil before the first.
	instructions atomic.Pointer[wire.Instructions]
	position     *position
	// told is told when the instructions are others.
	told chan struct{}
	// flavors as they were last collected.
	flavors    atomic.Pointer[[]v1alpha1.Flavor]
	enforcer   atomic.Pointer[enforce.Reconciler]
	requests   atomic.Pointer[request.Reconciler]
	mirror     atomic.Pointer[mirror.Mirror]
	toldMayNot map[authorizationv1.ResourceAttributes]bool
	meter      *usage.Meter
	// hasher of nodes, nil while they may not be labelled by labeler.
	hasher  atomic.Pointer[bynode.Hasher]
	labeler *bynode.Labeler
	// measured is what pods used when that was read last, nil where nothing is measured.
	measured atomic.Pointer[map[types.NamespacedName]v1alpha1.Resources]
	// accepted is set once a broker has taken a report.
	accepted atomic.Bool
}

// Run watches the cluster and reports until the context ends. It returns an
// error when it cannot start, or when watching fails for good.
func Run(ctx context.Context, o Options) error {
	o.Config = replies.Bounded(o.Config)
	a, err := newAgent(o)
	if err != nil {
		return err
	}
	mgr, err := a.manager()
	if err != nil {
		return err
	}
	a.mgr = mgr
	if err := a.admit(); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	a.labeler = bynode.NewLabeler(mgr.GetClient(), o.Log)
	a.cluster = &cluster{id: o.Cluster, cache: mgr.GetCache(), mapper: mgr.GetRESTMapper(), log: o.Log, changed: a.touch}
	if a.sight, err = newSight(o.Config, o.Log); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	if a.meter, err = usage.NewMeter(o.Config, o.Log); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(a.run)); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run agent: %w", err)
	}
	return nil
}

func newAgent(o Options) (*agent, error) {
	if o.Interval <= 0 {
		return nil, fmt.Errorf("start agent: the interval between reports is %s; it must be positive", o.Interval)
	}
	if len(o.Brokers) == 0 {
		return nil, errors.New("start agent: no broker to report to")
	}
	files, err := pki.OpenFiles(o.CertDir)
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if err := ownCertificate(files, o.Cluster); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	certificates.Follow(o.Cluster, files)
	if o.Enforce != "" && o.Enforce != EnforceAuto && o.Enforce != EnforceNever {
		return nil, fmt.Errorf("start agent: enforce %q: use %s or %s", o.Enforce, EnforceAuto, EnforceNever)
	}
	switch v1alpha1.Enforcement(o.LimitsEnforcement) {
	case "", v1alpha1.EnforceNone, v1alpha1.EnforceSoft, v1alpha1.EnforceHard:
	default:
		return nil, fmt.Errorf("start agent: limits enforcement %q: use None, Soft or Hard", o.LimitsEnforcement)
	}
	a := &agent{Options: o, board: &board{}, dirty: make(chan struct{}, 1), collected: make(chan struct{}, 1), told: make(chan struct{}, 1)}
	a.providers = access.Kubeconfigs{Dir: o.KubeconfigsDir, Programs: o.KubeconfigPrograms, Tokens: &renew.Keeper{Dir: o.TokensDir, Now: time.Now, Log: o.Log}}
	hearing := &hearing{told: a.listen, log: a.Log}
	if a.position, err = newPosition(o.Config, o.LeaseNamespace, hearing, o.Log); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if o.Transport == transport.KindStream {
		o.Log.Warn("the stream of reports was removed; single requests are sent instead", "remedy", "leave --broker-transport out")
	}
	for i, broker := range o.Brokers {
		if slices.Contains(o.Brokers[:i], broker) {
			return nil, fmt.Errorf("start agent: broker %s is named twice", broker)
		}
		line, err := transport.New(o.Transport, broker, o.Cluster, files)
		if err != nil {
			return nil, fmt.Errorf("start agent: %w", err)
		}
		a.lines = append(a.lines, line)
		a.senders = append(a.senders, &sender{
			broker: broker, line: line, board: a.board, interval: o.Interval,
			now: time.Now, log: o.Log, observe: a.observe,
		})
		a.followers = append(a.followers, &follower{broker: broker, line: line, hearing: hearing, now: time.Now, log: o.Log, nudges: make(chan struct{}, 1)})
	}
	return a, nil
}

// ownCertificate says at once what a broker would refuse later.
func ownCertificate(files *pki.Files, cluster string) error {
	m, err := files.Load()
	if err != nil {
		return err
	}
	id, err := pki.IdentityOf(m.Pair.Leaf)
	if err != nil {
		return err
	}
	if id.Name != cluster || id.Role != pki.Agent {
		return fmt.Errorf("the certificate is of %s (%s), not of cluster %s: issue one with `fleetbroker pki issue`", id.Name, id.Role, cluster)
	}
	return nil
}

// manager has the caches and serves health and metrics.
func (a *agent) manager() (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	lock, err := speaking(a.Config, a.LeaseNamespace)
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	grace := 10 * time.Second
	mgr, err := ctrl.NewManager(a.Config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cacheOptions(),
		Logger:                  logr.FromSlogHandler(a.Log.Handler()),
		Metrics:                 metricsOptions(a.MetricsAddress),
		HealthProbeBindAddress:  a.HealthAddress,
		GracefulShutdownTimeout: &grace,
		// One voice a cluster: what is added to the manager runs where the Lease is held.
		LeaderElection:                      lock != nil,
		LeaderElectionID:                    leaseName,
		LeaderElectionNamespace:             a.LeaseNamespace,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &leaseDuration,
		RenewDeadline:                       &renewDeadline,
		RetryPeriod:                         &retryPeriod,
	})
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	return mgr, mgr.AddReadyzCheck("reported", func(*http.Request) error { return a.ready() })
}

// metricsOptions guards metrics that can be reached from elsewhere.
func metricsOptions(address string) metricsserver.Options {
	o := metricsserver.Options{BindAddress: address}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (ip == nil || !ip.IsLoopback()) {
		o.SecureServing, o.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	}
	return o
}

// ready says what is missing before the agent does its work.
func (a *agent) ready() error {
	if a.LeaseNamespace != "" {
		select {
		case <-a.mgr.Elected():
		default:
			return nil // another replica speaks, and this one is ready to
		}
	}
	switch {
	case a.board.newest() == nil:
		return errors.New("the cluster has not been read yet")
	case !a.accepted.Load():
		return errors.New("no broker has taken a report yet")
	}
	return nil
}

// touch says that something changed.
func (a *agent) touch() { tell(a.dirty) }

// tell says that something happened to a channel of one place.
func tell(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it is known already
	}
}

// run is the agent's work, once the manager has started.
func (a *agent) run(ctx context.Context) error {
	if err := a.cluster.watch(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to end before it had begun
		}
		return err
	}
	a.position.read(ctx)
	group, ctx := errgroup.WithContext(ctx)
	a.grow(ctx)
	group.Go(func() error {
		a.position.run(ctx)
		return nil
	})
	group.Go(func() error { return a.collect(ctx) })
	group.Go(func() error {
		a.growing(ctx)
		return nil
	})
	group.Go(func() error {
		a.showing(ctx)
		return nil
	})
	group.Go(func() error {
		a.delivering(ctx)
		return nil
	})
	group.Go(func() error {
		a.sight.watch(ctx, a.touch)
		return nil
	})
	group.Go(func() error {
		a.measure(ctx)
		return nil
	})
	group.Go(func() error {
		a.labeler.Run(ctx)
		return nil
	})
	for _, s := range a.senders {
		group.Go(func() error {
			s.run(ctx)
			return nil
		})
	}
	for _, f := range a.followers {
		group.Go(func() error {
			f.run(ctx)
			return nil
		})
	}
	err := group.Wait()
	for _, l := range a.lines {
		l.Close()
	}
	return err
}

// collect makes flavors after each change and hangs them up for the senders. It
// asks caches alone: an API server that hangs must not keep the brokers from
// hearing that it does.
func (a *agent) collect(ctx context.Context) error {
	var memory Memory
	var told []string
	for {
		honoured := a.honoured() // before the state is read, which then shows what came of it
		state, err := a.cluster.state(ctx)
		if err != nil {
			return err
		}
		state.Enforced, state.LimitsEnforcement, state.Now = a.enforcer.Load() != nil, a.LimitsEnforcement, time.Now()
		state.Hasher, state.Promises = a.hasher.Load(), a.book.All()
		if in := a.instructions.Load(); in != nil {
			state.Fleet = &in.Fleet
		}
		if m := a.measured.Load(); m != nil {
			state.Measured = *m
		}
		flavors, next, problems := Collect(state, memory)
		memory = next
		if !slices.Equal(problems, told) {
			for _, p := range problems {
				a.Log.Warn("the cluster is not offered as it could be", "problem", p)
			}
			told = problems
		}
		if len(next.unlabelled) > 0 {
			a.labeler.Want(next.unlabelled)
		}
		a.finish(ctx, flavors, next.short)
		a.flavors.Store(&flavors)
		var demand *v1alpha1.Demand
		if !a.sight.lost() { // what was known of pods is old
			demand = Demand(state)
		}
		posted, err := a.board.post(flavors, demand, honoured)
		if err != nil {
			return err
		}
		if posted {
			if e := a.enforcer.Load(); e != nil {
				e.Kick()
			}
			flavorsOffered.WithLabelValues(a.Cluster).Set(float64(len(flavors)))
			a.Log.Info("flavors changed", "flavors", len(flavors), "nodes", len(state.Nodes), "pods", len(state.Pods))
		}
		tell(a.collected)
		if !a.waitForChange(ctx) {
			return nil
		}
	}
}

// waitForChange returns a moment after the next change, and false at the end.
func (a *agent) waitForChange(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.dirty:
	}
	moment := time.NewTimer(settling)
	defer moment.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-moment.C:
		return true
	}
}

// observe counts what became of a report.
func (a *agent) observe(broker, result string) {
	reports.WithLabelValues(a.Cluster, broker, result).Inc()
	if result == "accepted" {
		a.accepted.Store(true)
		lastAccepted.WithLabelValues(a.Cluster, broker).SetToCurrentTime()
	}
}
