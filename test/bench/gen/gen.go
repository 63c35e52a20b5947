package gen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// The branches of a generated fleet.
const (
	InputsBranch = "main"
	LedgerBranch = "ledger"
)

// Who commits: people to the inputs, the daemon to the ledger.
const (
	people = "Ada L. <ada@example.org>"
	broker = "fleetbroker <fleetbroker@example.org>"
)

// Options say how large a fleet is.
type Options struct {
	// Tenants, and how many intents each has.
	Tenants, Intents int
	// Held intents of each tenant have a contract, Waiting ones are queued
	// because nothing fits; the rest is suspended.
	Held, Waiting int
	// Providers, and how many flavors each offers, as files under flavors/.
	Providers, Flavors int
	// Consumers of the fleet; tenants take turns.
	Consumers int
	// Delivery of the consumers, as in fleet.yaml; "none" leaves clusters alone.
	Delivery string
	// Now is when everything was committed.
	Now time.Time
}

// Fleet is a generated fleet repo.
type Fleet struct {
	Options
	// Files of the inputs, by path.
	Files map[string][]byte
	// Inputs and Ledger are the heads.
	Inputs, Ledger string
}

// Make writes the fleet into a bare repository, which is made.
func Make(ctx context.Context, dir string, o Options) (*Fleet, error) {
	f := &Fleet{Options: o, Files: o.Inputs()}
	if err := env.InitBare(ctx, dir); err != nil {
		return nil, err
	}
	when := o.Now.Unix()
	var err error
	if f.Inputs, err = Import(ctx, dir, Commit{Branch: InputsBranch, By: people, When: when, Message: "Set the fleet up", Files: f.Files}); err != nil {
		return nil, err
	}
	plan, err := f.plan(ctx)
	if err != nil {
		return nil, err
	}
	// Without a rendering's number the daemon would take the manifests for those of an older
	// program, and render all of them again at its start.
	message := fmt.Sprintf("%d placed\n\nInputs: %s\nPlan: sha256:0\nNow: %s\nRenderer: %d\n", plan.placed, f.Inputs, o.Now.UTC().Format(time.RFC3339), manifests.Renderer)
	f.Ledger, err = Import(ctx, dir, Commit{Branch: LedgerBranch, By: broker, When: when, Message: message, Files: plan.files})
	return f, err
}

// Open finds a fleet that Make has made.
func Open(ctx context.Context, dir string, o Options) (*Fleet, error) {
	f := &Fleet{Options: o, Files: o.Inputs()}
	for branch, head := range map[string]*string{InputsBranch: &f.Inputs, LedgerBranch: &f.Ledger} {
		var err error
		if *head, err = env.Git(ctx, dir, "rev-parse", "--verify", "refs/heads/"+branch); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// together is how many intents are planned at once: reading and planning a million
// takes more memory than a daemon that keeps them.
const together = 100_000

// plan decides about the fleet as a daemon would at its first rounds, each about some of
// the tenants and of the providers, and renders what it would commit.
func (f *Fleet) plan(ctx context.Context) (*planned, error) {
	out := &planned{files: map[string][]byte{}, clusters: map[string]*v1alpha1.Cluster{}}
	parts := (f.Tenants*f.Intents + together - 1) / together
	for part := range parts {
		if err := f.planPart(ctx, out, part, parts); err != nil {
			return nil, err
		}
	}
	rendered, err := manifests.All(manifests.NewIndex(out.contracts), out.clusters)
	if err != nil {
		return nil, err
	}
	if len(rendered.Problems) > 0 {
		return nil, errors.New("generated manifests: " + rendered.Problems[0].String())
	}
	maps.Copy(out.files, rendered.Files)
	return out, nil
}

// planned is what a daemon would commit.
type planned struct {
	placed    int
	contracts []*v1alpha1.Contract
	clusters  map[string]*v1alpha1.Cluster
	files     map[string][]byte
}

// planPart adds to what is planned one of so many parts of the fleet.
func (f *Fleet) planPart(ctx context.Context, out *planned, part, parts int) error {
	read, err := fleet.NewReader().Read(ctx, tree.NewMemory().Build(f.part(part, parts)), nil)
	if err != nil {
		return err
	}
	if len(read.Diagnostics) > 0 {
		return fmt.Errorf("generated inputs are wrong: %s", read.Diagnostics[0])
	}
	plan := planner.Decide(world.Build(world.Input{
		Now: v1alpha1.TimeOf(f.Now), Fleet: read, Inputs: f.Inputs, Ledger: ledger.Empty(), Market: Market(read, f.Now).Snapshot(),
		Author: func(*model.Intent) (string, string) { return f.Inputs, people },
	}))
	first, last := share(f.Tenants, part, parts)
	if got, want := plan.Summary()[planner.Place], (last-first)*f.Held; got != want {
		return fmt.Errorf("generated fleet: %d of %d intents found a place: %v", got, want, plan.Summary())
	}
	changes := plan.LedgerChanges()
	files, _, err := changes.Files()
	if err != nil {
		return err
	}
	out.placed += len(plan.Contracts)
	out.contracts = slices.AppendSeq(out.contracts, ledger.Empty().With(changes).Contracts())
	maps.Copy(out.clusters, read.Clusters)
	maps.Copy(out.files, files)
	return nil
}

// part are the inputs of one of so many parts.
func (f *Fleet) part(part, parts int) map[string][]byte {
	if parts == 1 {
		return f.Files
	}
	others := map[string]bool{}
	except := func(name func(int) string, n int) {
		first, last := share(n, part, parts)
		for i := range n {
			if i < first || i >= last {
				others[name(i)] = true
			}
		}
	}
	except(TenantName, f.Tenants)
	except(provider, f.Providers)
	out := map[string][]byte{}
	for path, content := range f.Files {
		_, of, _ := strings.Cut(path, "/") // "" of fleet.yaml
		of, _, _ = strings.Cut(of, "/")
		if !others[strings.TrimSuffix(of, ".yaml")] {
			out[path] = content
		}
	}
	return out
}

// share is which of n things one of so many parts has.
func share(n, part, parts int) (first, last int) { return n * part / parts, n * (part + 1) / parts }

// Market is one that knows what the inputs say and has no agents.
func Market(f *fleet.Fleet, now time.Time) *market.Market {
	m := market.New(market.Options{Now: func() time.Time { return now }})
	m.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors, Prices: f.Prices})
	return m
}
