// Command fleet-agent runs in a cluster that offers capacity: it reports what
// its labelled nodes have, and what of it is taken, to every broker.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetbroker/fleetbroker/internal/agent"
	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/logs"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/completing"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/internal/tracing/otlp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleet-agent:", escape.Lines(err.Error()))
		os.Exit(1)
	}
}

// flags are the command line.
type flags struct {
	agent.Options
	kubeconfig, logLevel, logFormat string
	instructions                    time.Duration
	tracing                         otlp.Flags
}

func newCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "fleet-agent",
		Short: "Report what this cluster offers to the fleet's brokers",
		Long: `fleet-agent makes flavors of the nodes labelled fleetbroker.io/pool=<flavor> (or
node-role.fluidos.eu/resources=true) and reports them, with what is used and
held of them, to every broker. Run one in each cluster that offers capacity.`,
		Example: `  fleet-agent --cluster-id paris --broker-url https://broker.example.org:8443 \
    --broker-cert-path /etc/fleet-agent/certs`,
		Args:          cobra.NoArgs,
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	c.SetVersionTemplate(versionLine())
	c.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), versionLine()) },
	})
	set := c.Flags()
	set.StringVar(&f.Cluster, "cluster-id", "", "id of this cluster in the fleet, its certificate's common name")
	set.StringArrayVar(&f.Brokers, "broker-url", nil, "address of a broker, https://host:port; repeat it to report to several")
	set.StringVar(&f.Transport, "broker-transport", "http", "how to speak to brokers: http (grpc, of earlier versions, means the same)")
	set.StringVar(&f.CertDir, "broker-cert-path", "/etc/fleet-agent/certs", "directory with tls.crt, tls.key and ca.crt, read again when they change")
	set.DurationVar(&f.Interval, "advertisement-requeue-interval", 30*time.Second, "how often to report while nothing changes")
	set.StringVar(&f.Endpoint, "cluster-endpoint", "", "address of this cluster's API server as other clusters reach it, published for contracts and answers; default: the kubeconfig's server, none in a pod")
	set.DurationVar(&f.instructions, "instruction-poll-interval", 5*time.Second, "accepted for v1 agents that this one replaces: instructions are waited for, not polled")
	set.StringVar(&f.Enforce, "enforce", agent.EnforceAuto, `grant ResourceSlices of class fleetbroker exactly as the ledger says: auto (where Liqo is installed and RBAC allows it) or never`)
	set.BoolVar(&f.ReportNodes, "report-nodes", true, "report flavors with accelerators node by node, so that what one pod can have is known; labels offered nodes fleetbroker.io/node; false sells pools, whose GPUs may lie on nodes that are too small for a pod")
	set.StringVar(&f.LimitsEnforcement, "limits-enforcement", "", "level at which Liqo is installed to enforce limits here: None, Soft or Hard; reported until a Quota of Liqo's shows it; empty: unknown until then")
	set.DurationVar(&f.Patience, "denial-delay", enforce.DefaultPatience, "how long a slice that no contract stands for waits for one before it is denied")
	set.StringVar(&f.KubeconfigsDir, "kubeconfigs-dir", "", "where the cluster's file says delivery: agent: directory with <provider>.kubeconfig of the providers to peer with; empty: another account peers")
	set.StringSliceVar(&f.KubeconfigPrograms, "kubeconfig-programs", nil, "programs that kubeconfigs of --kubeconfigs-dir may run for credentials (exec), by absolute path, each with the arguments that it may have (* is any one); others are refused")
	set.StringVar(&f.TokensDir, "tokens-dir", "", "directory for renewed tokens of --kubeconfigs-dir; empty keeps them in memory, until the agent restarts")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of this cluster; default: the pod's own account, or $KUBECONFIG")
	set.StringVar(&f.HealthAddress, "health-probe-bind-address", "0", `address of /healthz and /readyz, such as ":8081"; "0" serves none`)
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", "0", `address of /metrics, such as "127.0.0.1:8080"; beyond loopback TLS, for tokens that the cluster reviews; "0" serves none`)
	set.StringVar(&f.WebhookAddress, "webhook-bind-address", "0", `address of the admission webhook, such as ":9443", where the cluster's file says admission: webhook; "0" serves none`)
	set.StringVar(&f.WebhookClientCA, "webhook-client-ca-file", "", "file with the authorities of one of which callers of the webhook, the API server, have to show a certificate; empty: none is asked for")
	set.StringVar(&f.WebhookConfiguration, "webhook-configuration", "", "MutatingWebhookConfiguration whose caBundle the agent writes")
	set.StringVar(&f.LeaseNamespace, "leader-election-namespace", "", "namespace of the Lease by which one of several replicas speaks for the cluster, and which keeps the ledger's number of its last instructions; empty: there is only this one, and after a restart it goes by the first number that a broker gives it")
	set.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.logFormat, "log-format", "text", "text or json")
	f.tracing.Register(set)
	for _, name := range []string{"cluster-id", "broker-url"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	completing.Apply(c, nil)
	return c
}

// versionLine is what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("fleet-agent %s %s %s\n", version.Text(), runtime.Version(), version.Platform())
}

func (f *flags) run(ctx context.Context) error {
	log, err := f.logger()
	if err != nil {
		return err
	}
	defer logs.Flush(log.Handler())
	slog.SetDefault(log)
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	f.Log = log
	if f.Config, err = f.restConfig(); err != nil {
		return err
	}
	if f.Endpoint == "" && !inPod(f.Config) {
		f.Endpoint = f.Config.Host
	}
	traces, err := f.tracing.Open(ctx, "fleet-agent", f.Cluster, log)
	if err != nil {
		return err
	}
	defer traces.Close()
	for _, c := range traces.Collectors("fleetbroker_agent_trace_spans_total") {
		metrics.Registry.MustRegister(c)
	}
	f.Tracer = traces.Tracer()
	return agent.Run(ctx, f.Options)
}

// inPod reports whether a configuration is that of a pod's own account, whose
// server has an address that means nothing elsewhere.
func inPod(config *rest.Config) bool {
	own, err := rest.InClusterConfig()
	return err == nil && own.Host == config.Host
}

func (f *flags) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: escape.Attr}
	switch f.logFormat {
	case "text":
		return slog.New(logs.Handler(tracing.Logs(slog.NewTextHandler(os.Stderr, options)))), nil
	case "json":
		return slog.New(logs.Handler(tracing.Logs(slog.NewJSONHandler(os.Stderr, options)))), nil
	}
	return nil, fmt.Errorf("--log-format %q: use text or json", f.logFormat)
}

func (f *flags) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster's API server: %w; give --kubeconfig, or run in the cluster", err)
	}
	config.UserAgent = "fleet-agent"
	return config, nil
}
