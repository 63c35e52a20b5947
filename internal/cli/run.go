package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/api/logs"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/cli/flagfile"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/delivery/spread"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/notify"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
)

// shutdownGrace is how long requests under way may take after the daemon was
// told to stop.
const shutdownGrace = 10 * time.Second

type runOptions struct {
	daemonFlags
	streams                     Streams
	agents, operators, webhooks string
	connections, perAddress     int
	store                       process.StoreFlags
	certPath                    string
	webhookSecrets              string
	webhooksTLS                 bool
	operatorsKubeconfig         string
	profiling                   bool
	login                       login.Flags
	notify                      bool
	notifyDir, notifyCAs        string
}

func newCmdRun(s Streams) *cobra.Command {
	o := runOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon: read the fleet repo, hear the clusters' agents, decide, write
decisions back to the ledger branch, and apply the manifests to the consumer
clusters. Of several one decides: who shares --market-store kubernetes elects it,
others stand by while it writes.

It starts with a trust root, which says whose signatures count, or with --unsigned.`,
		Example: `  fleetbroker run --repo https://git.example.org/acme/fleet.git --state-dir /var/lib/fleetbroker \
    --git-user broker --git-password-file /etc/fleetbroker/git-token \
    --trust-root /etc/fleetbroker/trust-root.yaml --signing-key /etc/fleetbroker/ledger \
    --cert-path /etc/fleetbroker/certs --kubeconfigs-dir /etc/fleetbroker/kubeconfigs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRun(cmd.Context(), &o) },
	}
	fs := cmd.Flags()
	o.register(fs)
	o.store.Register(fs)
	fs.StringVar(&o.agents, "agents-address", ":8443", "address for the clusters' agents (mutual TLS); empty serves none")
	fs.IntVar(&o.connections, "agents-connections", 20_000, "connections of agents at a time, about 40 KiB each; half of them are kept for addresses that showed a certificate in the last hour")
	fs.IntVar(&o.perAddress, "agents-connections-per-address", 0, "connections of agents from one address at a time; without a value 1000, 0 does not limit (agents of one site often share an address)")
	fs.Lookup("agents-connections-per-address").NoOptDefVal = "1000"
	fs.StringVar(&o.operators, "operators-address", "127.0.0.1:8080", "address for metrics, health and readiness: plain on loopback, else TLS with --cert-path, for certificates of operators and readers and for tokens that the cluster reviews")
	fs.BoolVar(&o.profiling, "profiling", false, "serve Go's profiles at /debug/pprof/ of the operators' port, to operators' certificates and to tokens that may get that path")
	fs.StringVar(&o.operatorsKubeconfig, "operators-kubeconfig", "", "kubeconfig of the cluster that reviews tokens (default: the pod's own)")
	o.login.Register(fs)
	fs.StringVar(&o.webhooks, "webhooks-address", "", "address for the forge's webhooks of pushes and pull requests (TLS, or plain on loopback); empty serves none")
	fs.BoolVar(&o.webhooksTLS, "webhooks-tls", true, "serve webhooks over TLS with the certificates of --cert-path; false needs a loopback address, for a proxy that ends TLS")
	fs.StringVar(&o.certPath, "cert-path", "", "directory with tls.crt, tls.key and ca.crt (made by fleetbroker pki issue --role server)")
	fs.StringVar(&o.webhookSecrets, "webhook-secrets-dir", "", "directory with one file a forge (github, gitlab, gitea, generic) that holds its webhook secret")
	fs.BoolVar(&o.notify, "notify", true, "send the notifications that tenants' files ask for; of several daemons in one cluster one does, of others on the same fleet repo one should")
	fs.StringVar(&o.notifyDir, "notify-urls-dir", "", "directory with a file <secret>/<key> for each address of the tenants' notify, as Secrets are mounted")
	fs.StringVar(&o.notifyCAs, "notify-ca-file", "", "further certificate authorities for the receivers of notifications")
	flagfile.Register(cmd)
	return cmd
}

// runRun runs until the context ends: SIGTERM and SIGINT end it.
func runRun(ctx context.Context, o *runOptions) error {
	log, err := o.logger(o.streams)
	if err != nil {
		return err
	}
	defer logs.Flush(log.Handler())
	if err := o.root.asked(o.url, true); err != nil {
		return err
	}
	if err := o.awaitRepo(ctx, log); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var d *daemon
	d, err = o.build(ctx, log, o.streams.Now, func(opts *reconciler.Options) {
		opts.Replica, opts.Elected = process.ReplicaName(process.IdentityOf(o.identity)), func() bool { return d.election != nil }
		opts.Revoke = func(crl []byte) error { return d.revoke(crl) }
		opts.Newest = func(ctx context.Context, providers []string) error {
			if shared, ok := d.shared.Store.(*store.Shared); ok {
				return shared.Newest(ctx, providers)
			}
			return nil
		}
	})
	if err != nil {
		return err
	}
	defer func() { // what was left computing may hold what is to be closed
		process.Stoppable{Name: "files", Log: d.log, Waits: func() bool { return !d.left.Load() }}.Close(d.close)
	}()
	if err := o.join(ctx, d); err != nil {
		return err
	}
	d.enroller = newEnroller(d.enrollment, d.repo.Propose, o.streams.Now, log)
	common := reviews.NewCommon(d.repo)
	d.reviews, d.theirs = o.pullRequests(d, common), o.theirPullRequests(d, common)
	ports, err := o.ports(d)
	if err != nil {
		return err
	}
	tell, err := o.notifier(d)
	if err != nil {
		return err
	}
	servers, err := server.Listen(ctx, log, ports...)
	if err != nil {
		return err
	}
	d.servers.Store(servers)
	return d.runAll(ctx, servers, tell, log)
}

// runAll runs everything that a daemon is made of until the context ends, or one fails.
func (d *daemon) runAll(ctx context.Context, servers *server.Servers, tell *notify.Notifier, log *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return servers.Run(ctx, shutdownGrace) })
	group.Go(func() error { return d.shared.Store.Run(ctx) })
	group.Go(func() error {
		return process.Shed(ctx, func() bool { return d.storeUp() != nil || d.useful() != nil }, func() int { return servers.Drop("agents") }, log)
	})
	if shared, ok := d.shared.Store.(*store.Shared); ok {
		group.Go(func() error {
			return process.Balance(ctx, d.connections, shared.Connections, func(most int) int { return servers.Shed("agents", most) }, log)
		})
	}
	group.Go(func() error { return process.Prune(ctx, d.shared.Store, d.election.Leads, d.inFleet, log) })
	group.Go(func() error { process.Hasten(ctx, func() bool { return d.loop.Ready() == nil }); return nil })
	group.Go(func() error { return d.stoppable("rounds").Run(ctx, d.loop.Run) })
	group.Go(func() error { return d.delivery.Run(ctx) })
	group.Go(func() error { d.access.Renew(ctx, time.Minute); return nil })
	group.Go(func() error {
		<-ctx.Done()
		d.delivery.Close() // clusters' Leases are for others now, while requests under way are answered
		return nil
	})
	group.Go(func() error {
		return d.observer.News.Follow(ctx, d.market.Changed(), d.delivery.Changed(), d.loop.Wake)
	})
	group.Go(func() error { return d.accounts(ctx) })
	group.Go(func() error { return d.shared.Follow(ctx) })
	group.Go(func() error {
		return d.stoppable("sources").Run(ctx, func(ctx context.Context) error { d.sources.Run(ctx); return nil })
	})
	group.Go(func() error { return d.enroller.run(ctx) })
	if d.election != nil {
		group.Go(func() error { return d.election.Run(ctx) })
		group.Go(func() error {
			return process.HearAPIServer(ctx, d.election.Config, func(at time.Time, took time.Duration) { d.clock.Heard("API server", at, took) })
		})
	}
	if d.reviews != nil {
		group.Go(func() error { return d.stoppable("reviews").Run(ctx, d.reviews.Run) })
	}
	if d.theirs != nil {
		group.Go(func() error { return d.stoppable("reviews of sources").Run(ctx, d.theirs.Run) })
	}
	if tell != nil {
		group.Go(func() error { return tell.Run(ctx) })
	}
	err := group.Wait()
	log.Info("stopped")
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// stoppable is a part that may compute for long when the daemon is told to stop.
func (d *daemon) stoppable(part string) process.Stoppable {
	s := process.Stoppable{Name: part, Log: d.log, Left: func() { d.left.Store(true) }}
	if part == "rounds" { // what was being read or planned has not killed anybody
		s.Waits, s.Left = func() bool { return d.loop.RemoteOut() > 0 }, func() { d.left.Store(true); d.watch.Stop() }
	}
	return s
}

// ports are what the daemon listens on.
func (o *runOptions) ports(d *daemon) ([]server.Port, error) {
	var certs *pki.Files
	if o.certPath != "" {
		var err error
		if certs, err = pki.OpenFiles(o.certPath); err != nil {
			return nil, err
		}
		d.certs, d.revocations.Authorities = certs, certs
	}
	operators, err := o.operatorsPort(d, certs)
	if err != nil {
		return nil, err
	}
	ports := []server.Port{operators}
	if o.agents != "" {
		if certs == nil {
			return nil, usagef("agents need --cert-path: make certificates with `fleetbroker pki init` and `fleetbroker pki issue`, or serve no agents with --agents-address \"\"")
		}
		ports = append(ports, server.Port{
			Name: "agents", Address: o.agents, Connections: o.connections, PerAddress: o.perAddress, TLS: server.AgentTLS(certs, &d.revocations, d.log),
			Handler: d.traces.Tracer().Handler(server.NewAgents(server.Agents{
				Reports: d.shared.Store, Market: d.market, Broker: d.broker(certs), Replicas: d.loop, Peer: d.shared.Peer(certs), Delivery: spread.Agents{Deliverer: d.delivery, Store: d.shared.Store}, Revocations: &d.revocations, Enrolled: d.enrolled,
				NotEnrolled: d.notEnrolled, Handed: map[string]http.Handler{wire.HandedSimulationsPath: d.simulations},
				Metrics: d.metrics, Log: d.log, Now: o.streams.Now,
			}), process.AgentRoutes(d.shared.Peer(certs))),
		})
	}
	if o.webhooks != "" {
		var conf *tls.Config
		if certs != nil && o.webhooksTLS {
			conf = server.ServerTLS(certs, d.log)
		}
		ports = append(ports, server.Port{
			Name: "webhooks", Address: o.webhooks, TLS: conf,
			Handler: d.traces.Tracer().Handler(server.NewWebhooks(server.Webhooks{
				Secret:  process.WebhookSecrets(o.webhookSecrets, d.log),
				Trigger: func(string) { d.called() },
				Source:  d.sources.Hook, Sourced: d.calledBy,
			}), process.WebhookRoutes),
		})
	}
	return ports, nil
}

// join finds the other replicas: their market, and who of them decides.
func (o *runOptions) join(ctx context.Context, d *daemon) error {
	identity := process.IdentityOf(o.identity)
	var err error
	d.shared, err = o.store.Open(ctx, process.StoreOptions{
		Market: d.market, Identity: identity, Fleet: d.fleet, Agents: o.agents, Connections: d.connections, Pushes: o.pushes.Unshown, Pushed: o.pushes.Elsewhere, Holds: o.pushes.Holds, Held: o.pushes.HeldElsewhere, Observer: d.metrics, Log: d.log,
		Observed:   func(replica, cluster string, report wire.Observed) { _ = d.delivery.Told(replica, cluster, report) }, // who does not deliver there needs nothing of it
		Unobserved: func(cluster string) { d.delivery.Forgotten(cluster) }, News: d.loop.Reread, Webhook: d.news,
		Read: func() bool { return d.useful() == nil }, RemoteOut: d.loop.RemoteOut,
		Decides: func() bool { return d.election.Leads() },
	})
	if err != nil {
		return asUsage(err)
	}
	if shared, ok := d.shared.Store.(*store.Shared); ok {
		d.delivery.Join(shared, d.shared.Replica)
		d.observer.Each(func() { shared.Head(d.loop.Head(), d.election.Leads()) })
	}
	if d.shared.Config == nil || o.shadow { // a shadow must not keep others from deciding
		return nil
	}
	changed := d.loop.Wake
	if _, memory := d.shared.Store.(*store.Memory); memory { // only who decides hears anybody
		d.market.Cut()
		changed = func() {
			if d.election.Leads() {
				d.market.Listen()
			} else {
				d.market.Cut()
			}
			d.loop.Wake()
		}
	}
	fit := process.Fitness{Clock: d.clock.Err, Read: d.loop.HasRead, RemoteOut: d.loop.RemoteOut, Store: d.shared.Store}
	d.election = &process.Election{
		Config: d.shared.Config, Namespace: d.shared.Namespace, Identity: d.shared.Replica,
		Fit: fit.Err, Cut: fit.Cut, Past: process.NewPast(o.stateDir, d.state, o.streams.Now), Changed: changed, Log: d.log,
	}
	d.observer.Each(func() {
		if head, err := tree.ParseHash(d.loop.Head()); err == nil {
			if c, err := writers.Newest(d.repo, head); err == nil {
				d.election.Wrote(c.Trailer(writers.ReplicaTrailer), c.When())
			}
		}
	})
	return nil
}

// asUsage is a mistake of the command line as one, and any other error as it is.
func asUsage(err error) error {
	var wrong *process.UsageError
	if errors.As(err, &wrong) {
		return usagef("%s", wrong.Message)
	}
	return err
}

// broker decides on what clusters ask for, or hands it to the replica that does.
func (d *daemon) broker(certs *pki.Files) server.Broker {
	shared, ok := d.shared.Store.(*store.Shared)
	if !ok || d.election == nil {
		return d.loop
	}
	return &process.Broker{Decider: d.loop, Election: d.election, Address: shared.Address, Files: certs, Replica: d.shared.Replica, Life: d.shared.Life}
}

// storeUp is the check of /readyz.
func (d *daemon) storeUp() error {
	if st := d.shared.Store.Status(); st.Cut != "" {
		return fmt.Errorf("the market's store cannot be used since %s: %s", st.Since.UTC().Format(time.RFC3339), st.Cut)
	}
	return nil
}

// useful is the check of /readyz/agents that this replica knows the fleet's clusters: one
// that does not refuses them all, for a time that others would not count as an outage.
func (d *daemon) useful() error {
	if d.loop.View().Fleet == nil {
		return errors.New("the fleet repo has not been read yet")
	}
	return nil
}

// inFleet says which clusters are in the fleet, or have contracts, or a file that cannot
// be read; nil while the inputs cannot.
func (d *daemon) inFleet() func(cluster string) bool {
	v := d.loop.View()
	if v.Fleet == nil || v.Trouble != "" || len(v.Fleet.NotRead) > 0 {
		return nil
	}
	return func(cluster string) bool {
		return v.Fleet.Clusters[cluster] != nil || len(v.Contracts.HeldBy(cluster)) > 0 || len(v.Contracts.Consumer(cluster)) > 0 ||
			slices.ContainsFunc(v.Fleet.Frozen, func(z model.Freeze) bool { return z.Cluster == cluster || z.Path == "/" })
	}
}

// connections are those of agents.
func (d *daemon) connections() int {
	if s := d.servers.Load(); s != nil {
		return s.Connections("agents")
	}
	return 0
}

// storeTakes is the check of /readyz that the store takes what is written.
func (d *daemon) storeTakes() error { return d.shared.Store.Status().Err() }

// called follows a webhook: the repository or a pull request has news, which every replica
// learns: one of them decides and speaks to people.
func (d *daemon) called() {
	if shared, ok := d.shared.Store.(*store.Shared); ok {
		shared.Called()
	}
	d.news()
}

// news follows a webhook of any replica.
func (d *daemon) news() {
	d.loop.Reread()
	if d.reviews != nil {
		d.reviews.Wake()
	}
}

// calledBy follows a webhook of a source: its repository or a pull request has news. Who
// decides, where that is another replica, finds it at its next poll: were all told, one
// tenant's webhooks would have the forges of all be asked.
func (d *daemon) calledBy(source string) {
	d.sources.Wake(source)
	if d.theirs != nil {
		d.theirs.Wake(source)
	}
}

// revoke puts the inputs' list of revoked certificates in force and cuts the
// connections it names.
func (d *daemon) revoke(crl []byte) error {
	if d.certs == nil {
		return nil
	}
	m, err := d.certs.Load()
	if err != nil {
		d.log.Error("certificates changed and cannot be used; the former stay in force", "error", err)
	}
	before := d.revocations.Len()
	cut, err := d.revocations.Set(crl, m.CA, d.now())
	if err != nil {
		return err
	}
	if n := d.revocations.Len(); n != before || cut > 0 {
		d.log.Info("certificates are revoked", "certificates", n, "connectionsCut", cut)
	}
	if why := d.revocations.Overdue(d.now()); why != "" {
		d.log.Warn("the list of revoked certificates is old; it stays in force", "why", why)
	}
	return nil
}

// notEnrolled says what becomes of a cluster that is not in the fleet. A daemon
// that has read nothing yet knows nobody, which must not look like a refusal.
func (d *daemon) notEnrolled(cluster, role string) *wire.Refusal {
	if d.loop.View().Fleet == nil {
		return &wire.Refusal{Status: http.StatusServiceUnavailable, RetryAfter: time.Second, Body: wire.Error{
			Error: "the daemon has just started and has not read the fleet repo yet; try again", Reason: wire.ReasonUnavailable,
		}}
	}
	return d.enroller.admit(cluster, role)
}

// enrolled reports whether a cluster may report: it must stand in the fleet
// repo. Before the first round nobody is known, and agents try again.
func (d *daemon) enrolled(cluster string) bool {
	v := d.loop.View()
	return v.Fleet != nil && v.Fleet.Clusters[cluster] != nil
}
