package quick

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/demo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/inmem"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

// daemon is the reconciler and what it needs, without ports for others.
type daemon struct {
	loop   *reconciler.Reconciler
	repo   *gitrepo.Repo
	market *shop
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu  sync.Mutex
	err error // why a part of it ended by itself
}

// startDaemon starts a daemon on a repository and clusters, and waits until it is ready.
func startDaemon(ctx context.Context, remote gitrepo.Remote, clusters *inmem.Clusters) (*daemon, error) {
	ctx, cancel := context.WithCancel(ctx)
	d := &daemon{cancel: cancel}
	var err error
	if d.repo, err = gitrepo.Open(ctx, remote, gitrepo.Options{
		Inputs: inputs, Ledger: demo.Ledger, Identity: gitrepo.Identity{Name: "fleetbroker", Email: "fleetbroker@example.org"},
	}); err != nil {
		cancel()
		return nil, err
	}
	if d.market, err = openShop(); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.loop = reconciler.New(reconciler.Options{Repo: d.repo, Ledger: demo.Ledger, Market: d.market.Market, Delivery: clusters})
	d.goes(ctx, d.market.serve)
	d.goes(ctx, d.loop.Run)
	d.goes(ctx, func(ctx context.Context) error { return clusters.Run(ctx, agents{d}) })
	d.goes(ctx, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-d.market.Changed():
				d.loop.Wake()
			}
		}
	})
	for d.loop.Ready() != nil {
		if err := d.failure(); err != nil {
			return d, err
		}
		select {
		case <-ctx.Done():
			return d, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return d, nil
}

// goes runs a part of the daemon until it is stopped.
func (d *daemon) goes(ctx context.Context, part func(context.Context) error) {
	d.group.Go(func() {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.err = errors.Join(d.err, err)
			d.mu.Unlock()
		}
	})
}

func (d *daemon) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// stop ends everything and waits for it.
func (d *daemon) stop() error {
	d.cancel()
	d.group.Wait()
	return d.repo.Close()
}

// agents are how the clusters meet the daemon.
type agents struct{ d *daemon }

var _ inmem.Daemon = agents{}

// Report implements inmem.Daemon.
func (a agents) Report(provider string, generation wire.Generation, flavors []v1alpha1.Flavor, honoured uint64) error {
	if err := a.d.market.Report(provider, generation, flavors, true); err != nil {
		return fmt.Errorf("report of %s: %w", provider, err)
	}
	a.d.market.SetHonoured(provider, honoured)
	return nil
}

// Instructions implements inmem.Daemon.
func (a agents) Instructions(provider string) wire.Instructions {
	in, _ := a.d.loop.Instructions(provider)
	return in
}

// Confirm implements inmem.Daemon.
func (a agents) Confirm(ctx context.Context, consumer string) (tree.Hash, error) {
	return a.d.loop.Confirm(ctx, consumer)
}

// Wake implements inmem.Daemon.
func (a agents) Wake() { a.d.loop.Wake() }

// shop is the market, and an address on this machine at which the commands see it as they
// would a daemon's.
type shop struct {
	*market.Market
	url    string
	listen net.Listener
}

func openShop() (*shop, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo's own commands: %w", err)
	}
	return &shop{Market: market.New(market.Options{}), url: "http://" + listen.Addr().String() + "/market", listen: listen}, nil
}

func (s *shop) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /market", s.answer)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer the demo's own commands: %w", err)
	}
	return nil
}

func (s *shop) answer(w http.ResponseWriter, _ *http.Request) {
	t, flavors, _ := s.Offers(market.Query{})
	w.Header().Set(wire.HeaderMarket, t.Root.String())
	w.Header().Set("Content-Type", "application/yaml")
	for i := range flavors {
		doc, err := yaml.Marshal(&flavors[i])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "---\n%s", doc) // who has gone is nobody to report to
	}
}
