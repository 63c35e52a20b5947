package bench

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// daemon is a fleetbroker in this process, joined as its main does.
type daemon struct {
	*reconciler.Reconciler
	market *market.Market
	repo   *gitrepo.Repo
	// committed is what write-backs took.
	committed []time.Duration
}

// CommitDone implements gitrepo.Observer.
func (d *daemon) CommitDone(took time.Duration, _ int, outcome string) {
	if outcome == "committed" {
		d.committed = append(d.committed, took)
	}
}

// PushConflict implements gitrepo.Observer.
func (*daemon) PushConflict() {}

// LocalTrouble implements gitrepo.Observer.
func (*daemon) LocalTrouble(error) {}

func start(tb testing.TB, p *place) *daemon {
	tb.Helper()
	d := &daemon{}
	remote, err := gitrepo.Dial(p.git.URL(repo), gitrepo.Auth{})
	if err != nil {
		tb.Fatal(err)
	}
	r, err := gitrepo.Open(tb.Context(), remote, gitrepo.Options{Dir: tb.TempDir(), Inputs: gen.InputsBranch, Ledger: gen.LedgerBranch, Observer: d})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Close() })
	d.repo = r
	d.market = market.New(market.Options{Now: time.Now})
	deliverer := delivery.New(delivery.Options{Access: access.Kubeconfigs{Dir: tb.TempDir()}, Confirm: nil})
	tb.Cleanup(deliverer.Close)
	d.Reconciler = reconciler.New(reconciler.Options{Repo: r, Ledger: gen.LedgerBranch, Market: d.market, Delivery: deliverer, Poll: time.Hour})
	return d
}

// round makes one; settle makes rounds until one has nothing to do.
func (d *daemon) round(tb testing.TB) reconciler.Outcome {
	tb.Helper()
	out, err := d.Round(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func (d *daemon) settle(tb testing.TB) (commits int) {
	tb.Helper()
	for range 20 {
		out := d.round(tb)
		commits += len(out.Committed)
		if out.Plan == nil {
			return commits
		}
	}
	tb.Fatal("20 rounds did not come to rest")
	return commits
}

// report is news of the market: a provider that nobody buys from grows.
func (d *daemon) report(tb testing.TB, n int) {
	tb.Helper()
	f := v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "cpu", Namespace: "reporter"},
		Spec:     v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(int64(1000 * (n + 1)))}},
	}
	if err := d.market.Report("reporter", wire.Generation{Epoch: 1, N: uint64(n + 1)}, []v1alpha1.Flavor{f}, true); err != nil {
		tb.Fatal(err)
	}
}
