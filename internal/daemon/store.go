package daemon

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/kube"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// The kinds of store.
const (
	storeAuto       = "auto"
	storeMemory     = "memory"
	storeKubernetes = "kubernetes"
)

// StoreFlags say where the market lies that replicas share.
type StoreFlags struct {
	kind       string
	kubeconfig string
	namespace  string
	advertise  string
}

// Register adds the flags.
func (f *StoreFlags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.kind, "market-store", storeAuto, "where what agents report is kept: memory (one daemon alone), kubernetes (objects that all replicas share), or auto: kubernetes in a pod whose cluster has the definitions")
	fs.StringVar(&f.kubeconfig, "market-kubeconfig", "", "kubeconfig of the cluster with the market's objects and the Lease of who decides (default: the pod's own)")
	fs.StringVar(&f.namespace, "market-namespace", "", "namespace of the market's objects and of that Lease (default: the pod's own)")
	fs.StringVar(&f.advertise, "advertise-address", "", "host:port at which other replicas reach this one's port for agents; its certificate has the host (default: --agents-address where that names a host)")
}

// UsageError is a mistake in flags.
type UsageError struct{ Message string }

// Error implements error.
func (e *UsageError) Error() string { return e.Message }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Shared is where replicas find each other.
type Shared struct {
	// Store of what agents report.
	Store store.Store
	// Config and Namespace of the cluster that replicas share; nil: there are no others.
	Config    *rest.Config
	Namespace string
	// Replica is this one's name there, and Life another one with each start.
	Replica, Life string

	// fleet is the fleet's id, "" where it has none.
	fleet string
	// address at which other replicas reach this one's port for agents; hidden: they cannot.
	address string
	hidden  bool
	// installed says whether the cluster serves the market's objects; nil where nobody
	// waits for them.
	installed func(context.Context) (bool, error)
}

// Reachable is an error where other replicas live that cannot hand requests to this one.
func (s *Shared) Reachable() error {
	shared, ok := s.Store.(*store.Shared)
	if !ok || !s.hidden {
		return nil
	}
	if live, _ := shared.Live(); len(live) < 2 {
		return nil
	}
	return errors.New("the other replicas cannot hand requests to this one: give --advertise-address HOST:PORT of its port for agents, as install/broker/statefulset.yaml does")
}

// Peer judges daemons' certificates beside this one's own: an authority may sign daemons of
// several fleets. It is an error for one that is good for the address of no replica, or that
// is of another fleet than this daemon is or its own certificate names.
func (s *Shared) Peer(own *pki.Files) func(*x509.Certificate) error {
	return func(cert *x509.Certificate) error {
		m, err := own.Load()
		if m == nil {
			return fmt.Errorf("judge the certificate of another daemon: %w", err)
		}
		return s.peer(m.Pair.Leaf, cert)
	}
}

func (s *Shared) peer(own, cert *x509.Certificate) error {
	if err := pki.SameFleet(own, cert); err != nil {
		return err
	}
	if of, _ := pki.FleetOf(cert); of != "" && s.fleet != "" && of != s.fleet {
		return fmt.Errorf("the certificate of %s is of fleet %s, and this daemon is of fleet %s", cert.Subject.CommonName, of, s.fleet)
	}
	addresses := []string{s.address}
	if shared, ok := s.Store.(*store.Shared); ok {
		live, _ := shared.Live()
		for _, replica := range live {
			addresses = append(addresses, shared.Address(replica))
		}
	}
	for _, address := range addresses {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" && cert.VerifyHostname(host) == nil {
			return nil
		}
	}
	return fmt.Errorf("the certificate of %s is good for the address of no replica of this fleet: issue it with the hosts of --advertise-address", cert.Subject.CommonName)
}

// installedEvery is how often a daemon whose market lies in memory looks whether its
// cluster serves the objects by now.
const installedEvery = time.Minute

// Follow ends with an error when a market that lies in memory could lie in the cluster:
// replicas that start from then on share it, and this one would know nothing of what they
// are told. It ends without one with the context.
func (s *Shared) Follow(ctx context.Context) error {
	if s.installed == nil {
		return nil
	}
	for sleep(ctx, installedEvery); ctx.Err() == nil; sleep(ctx, installedEvery) {
		if there, err := s.installed(ctx); err == nil && there {
			return errors.New("the cluster serves the kinds of market.fleetbroker.io by now: this daemon has to start again, to share its market with other replicas")
		}
	}
	return nil
}

// StoreOptions are what a store needs of its daemon.
type StoreOptions struct {
	Market *market.Market
	// Identity of the daemon among others.
	Identity string
	// Fleet is the fleet's id, "" where it has none.
	Fleet string
	// Agents is the address of the agents' port, "" for none.
	Agents   string
	Observer store.Observer
	// Pushes is how many pushes this daemon has sent that the ledger does not show, and Pushed
	// is told how many another replica has.
	Pushes func() int64
	Pushed func(n int)
	// Holds is for how long the forge asks this daemon to be left alone, and Held is told
	// what it asked of another replica.
	Holds func() (reads, pushes time.Duration)
	Held  func(reads, pushes time.Duration)
	// Connections is how many agents' connections this daemon has.
	Connections func() int
	// Observed is told what another replica heard of a cluster, or sees there itself.
	Observed func(replica, cluster string, report wire.Observed)
	// Unobserved is called when what was seen of a cluster is deleted.
	Unobserved func(cluster string)
	// Read reports whether this daemon has read the fleet repo, and RemoteOut is for how long
	// that has not answered: agents are sent to replicas that know the fleet, and clusters
	// are delivered to by those that know the newest of it.
	Read      func() bool
	RemoteOut func() time.Duration
	// Decides reports whether this replica decides.
	Decides func() bool
	// News is called when another replica knows of news of the fleet repo.
	News func()
	// Webhook is called in place of News when a webhook told another replica.
	Webhook func()
	Log     *slog.Logger
}

// applyBase brings the kinds, and the right to read and write their objects.
const applyBase = "kubectl apply -k install/broker"

// Open is the store of a daemon. The error is a *UsageError where the flags are wrong.
func (f *StoreFlags) Open(ctx context.Context, o StoreOptions) (*Shared, error) {
	life := make([]byte, 8)
	_, _ = rand.Read(life) // it does not fail
	out := &Shared{Store: &store.Memory{Market: o.Market, Replica: o.Identity}, Replica: ReplicaName(o.Identity), Life: hex.EncodeToString(life), fleet: o.Fleet}
	switch f.kind {
	case storeAuto, storeKubernetes:
	case storeMemory:
		return out, nil
	default:
		return nil, usage("--market-store: %q: write %s, %s or %s", f.kind, storeAuto, storeMemory, storeKubernetes)
	}
	config, namespace, err := f.cluster()
	switch {
	case err != nil:
		return nil, err
	case config == nil && f.kind == storeKubernetes:
		return nil, usage("--market-store kubernetes: this is no pod of a cluster; give --market-kubeconfig and --market-namespace")
	case config == nil:
		return out, nil
	}
	out.Config, out.Namespace = config, namespace
	api, err := kube.New(config, namespace)
	if err != nil {
		return nil, err
	}
	// Where it cannot be asked it may be there: nobody is heard before it answers.
	switch there, err := api.Installed(ctx); {
	case err != nil:
		o.Log.Warn("the cluster does not say whether it has the market's objects; they are waited for", "error", err, "remedy", applyBase)
	case !there && f.kind == storeKubernetes:
		return nil, fmt.Errorf("the cluster does not serve the kinds of market.fleetbroker.io: %s", applyBase)
	case !there:
		out.Store, out.installed = &store.Memory{Market: o.Market, Replica: o.Identity, Decides: o.Decides}, api.Installed
		o.Log.Warn("the cluster does not serve the kinds of market.fleetbroker.io: the market is kept in memory, for one daemon alone", "remedy", applyBase)
		return out, nil
	}
	out.address = f.address(o.Agents)
	out.hidden = o.Agents != "" && out.address == ""
	out.Store = store.NewShared(store.Options{
		Serving: func() bool { return o.Agents != "" && o.Read() },
		Away:    func() bool { return !o.Read() || away(o.RemoteOut()) != nil },
		API:     api, Market: o.Market, Replica: out.Replica, Life: out.Life, Fleet: o.Fleet, Address: out.address, Observed: o.Observed, Unobserved: o.Unobserved, News: o.News, Webhook: o.Webhook, Connections: o.Connections, Pushes: o.Pushes, Pushed: o.Pushed, Holds: o.Holds, Held: o.Held,
		Observer: o.Observer, Log: o.Log, Now: time.Now, // only what passes on it counts
	})
	return out, nil
}

// cluster is where the objects lie; nil in no cluster.
func (f *StoreFlags) cluster() (*rest.Config, string, error) {
	if f.kubeconfig == "" {
		config, namespace, err := OwnCluster()
		if f.namespace != "" {
			namespace = f.namespace
		}
		return config, namespace, err
	}
	if f.namespace == "" {
		return nil, "", usage("--market-kubeconfig needs --market-namespace: the namespace of the market's objects")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("read --market-kubeconfig: %w", err)
	}
	config.Wrap(redirects.Refuse)
	return config, f.namespace, nil
}

// address is where other replicas reach this one, "" for nowhere.
func (f *StoreFlags) address(agents string) string {
	if f.advertise != "" || strings.HasPrefix(agents, ":") {
		return f.advertise
	}
	return agents
}

// inObjectName are runs of what no object's name has.
var inObjectName = regexp.MustCompile(`[^a-z0-9.-]+`)

// ReplicaName is a daemon's name as that of an object, and in its commits.
func ReplicaName(identity string) string {
	name := strings.Trim(inObjectName.ReplaceAllString(strings.ToLower(identity), "-"), "-.")
	if len(name) > 200 {
		name = strings.TrimRight(name[:200], "-.")
	}
	return name
}
