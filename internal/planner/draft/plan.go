package draft

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Action is what a plan does with an intent.
type Action string

// The actions, as they are in `plan -o json`.
const (
	Place   Action = "place"
	Keep    Action = "keep"
	Resize  Action = "resize"
	Move    Action = "move"
	Release Action = "release"
	Preempt Action = "preempt"
	Queued  Action = "queue"
	Refuse  Action = "refuse"
	Suspend Action = "suspend"
	Done    Action = "done"
	Frozen  Action = "frozen"
	Find    Action = "find"
)

// Plan is what a round decides: what to show people (Intents) and what to
// write (Contracts, States, Spends). Slices are sorted; two plans of equal
// worlds are equal.
type Plan struct {
	// Now, Inputs and Market are the world's.
	Now            v1alpha1.Time
	Inputs, Market string
	// Currency of every figure here: the fleet's.
	Currency string
	// Intents are the decisions, one an intent, by tenant and name. A decision
	// that stays the same is shared by the plans of several rounds.
	Intents []*Decision
	// Unsettled are those of Intents that had to be thought about: an intent that
	// is not among them is done, or kept just as it asks.
	Unsettled []*Decision
	// Contracts that change, by name.
	Contracts []model.Change
	// States of intents that change, by tenant and name.
	States []model.StateChange
	// Spends are spend files that change, by tenant and month.
	Spends []*v1alpha1.Spend
	// HourlyBefore and HourlyAfter are the cost of all charged contracts.
	HourlyBefore, HourlyAfter v1alpha1.Decimal
	// Held back: why ends were not made (safety.maxEnds), "" when nothing was.
	HeldBack string
	// HeldBackEnds is how many contracts would have ended.
	HeldBackEnds int
	// Removed are the paths of removed intents of which it mattered by whom
	// (World.RemovedBy) for what is held back.
	Removed []string
	// Budgets are those of tenants that have one, by name, after the plan.
	Budgets []BudgetLine
	// Notes name fields of the fleet, its tenants and flavors that are not acted on yet, and tenants that hold more than they may.
	Notes []string
	// Due is the earliest time at which planning again may decide otherwise though nothing else changed; zero when there is none.
	Due v1alpha1.Time
	// Offers, Clusters are how many were looked at, for the heading; Silent names stale or lost providers.
	Offers, Clusters int
	Silent           []SilentProvider
	// Conditions are what people should look at of providers.
	Conditions []Condition
	// Calendar is what is booked ahead after the plan, nil where nothing is.
	Calendar *Calendar
	// solved: what came at once was solved as a batch.
	solved bool
	// reworded: a contract's message changed and its code did not.
	reworded bool
	// reordered: an intent had its place by all that it waits for, where its last turn may
	// have asked for something else.
	reordered bool
}

// SolvedRules are the rules from which on batches are solved as package batch solves them
// now. What lower ones decided of a batch cannot be decided again.
const SolvedRules = RulesBatchesSwap

// Solved reports whether what came at once was solved as a batch.
func (p *Plan) Solved() bool { return p.solved }

// ReasonRules are the rules from which on a contract's reason is a code with a
// message apart, and another message of the same trouble is written whatever differs
// in it. Lower ones ignored other numbers.
const ReasonRules = RulesReasonApart

// Reworded reports whether a contract's message was written although its code is the
// same.
func (p *Plan) Reworded() bool { return p.reworded }

// OrderRules are the rules from which on an intent with a budget of its own has its place
// in its batch by all that it waits for. Lower ones went by what its last turn had asked
// for.
const OrderRules = RulesOrderedByAll

// Reordered reports whether that may have made a difference.
func (p *Plan) Reordered() bool { return p.reordered }

// SilentProvider is a provider without recent reports.
type SilentProvider struct {
	Name  string
	Since v1alpha1.Time
	Lost  bool
}

// Decision is what a plan does with one intent, and why.
type Decision struct {
	Tenant, Name, Path string
	Action             Action
	// Contracts of the intent after the decision: placed, kept, resized, moved or released.
	Contracts []ContractLine
	// Reason is one sentence; Code is it as a machine-readable word. Also is the
	// end of the sentence: what is to be known of a placement next to its score.
	Reason, Code, Also string
	// Counted is where Reason counts the offers by what they fail.
	Counted Span `json:"-"`
	// Rejected counts offers by the first requirement they fail; with the Fitting they add up to Considered.
	Rejected   map[string]int
	Considered int
	Fitting    int
	// Near are offers that fail exactly one requirement, best first.
	Near []string
	// Try are changes that, planned again, place the intent.
	Try []string
	// Alternative that was taken: 0 is resources, n the n-th alternative.
	Alternative int
	// Hourly before and after, of the intent's charged contracts.
	HourlyBefore, HourlyAfter v1alpha1.Decimal
	// Since when it waits, and until when (queue).
	Since, GivesUp v1alpha1.Time
	// Proposals are moves to better offers that are not made, or not yet.
	Proposals []v1alpha1.Proposal
	// Position in the queue, from 1.
	Position int
	// Expected is when what waits is expected to be served, by what is known to
	// end; Estimated without it: that is unknown.
	Expected  v1alpha1.Time
	Estimated bool
}

// Span is a part of a text, by bytes; empty for none.
type Span struct{ From, To int }

// Counts reports whether Reason counts the offers by what they fail.
func (d *Decision) Counts() bool { return d.Counted.To > d.Counted.From }

// Uncounted is Reason without that count, for those who show Rejected themselves.
func (d *Decision) Uncounted() string {
	if !d.Counts() {
		return d.Reason
	}
	before := strings.TrimSuffix(d.Reason[:d.Counted.From], "; ")
	after := strings.TrimPrefix(d.Reason[d.Counted.To:], "; ")
	if before != "" && after != "" {
		return before + "; " + after
	}
	return before + after
}

// ContractLine is a contract as a plan shows it.
type ContractLine struct {
	Name, Provider, Flavor string
	// From is the flavor before a move, "<provider>/<flavor>".
	From string
	// Action on this contract.
	Action    Action
	Consumer  string
	Resources v1alpha1.Resources
	// Asked is what was asked for before rounding up, when that differs.
	Asked v1alpha1.Resources
	GPUs  *v1alpha1.ContractGPU
	// Nodes on which it lies, where its offer tells them.
	Nodes []v1alpha1.ContractNode `json:",omitempty"`
	// Unpriced are resources of it that cost nothing, because the offer's price does not
	// name them.
	Unpriced []string
	Hourly   v1alpha1.Decimal
	Currency string
	// HourlyNow is what a new contract costs at the moment, where a price window
	// that is open makes it another than Hourly.
	HourlyNow *v1alpha1.Decimal
	// Transfer is what moving the intent's data is estimated to cost an hour in addition to Hourly.
	Transfer v1alpha1.Decimal
	Score    float64
	// RunnerUp is the next best offer, nil when there is none.
	RunnerUp *v1alpha1.RunnerUp
	// Left is a cheaper offer that a new one leaves to those who usually come (package scarcity),
	// and of which its intent has nothing; "" for none.
	Left string `json:",omitempty"`
	// Part: its replica is put together from several contracts (split).
	Part bool
	// Claimed is the warm pool whose slice it took over, "" for none.
	Claimed string
	// Scaled is what of it did not exist when it was decided.
	Scaled v1alpha1.Resources
	Phase  v1alpha1.Phase
	Term   v1alpha1.Term
}

// Summary counts the decisions by action.
func (p *Plan) Summary() map[Action]int {
	out := map[Action]int{}
	for i := range p.Intents {
		out[p.Intents[i].Action]++
	}
	return out
}

// Changes reports whether the plan writes anything, or would.
func (p *Plan) Changes() bool {
	return len(p.Contracts)+len(p.States)+len(p.Spends) > 0
}

// Decides reports whether the plan changes more than what the ledger remembers of
// intents that cannot be read: those are listed under errors, and keep what they have.
func (p *Plan) Decides() bool {
	return len(p.Contracts)+len(p.Spends) > 0 ||
		slices.ContainsFunc(p.States, func(s model.StateChange) bool { return s.After == nil || s.After.Status.Frozen == nil })
}

// OfferLine is one offer as `explain` shows it.
type OfferLine struct {
	Flavor *v1alpha1.Flavor
	// Fits: it satisfies everything; else Requirement is the first that fails and Detail has its numbers.
	Fits                bool
	Requirement, Detail string
	Chosen              bool
	Free                v1alpha1.Resources
	Hourly              v1alpha1.Decimal
	// Transfer is what moving the intent's data there costs an hour in addition to Hourly.
	Transfer v1alpha1.Decimal
	Priced   bool
	// Scaled is what its provider's autoscaler would have to add.
	Scaled       v1alpha1.Resources
	LatencyMs    int64
	LatencyKnown bool
	Score        float64
	Scores       map[string]float64
	// Sources of its price and location.
	Sources v1alpha1.Sources
}

// Explanation is everything about one intent: what was understood and every
// offer once.
type Explanation struct {
	Intent   model.Intent
	Decision Decision
	// Wants is what was understood, in one line.
	Wants string
	// Offers: those that fit by score, then the others by requirement and name.
	Offers []OfferLine
	// Failed counts the offers by what the replica that finds no place fails, which may be
	// another than the one that Offers are of; nil where all find one.
	Failed map[string]int
	// Troubled are the intent's held contracts that have a reason for standing
	// as they do, by name.
	Troubled []*v1alpha1.Contract
}

// LedgerChanges are the plan's changes as the ledger takes them.
func (p *Plan) LedgerChanges() ledger.Changes {
	return ledger.Changes{Contracts: p.Contracts, States: p.States, Spends: p.Spends}
}

// BudgetLine is a tenant's budget as of a plan, after its decisions, in the
// plan's currency.
type BudgetLine struct {
	Tenant string
	// Hourly is the highest price of all charged contracts, of MaxHourly.
	Hourly v1alpha1.Decimal
	// Accrued this month, Held until its end, and Forecast of both with what
	// starts later, of MaxMonthly. Zero where there is no monthly budget.
	Accrued, Held, Forecast v1alpha1.Decimal
	// MaxHourly and MaxMonthly, nil for none.
	MaxHourly, MaxMonthly *v1alpha1.Decimal
	// Month such as 2026-11, in the fleet's timezone, and when it ends.
	Month string
	Ends  v1alpha1.Time
	// AtLimit is warn, stop or end.
	AtLimit string
	// Warning is which limit is or will be exceeded, "" when none is.
	Warning string
}

// ActionOf is what was done with an intent, from what was done with its
// contracts.
func ActionOf(lines []ContractLine) Action {
	for _, a := range [...]Action{Move, Place, Resize, Release} {
		if slices.ContainsFunc(lines, func(l ContractLine) bool { return l.Action == a }) {
			return a
		}
	}
	return Keep
}

// Condition is something about a provider that people should look at.
type Condition struct {
	// Provider cluster.
	Provider string `json:"provider"`
	// Type is one of the Condition* words.
	Type string `json:"type"`
	// Message is a sentence for people, with what to do.
	Message string `json:"message"`
}

// Line is a contract as the plan shows it.
func (r *Draft) Line(c *v1alpha1.Contract, action Action) ContractLine {
	l := ContractLine{
		Name: c.Metadata.Name, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Action: action, Consumer: c.Spec.Consumer,
		Resources: c.Spec.Resources, GPUs: c.Spec.GPUs, Nodes: c.Spec.Nodes, Hourly: c.Spec.Price.Hourly, Currency: c.Spec.Price.Currency,
		Score: c.Decision.Score, Phase: c.Status.Phase, Term: c.Spec.Term, Claimed: c.Decision.Claimed, Scaled: c.Decision.Scaled,
		Part: c.Spec.Intent.Of > 0,
	}
	if t := c.Decision.Transfer; t != nil {
		l.Transfer = t.Hourly
	}
	if len(c.Decision.RunnersUp) > 0 {
		l.RunnerUp = &c.Decision.RunnersUp[0]
	}
	return l
}
