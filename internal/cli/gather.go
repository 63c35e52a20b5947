package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/cli/top"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// worldFlags are the flags of commands that plan or look at the market.
type worldFlags struct {
	sourceFlags
	market   string
	certPath string
	when     string
	looked   *ledgerSeen // nil: nobody asks
}

func (f *worldFlags) register(fs *pflag.FlagSet) {
	f.sourceFlags.register(fs)
	fs.StringVar(&f.market, "market", "", "what is free: a YAML stream of Flavors, a CSV file, or the URL of a daemon's /market")
	fs.StringVar(&f.certPath, "cert-path", "", "directory with tls.crt, tls.key and ca.crt, for an https --market")
	fs.StringVar(&f.when, "at", "", "look as if it were this time (RFC 3339)")
}

// gathered is everything a command knows: inputs, ledger and market.
type gathered struct {
	src      *source
	fleet    *fleet.Fleet
	ledger   *ledger.Ledger
	books    ledger.Books
	snapshot *market.Snapshot
	offers   []*model.Offer
	now      v1alpha1.Time
	// market that --market brought; it joins the flavors of the repo.
	market offers
}

// gather reads inputs, ledger and market.
func (f *worldFlags) gather(ctx context.Context, src *source, s Streams) (*gathered, error) {
	at, err := parseAt(f.when, s.Now())
	if err != nil {
		return nil, err
	}
	g := &gathered{src: src, now: v1alpha1.TimeOf(at)}
	if g.fleet, err = src.readFleet(ctx); err != nil {
		return nil, err
	}
	if err := src.sayUnverified(ctx, g.fleet, s); err != nil {
		return nil, err
	}
	if g.ledger, err = readLedger(ctx, src, g.fleet, s); err != nil {
		return nil, err
	}
	if f.looked != nil {
		*f.looked = src.seen(g.fleet.Policy.WriteBack.Branch)
	}
	if g.market, err = readMarket(ctx, f.market, f.certPath); err != nil {
		return nil, err
	}
	for _, text := range market.Unreported(g.fleet.Flavors, g.market.flavors) {
		fmt.Fprintf(s.Err, "fleetbroker: warning: %s\n", escape.Line(text))
	}
	return g, g.value()
}

// at is the same with the inputs of another tree.
func (g *gathered) at(ctx context.Context, t tree.Tree) (*gathered, error) {
	out := *g
	var err error
	if out.fleet, err = g.src.fleetAt(ctx, t, nil); err != nil {
		return nil, fmt.Errorf("read the inputs at the base: %w", err)
	}
	return &out, out.value()
}

// value prices the offers by the fleet's policy.
func (g *gathered) value() error {
	var err error
	if g.books, err = ledger.BooksOf(g.fleet.Policy); err != nil {
		return fmt.Errorf("read the fleet's currency and timezone: %w", err)
	}
	g.snapshot = offline(g.fleet, g.market, g.now)
	g.offers = world.Offers(g.snapshot, g.ledger)
	for i := range g.offers {
		g.offers[i] = stated(g.offers[i])
	}
	return nil
}

// told reports whether a running daemon told of a flavor, and not a file.
func (g *gathered) told(f *v1alpha1.Flavor) bool {
	return g.market.tree != "" && slices.ContainsFunc(g.market.flavors, func(o *v1alpha1.Flavor) bool { return o.Ref() == f.Ref() })
}

// stated is an offer with what a daemon's market says of a provider without
// reports.
func stated(o *model.Offer) *model.Offer {
	state, since, graceEnds := market.StateOf(o.Flavor)
	if state == model.Fresh {
		return o
	}
	as := *o
	as.State, as.Since, as.GraceEnds, as.Static = state, since, graceEnds, false
	return &as
}

// shown is what was gathered as the dashboard's pages are made of it, without a daemon;
// at is the ledger's commit.
func (g *gathered) shown(at tree.Hash) *view.Snapshot {
	w := g.world()
	return top.Snapshot(view.Snapshot{Ledger: at, Fleet: g.fleet, Contracts: g.ledger, World: &w, Plan: &planner.Plan{}})
}

// world is the planner's.
func (g *gathered) world() planner.World {
	w := world.Build(world.Input{
		Now: g.now, Fleet: g.fleet, Inputs: g.src.commitText(), Ledger: g.ledger, Market: g.snapshot,
	})
	w.Offers = g.offers
	if g.market.tree != "" {
		w.Market = g.market.tree
	}
	if len(g.market.clusters) > 0 {
		w.Clusters = withClusters(g.fleet, g.market)
	}
	return w
}

// meta is what the report says of the inputs.
func (g *gathered) meta(ctx context.Context) report.Meta {
	return report.Meta{Fleet: g.fleet.Name, Branch: g.src.branch, Changed: g.src.changed && !g.src.commit.IsZero(), Errors: problemsOf(g.fleet), Trust: g.trusted(ctx).head(), Signatures: g.signatures()}
}

// readLedger reads the contracts. Where the ledger's branch is not there, there
// are none, and in a clone that may be a mistake worth a word.
func readLedger(ctx context.Context, src *source, f *fleet.Fleet, s Streams) (*ledger.Ledger, error) {
	branch := f.Policy.WriteBack.Branch
	t, found, err := src.ledger(branch)
	if err != nil {
		return nil, err
	}
	if !found {
		if src.cloned() {
			fmt.Fprintf(s.Err, "fleetbroker: no branch %s here: going on as if nothing were reserved\nhint: %s\n", branch, watching.Command(src.remote(), branch))
		}
		return ledger.Empty(), nil
	}
	l, problems, err := ledger.Read(ctx, t, nil)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of %s: %w", src.where, err)
	}
	if len(problems) > 0 {
		errs := make([]error, len(problems))
		for i, p := range problems {
			errs[i] = p
		}
		hint := "restore these files from the ledger branch's history; nothing can be decided without them"
		if src.repo == nil {
			hint = "a directory without git has its ledger in contracts/: take away what no daemon wrote there, or name a clone of the fleet repo"
		}
		return nil, hinted(fmt.Errorf("the ledger of %s cannot be read whole: %w", src.where, errors.Join(errs...)), hint)
	}
	return l, nil
}

// perHour heads a column of hourly costs.
func (g *gathered) perHour() string { return g.fleet.Policy.Currency + "/H" }

// facts are what lists and pages are computed from.
func (g *gathered) facts() *view.Facts {
	return view.New(g.fleet, g.ledger, g.books, g.offers, g.now)
}

func spentText(f *view.Facts, t *tables.Table, tenant string) any {
	d, err := f.Spent(tenant)
	if err != nil {
		return "no rate"
	}
	return t.Money(d)
}
