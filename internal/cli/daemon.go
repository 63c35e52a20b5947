package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/logs"
	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/observing"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access/renew"
	"github.com/fleetbroker/fleetbroker/internal/delivery/spread"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/githubapp"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/clock"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews/theirs"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/simulate/handed"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/sources"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/internal/tracing/otlp"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// repoFlags say where a fleet repo is and how to reach and sign for it. They
// hold references to secrets, never secrets.
type repoFlags struct {
	url, stateDir  string
	inputs, ledger string
	auth           gitrepo.Auth
	signingKey     string
	signingPass    string
	named          string // the ledger branch that fleet.yaml names, once it is known
	bounds         boundsFlags
	pushes         *pushbudget.Budget // nil: pushes have no limit
}

func (f *repoFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "repo", "", "URL of the fleet repo: https, ssh, or a path (required)")
	fs.StringVar(&f.stateDir, "state-dir", "", "directory for the local copy and the accepted heads; empty keeps them in memory")
	fs.StringVar(&f.inputs, "inputs", "main", "branch that people write")
	fs.StringVar(&f.ledger, "ledger", "", "branch that the daemon writes (default: writeBack.branch of fleet.yaml)")
	fs.StringVar(&f.auth.User, "git-user", "", "user for git over https (default: the URL's)")
	fs.StringVar(&f.auth.PasswordFile, "git-password-file", "", "file with the password or access token for git over https")
	fs.StringVar(&f.auth.BearerFile, "git-bearer-file", "", "file with a bearer token for git over https")
	fs.StringVar(&f.auth.CAFile, "git-ca-file", "", "further certificate authorities for git over https")
	fs.StringVar(&f.auth.SSHKeyFile, "git-ssh-key", "", "private key for git over ssh")
	fs.StringVar(&f.auth.KnownHostsFile, "git-known-hosts", "", "host keys for git over ssh (default: ~/.ssh/known_hosts)")
	fs.StringVar(&f.signingKey, "signing-key", "", "OpenSSH private key that signs the daemon's commits")
	fs.StringVar(&f.signingPass, "signing-key-passphrase-file", "", "file with the passphrase of --signing-key")
	f.bounds.register(fs)
}

// open opens the repository. The ledger branch, when no flag names it, is read
// from fleet.yaml and returned, so that a change of it can be noticed.
func (f *repoFlags) open(ctx context.Context, log *slog.Logger, obs gitrepo.Observer, state *statefile.Health) (repo *gitrepo.Repo, ledger string, signer gitrepo.Signer, err error) {
	if f.url == "" {
		return nil, "", nil, usagef("--repo is required: the URL of the fleet repo")
	}
	bounds, err := f.bounds.read()
	if err != nil {
		return nil, "", nil, err
	}
	remote, err := gitrepo.Dial(f.url, f.auth)
	if err != nil {
		return nil, "", nil, err
	}
	if f.signingKey != "" {
		if signer, err = gitrepo.SSHSigner(f.signingKey, f.signingPass); err != nil {
			return nil, "", nil, err
		}
	}
	opts := gitrepo.Options{Dir: f.stateDir, State: state, Inputs: f.inputs, Ledger: f.ledger, Identity: gitrepo.Identity{Signer: signer}, Observer: obs, Bounds: bounds}
	if opts.Ledger == "" && f.named != "" {
		opts.Ledger, ledger = f.named, f.named
	}
	if opts.Ledger == "" {
		if opts.Ledger, err = ledgerBranch(ctx, remote, opts); err != nil {
			return nil, "", nil, err
		}
		ledger = opts.Ledger
	}
	if ledger != "" {
		log.Info("the ledger branch is the one that fleet.yaml names", "branch", ledger)
	}
	repo, err = gitrepo.Open(ctx, f.pushes.Remote(remote, opts.Ledger), opts)
	return repo, ledger, signer, err
}

// daemonFlags are those of `run` and `reconcile`.
type daemonFlags struct {
	repoFlags
	forge       forgeFlags
	app         githubapp.Flags
	root        daemonRoot
	kubeconfigs access.Kubeconfigs
	sources     sources.Flags
	tracing     otlp.Flags
	identity    string
	poll        time.Duration
	silence     time.Duration
	shadow      bool
	childMemory string
	childCPU    time.Duration
	checkEvery  uint64
	checkMemory string
	logFormat   string
	verbose     bool
}

func (f *daemonFlags) register(fs *pflag.FlagSet) {
	f.repoFlags.register(fs)
	f.forge.registerReviews(fs)
	f.app.Register(fs)
	f.root.register(fs)
	f.sources.Register(fs)
	f.tracing.Register(fs)
	f.kubeconfigs.Register(fs, "directory with <cluster>.kubeconfig files of the consumer clusters")
	fs.DurationVar(&f.poll, "poll-interval", 30*time.Second, "how often the fleet repo is asked when no webhook comes")
	fs.DurationVar(&f.silence, "agent-silence", 3*market.Interval, "how long an agent may not report before its cluster sells nothing new, where safety.silence of fleet.yaml says nothing")
	fs.StringVar(&f.identity, "identity", "fleetbroker", "name of this daemon next to others on the same host, in the clusters' Leases")
	fs.StringVar(&f.childMemory, "child-memory", "256Mi", "memory of the child process that builds kustomizations and tries suspect inputs alone, of which it takes some 80Mi by itself")
	fs.DurationVar(&f.childCPU, "child-cpu", 10*time.Second, "processor time that the child process may take for one piece")
	fs.Uint64Var(&f.checkEvery, "plan-check-every", 1000, "one in so many plans is made from nothing as well and compared; 0 checks none")
	fs.StringVar(&f.checkMemory, "plan-check-memory", "1Gi", "memory that such a check may allocate; one that would need more is left out and counted")
	fs.BoolVar(&f.shadow, "shadow", false, "plan and report, but write nothing, to repo or clusters, whatever fleet.yaml says")
	fs.StringVar(&f.logFormat, "log-format", "text", "form of the log on stderr: text or json")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
}

// logger is the daemon's log, and that of the libraries it uses.
func (f *daemonFlags) logger(to Streams) (*slog.Logger, error) {
	if err := oneOf("log-format", f.logFormat, "text", "json"); err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: escape.Attr}
	if f.verbose {
		opts.Level = slog.LevelDebug
	}
	var handler slog.Handler = slog.NewTextHandler(to.Err, opts)
	if f.logFormat == "json" {
		handler = slog.NewJSONHandler(to.Err, opts)
	}
	handler = logs.Handler(tracing.Logs(handler))
	log := slog.New(handler)
	if to.Process {
		klog.SetSlogLogger(log)
		ctrllog.SetLogger(logr.FromSlogHandler(handler))
	}
	return log, nil
}

// daemon is the parts of a running fleetbroker, joined.
type daemon struct {
	log         *slog.Logger
	repo        *gitrepo.Repo
	root        *trust.Root // nil for an unsigned fleet
	forge       forge.Forge // nil where none is configured
	market      *market.Market
	shared      *process.Shared   // where agents' reports go, and other replicas are; nil where none come
	election    *process.Election // of who decides; nil where nobody else may
	delivery    *spread.Deliverer
	loop        *reconciler.Reconciler
	metrics     *server.Metrics
	now         func() time.Time
	shadow      bool
	enroller    *enroller
	reviews     *reviews.Reviews // nil where no forge is configured
	theirs      *theirs.Set      // nil in a shadow
	certs       *pki.Files       // nil where no agents are served
	servers     atomic.Pointer[server.Servers]
	secrets     access.Secrets
	access      access.Kubeconfigs
	sources     *sources.Keeper
	jobs        *jobs.Jobs      // nil but in run
	simulations *handed.Planner // of these jobs and of other replicas'
	observer    *observing.Observer
	traces      *otlp.Tracing // nil where none are asked for
	revocations server.Revocations
	clock       *clock.Check
	state       *statefile.Health
	watch       *poison.Watch
	left        atomic.Bool // a part was left computing at the end
	fleet       string      // its id, "" for none
}

// build joins the rooms. change may adjust the loop's options.
func (f *daemonFlags) build(ctx context.Context, log *slog.Logger, now func() time.Time, change func(*reconciler.Options)) (*daemon, error) {
	root, err := f.root.read(log)
	if err != nil {
		return nil, err
	}
	if err := f.boundChild(); err != nil {
		return nil, err
	}
	check, err := f.planCheck()
	if err != nil {
		return nil, err
	}
	d := &daemon{log: log, metrics: server.NewMetrics(), now: now, shadow: f.shadow, state: statefile.NewHealth(log), fleet: root.ID()}
	obs := &observing.Observer{Metrics: d.metrics, Log: log}
	d.metrics.PlannerCheckLimit(check.Budget)
	d.watch = poison.Open(f.stateDir, version.Text(), now(), log)
	d.clock = clock.New(now, nil)
	f.auth.Date = func(server, asked, answered time.Time) { d.clock.Heard("git server", server, answered.Sub(asked)) }
	kind := cmp.Or(forge.Kind(f.forge.kind), forge.KindOf(f.url))
	f.pushes = pushbudget.New(pushbudget.Options{Default: pushbudget.DefaultOf(string(kind)), Now: now, Log: log})
	f.auth.Answer, f.auth.Another = f.pushes.Answered, f.pushes.Another
	if err := f.asApp(); err != nil {
		return nil, err
	}
	repo, ledger, signer, err := f.open(ctx, log, obs, d.state)
	if err != nil {
		return nil, err
	}
	if root == nil {
		if err := askedBy(ctx, repo); err != nil {
			return nil, errors.Join(err, repo.Close())
		}
	}
	repo.Follow(trust.Follow(f.root.file, root, now, log))
	d.repo, d.root, d.observer = repo, root, obs
	if d.forge, err = f.forge.open(f.url); err != nil {
		return nil, err
	}
	d.market = market.New(market.Options{Now: now, Silence: f.silence})
	if d.secrets, err = ownSecrets(); err != nil {
		return nil, err
	}
	d.access = access.Kubeconfigs{Dir: f.kubeconfigs.Dir, Secrets: d.secrets, Programs: f.kubeconfigs.Programs, Tokens: &renew.Keeper{Now: now, Log: log}}
	if f.stateDir != "" {
		d.access.Tokens.Dir = filepath.Join(f.stateDir, "tokens")
	}
	identity := process.IdentityOf(f.identity)
	if d.traces, err = f.tracing.Open(ctx, "fleetbroker", identity, log); err != nil {
		return nil, usagef("%w", err)
	}
	d.delivery = spread.New(delivery.Options{
		Access:   d.access,
		Confirm:  func(ctx context.Context, consumer string) (tree.Hash, error) { return d.loop.Confirm(ctx, consumer) },
		Fleet:    d.fleet,
		Identity: identity, Tracer: d.traces.Tracer(),
		Log: log,
	})
	opts := reconciler.Options{
		Repo: d.repo, Ledger: ledger, Root: root, Signer: signer, Market: d.market, Delivery: d.delivery, Now: now, Clock: d.clock, Pushes: f.pushes, Poll: f.poll,
		Leads: func() bool { return d.election.Leads() }, Replica: writers.Operator, Shadow: f.shadow, Observer: obs, Check: check, Log: log, Watch: d.watch,
	}
	if d.forge != nil {
		opts.PullRequests = d.forge
	}
	if d.sources, err = f.sources.Open(f.stateDir, sources.Options{
		Credentials: sources.Credentials{Secrets: d.secrets}, KnownHosts: f.auth.KnownHostsFile, Root: root, Now: now, Log: log, Changed: func() { d.loop.Reread() }, Decides: func() bool { return d.election.Leads() },
	}); err != nil {
		return nil, err
	}
	opts.Sources = d.sources
	if change != nil {
		change(&opts)
	}
	opts.Tracer, opts.Traces = d.traces.Tracer(), traced.NewKeeper(d.traces.Tracer(), opts.Replica)
	d.observer.Traces = opts.Traces
	d.metrics.Traced(d.traces.Tracer())
	d.loop = reconciler.New(opts)
	return d, nil
}

// asApp has git and forge take the tokens of the GitHub App that the flags name.
func (f *daemonFlags) asApp() error {
	app, err := f.app.Open(f.forge.config, f.url)
	if err != nil || app == nil {
		return err
	}
	if f.auth.PasswordFile != "" || f.auth.BearerFile != "" || f.forge.config.TokenFile != "" {
		return usagef("--github-app-id takes the place of --git-password-file, --git-bearer-file and --forge-token-file: leave them out")
	}
	answered := f.auth.Answer
	f.auth.Answer = func(a *http.Response) { answered(a); app.Answer(a) }
	f.auth.User, f.auth.PasswordFile, f.auth.Read = githubapp.User, githubapp.File, app.Read
	if f.forge.kind != "" {
		f.forge.config.TokenFile, f.forge.config.Read, f.forge.config.Answer = githubapp.File, app.Read, app.Answer
	}
	return nil
}

// boundChild sets the bounds of the child process.
func (f *daemonFlags) boundChild() error {
	memory, err := v1alpha1.ParseAmount(v1alpha1.Memory, f.childMemory)
	if err != nil || memory.Int64() < 1<<20 {
		return usagef("--child-memory: %q is no size of at least 1Mi; write 256Mi", f.childMemory)
	}
	if f.childCPU < time.Second || f.childCPU > time.Hour {
		return usagef("--child-cpu: %s is not between 1s and 1h", f.childCPU)
	}
	child.SetDefault(child.Bounds{Memory: uint64(memory.Int64()), CPU: uint32(f.childCPU / time.Second)}) //nolint:gosec // both are bounded above
	return nil
}

// planCheck says when plans are checked.
func (f *daemonFlags) planCheck() (planning.Options, error) {
	memory, err := v1alpha1.ParseAmount(v1alpha1.Memory, f.checkMemory)
	if err != nil || memory.Int64() < 1<<20 {
		return planning.Options{}, usagef("--plan-check-memory: %q is no size of at least 1Mi; write 1Gi", f.checkMemory)
	}
	return planning.Options{Every: f.checkEvery, Budget: uint64(memory.Int64())}, nil //nolint:gosec // not negative
}

// ownSecrets reads Secrets of the namespace that the daemon runs in, for
// clusters whose file names one; nil outside of a cluster.
func ownSecrets() (access.Secrets, error) {
	config, namespace, err := process.OwnCluster()
	if err != nil || config == nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use this pod's ServiceAccount: %w", err)
	}
	return access.KubernetesSecrets{Client: client, Namespace: namespace}, nil
}

// close releases what build opened: clusters first, whose drift correction
// asks the repository.
func (d *daemon) close() {
	if d.jobs != nil {
		d.jobs.Close()
	}
	d.delivery.Close()
	if err := d.sources.Close(); err != nil {
		d.log.Warn("mirrors of sources were not removed", "error", err)
	}
	if err := d.repo.Close(); err != nil {
		d.log.Warn("the local copy was not closed cleanly", "error", err)
	}
	d.traces.Close()
}
