package reconciler

import (
	"context"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Delivery brings manifests to consumer clusters and tells what is there.
type Delivery interface {
	// Deliver sets what each consumer shall have and returns at once.
	Deliver(map[string]delivery.Desired)
	// Observe is what the consumers say, and a number that grows with each change of it.
	Observe() (v1alpha1.ConsumerObservations, uint64)
}

// Observer is told what rounds do, for metrics. Methods return at once.
type Observer interface {
	// RoundDone reports one round by its outcome and its duration.
	RoundDone(took time.Duration, outcome string)
	// Decided reports a plan and the time that it took to make.
	Decided(took time.Duration, plan *planner.Plan)
	planning.Observer
	// Landed reports contract changes that are on the ledger.
	Landed(plan *planner.Plan, changes []model.Change)
}

// Options configure a Reconciler.
type Options struct {
	// Repo is the fleet repository. It is needed.
	Repo *gitrepo.Repo
	// Ledger is the branch that Repo writes, to notice when the fleet names
	// another; empty does not look.
	Ledger string
	// Root is the root of trust; nil asks for no signatures but those that
	// fleet.yaml names.
	Root *trust.Root
	// Signer signs commits; nil leaves them unsigned.
	Signer gitrepo.Signer
	// Market of flavors.
	Market *market.Market
	// Delivery to the clusters; nil delivers nothing.
	Delivery Delivery
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Leads reports whether this replica decides; nil: it does. One that does not
	// reads, plans for itself, delivers and serves, and writes nothing. Asked at the
	// beginning of each round.
	Leads func() bool
	// Replica is this daemon's name in its commits, the same after a restart;
	// writers.Operator of a command; "" names none, and never stands by for others.
	Replica string
	// Elected reports whether Leads is by an election among those who share a store;
	// nil: it is not, and this daemon stands by while another one writes the ledger.
	Elected func() bool
	// Newest makes the market know what some providers offer at this moment; nil: it
	// knows all there is. Asked of the providers that a plan takes more of, before it
	// is committed.
	Newest func(ctx context.Context, providers []string) error
	// Sources are the repositories of tenants that the fleet names; nil: none is read,
	// and the copies on the ledger stay as they are.
	Sources Sources
	// Clock knows whether Now is right; nil does not look.
	Clock Clock
	// Pushes is the budget of pushes to the repository, which Repo's remote keeps; nil:
	// there is no limit.
	Pushes *pushbudget.Budget
	// Poll is how often the remote is asked when nobody calls (default 30 s).
	Poll time.Duration
	// Shadow plans and reports but writes nothing, whatever the fleet says.
	Shadow bool
	// AllowEnds lets rounds on this inputs commit, and on later ones where no other
	// contracts end, end more contracts than safety.maxEnds; zero allows nothing.
	AllowEnds tree.Hash
	// ForceRelease names contracts whose provider or consumer is lost for good.
	ForceRelease map[string]bool
	// Lift names pieces of the inputs, by path, that are set aside and shall be tried
	// again.
	Lift []string
	// Watch notes what is being read; nil notes nothing.
	Watch *poison.Watch
	// Revoke takes pki/revoked.crl whenever the inputs change; may be nil. An
	// error means that the list is not in force: at a start an older version of
	// the file is then tried.
	Revoke func(crl []byte) error
	// PullRequests carry what is decided where the fleet wants it reviewed; nil
	// writes nothing there.
	PullRequests PullRequests
	// Check says when plans are checked against plans from nothing, and how; its
	// clock, log and observer are set from those here.
	Check planning.Options
	// Tracer makes the rounds' traces, Traces knows those of contracts; nil: neither.
	Tracer *tracing.Tracer
	Traces *traced.Keeper
	// Observer may be nil.
	Observer Observer
	// Log of what rounds do.
	Log *slog.Logger
}

type nobody struct{}

func (nobody) RoundDone(time.Duration, string)      {}
func (nobody) Decided(time.Duration, *planner.Plan) {}
func (nobody) Forgot()                              {}
func (nobody) Stepped(planner.Step, time.Duration)  {}
func (nobody) Checked(planning.Check)               {}
func (nobody) Landed(*planner.Plan, []model.Change) {}
