package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// job is one intent during a round: what it holds, what it needs, and what
// comes of it.
type job struct {
	// in is nil when the intent is no more.
	in           *model.Intent
	tenantName   string
	name         string
	tenant       *account.Tenant
	consumer     string
	state        *v1alpha1.IntentState
	firstSeen    v1alpha1.FirstSeen
	ordinals     map[string]int32
	started      v1alpha1.Time
	priority     int32
	refused      bool                 // for good, until its file changes
	displaced    bool                 // it had to give way and was not served since
	displacing   bool                 // … and is told so in this round
	noticed      bool                 // it is told in this round that it has to give way to somebody or something
	all          []*v1alpha1.Contract // in the ledger
	live         []*v1alpha1.Contract // charged, current versions
	releasing    int
	placedBefore bool

	// end of the contracts that are placed now; seconds until then, 0 for none.
	end     v1alpha1.Time
	seconds int64
	// target is how many replicas are wanted of one that follows demand, 0 until known.
	target int32
	// sizing is, of a warm pool that follows a forecast, how many slices it wants.
	sizing *sizing
	// grows says why it wants more replicas than it has, "" while it does not.
	grows string
	// later is how many replicas are replaced after others.
	later int
	// wanted replicas and the money for them, for the shapes.
	wanted int
	purse  match.SpendLimits
	shapes []*match.Class
	alts   []v1alpha1.ResourceRequest

	// avoid are the offers that are not tried.
	avoid map[inventory.Key]bool

	// senior: it has waited for too long and goes before its equals.
	senior bool
	// turnAt is the pass in which it last had its turn.
	turnAt int

	// proposals are moves to better offers.
	proposals []v1alpha1.Proposal

	tasks []task
	// news are the last of its tasks while it has no turn: replicas that have
	// nothing (wantReplicas).
	news []task
	// open are tasks that could not be done, and why.
	open []failure

	// part that tasks are done for at the moment (split.go), and units of of.
	part      int32
	units, of int64

	dec Decision
	// why something is given up, for people and as a code.
	why, whyCode string
	phase        v1alpha1.IntentPhase
	code         string
	text         string
	silent       bool // writes no state
	frozen       bool // its specification cannot be read: what it holds stands on its terms
	batched      bool // placed so that its whole batch costs least
	seated       bool // placed so that all its replicas find a place
	gone         bool // leaves the ledger's memory
	since        v1alpha1.Time
}

// taskKind is what has to be done for a replica.
type taskKind uint8

const (
	fresh    taskKind = iota // place it
	adapt                    // make its contract what the intent now says
	move                     // place it elsewhere, then release
	remake                   // place all parts of it anew, then release
	failover                 // the same, because its provider does not serve it
	leave                    // the same, because it has to give way
)

type task struct {
	kind    taskKind
	replica int32
	// part of the replica, and units of of that it is; none for a whole one.
	part      int32
	units, of int64
	// old is the contract to change; of a fresh task the one that was lost.
	old *v1alpha1.Contract
}

// addTask adds what a round finds out late, in the order in which the next one
// would find it: by replica and part.
func (j *job) addTask(t task) {
	at := len(j.tasks)
	for at > 0 && cmp.Or(cmp.Compare(j.tasks[at-1].replica, t.replica), cmp.Compare(j.tasks[at-1].part, t.part)) > 0 {
		at--
	}
	j.tasks = slices.Insert(slices.Clip(j.tasks), at, t)
}

// offered reports whether what it was given waits for review.
func (j *job) offered() bool { return j.in != nil && j.in.Offered }

// newJob gathers what the ledger knows of an intent.
func (r *round) newJob(in *model.Intent, tenantName, name string) *job {
	j := &job{in: in, tenantName: tenantName, name: name, tenant: r.accounts.Of(tenantName)}
	j.state = r.w.Ledger.State(tenantName, name)
	j.all = r.w.Ledger.ByIntent(tenantName, name)
	j.dec = Decision{Tenant: tenantName, Name: name, Considered: len(r.inventory.Offers())}
	if in != nil {
		j.dec.Path = in.Path
		j.priority = in.Spec.Priority
		if j.warm() {
			j.priority = warmPriority
		}
		if p := j.tenant.Spec.MaxPriority; p != nil {
			j.priority = min(j.priority, *p)
		}
		j.consumer = j.tenant.Spec.ConsumerOf(&in.Spec)
		j.adopt(r)
	}
	if j.state == nil || (in != nil && j.state.Status.State == v1alpha1.IntentReleasing) {
		j.firstSeen = v1alpha1.FirstSeen{At: r.now}
		if in != nil {
			j.firstSeen.Commit, j.firstSeen.Author = cmp.Or(in.Commit, r.w.Inputs), in.Author
			j.firstSeen.At = cmp.Or(in.Since, r.now)
		}
	} else {
		j.firstSeen = j.state.Status.FirstSeen
		j.started = j.state.Status.Started
	}
	if j.state != nil {
		j.ordinals = maps.Clone(j.state.Status.NextOrdinals)
		j.displaced = in != nil && !j.state.Status.Displaced.IsZero() && j.state.Status.Digest == in.Digest
		if j.dec.Path == "" {
			j.dec.Path = j.state.Status.Path
		}
	}
	if j.ordinals == nil {
		j.ordinals = map[string]int32{}
	}
	return j
}

// adopt takes over state and contracts of the name that the intent had before,
// when no intent has it now.
func (j *job) adopt(r *round) {
	old := j.in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
	if old == "" || old == j.name || j.state != nil || r.find(j.tenantName, old) != nil {
		return
	}
	state := r.w.Ledger.State(j.tenantName, old)
	if state == nil {
		return
	}
	moved := *state
	moved.Metadata.Name = j.name
	j.state = &moved
	j.all = r.w.Ledger.ByIntent(j.tenantName, old)
	r.renamed[[2]string{j.tenantName, old}] = state
}

// observeAll moves the intent's contracts along by what is seen of them, and
// sorts out which are charged. Of several for one replica the newest counts.
func (j *job) observeAll(r *round) {
	for _, c := range j.all {
		if c.Status.Phase == v1alpha1.PhaseReleasing {
			c = r.latest(c) // finishReleases has looked at it
		} else {
			c = r.observe(c)
		}
		switch {
		case c.Status.Phase.Charged():
			j.live = append(j.live, c)
		case c.Status.Phase.Held():
			j.releasing++
		}
	}
	j.placedBefore = len(j.live) > 0
	for _, c := range j.live {
		j.dec.HourlyBefore = j.dec.HourlyBefore.Add(r.hourlyOf(c))
	}
}

func (r *round) hourlyOf(c *v1alpha1.Contract) v1alpha1.Decimal {
	return r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency).Decimal()
}

// releaseAll releases everything the intent holds.
func (j *job) releaseAll(r *round, target v1alpha1.Phase, code, text string) {
	for _, c := range slices.Clone(j.live) {
		j.drop(r, c, target, code, text)
	}
}

// drop releases one contract.
func (j *job) drop(r *round, c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) {
	after := r.release(c, target, code, text)
	r.replace(j, c, after)
	j.releasing++
	j.dec.Contracts = append(j.dec.Contracts, r.line(after, Release))
	j.why, j.whyCode = text, code
}

// replicas is how many slices the intent wants.
func (j *job) replicas() int32 {
	if j.target > 0 {
		return j.target
	}
	if j.warm() {
		return j.sizing.wanted(j.in.Spec.Replicas.Min)
	}
	return max(j.in.Spec.Replicas.Min, 1)
}

// finding reports whether the intent only wants to know.
func (j *job) finding() bool { return j.in != nil && j.in.Spec.Stage == v1alpha1.StageFind }

// gang reports whether what is placed anew is placed together or not at all. Of
// an intent that follows demand only its least number of replicas is one.
func (j *job) gang() bool {
	return (j.in.Spec.Gang == nil || *j.in.Spec.Gang) && j.target <= j.least()
}

func (j *job) alternatives() []v1alpha1.ResourceRequest {
	if j.alts == nil {
		j.alts = match.Alternatives(&j.in.Spec)
	}
	return j.alts
}

// budget sets the money and the number of replicas for the shapes of the next
// placements. What the intent's other contracts cost is spent; those in except
// are about to be replaced.
func (j *job) budget(r *round, wanted int, except ...*v1alpha1.Contract) {
	p := match.NoSpendLimits()
	defer func(wanted int, was match.SpendLimits) {
		// Shapes stay where what they are made of does.
		if j.shapes == nil || wanted != j.wanted || was != j.purse {
			j.shapes = make([]*match.Class, len(j.alternatives()))
		}
	}(j.wanted, j.purse)
	j.wanted = wanted
	if b := j.tenant.Spec.Budget; b != nil && (b.Hourly != nil || b.Monthly != nil) {
		p.Limited = true
	}
	b := j.in.Spec.Budget
	if b == nil {
		j.purse = p
		return
	}
	p.Limited = p.Limited || b.MaxHourly != nil || b.MaxHourlySpot != nil || b.MaxHourlyPerGPU != nil || b.MaxTotal != nil
	var hourly, ahead quantity.Micro
	for _, c := range j.live {
		if slices.Contains(except, c) {
			continue
		}
		hourly += r.peak(c) + r.transferOf(c)
		if !c.Spec.Term.End.IsZero() {
			ahead += r.inFleet(r.books.HoldUntil(c.Spec.Price, r.now, c.Spec.Term.End, c.Spec.Term.End), c.Spec.Price.Currency)
			ahead += r.transferOf(c).ForSeconds(int64(c.Spec.Term.End.Sub(r.now.Time).Seconds()))
		}
	}
	if b.MaxHourly != nil {
		p.Hourly = r.inFleet(*b.MaxHourly, b.Currency) - hourly
		p.HourlySpot = p.Hourly
	}
	if b.MaxHourlySpot != nil {
		p.HourlySpot = r.inFleet(*b.MaxHourlySpot, b.Currency) - hourly
	}
	if b.MaxHourlyPerGPU != nil {
		p.PerGPU = r.inFleet(*b.MaxHourlyPerGPU, b.Currency)
	}
	if b.MaxTotal != nil {
		p.Total = r.inFleet(*b.MaxTotal, b.Currency) - ahead
		if spent, err := r.books.IntentSpent(r.w.Ledger, j.tenantName, j.name, r.now); err == nil {
			p.Total -= quantity.Micro(spent.Micro())
		}
	}
	j.purse = p
}

// line is a contract as the plan shows it.
func (r *round) line(c *v1alpha1.Contract, action Action) ContractLine {
	l := ContractLine{
		Name: c.Metadata.Name, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Action: action, Consumer: c.Spec.Consumer,
		Resources: c.Spec.Resources, GPUs: c.Spec.GPUs, Hourly: c.Spec.Price.Hourly, Currency: c.Spec.Price.Currency,
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

// ends the job with a decision and a state.
func (j *job) settle(action Action, phase v1alpha1.IntentPhase, code, format string, args ...any) {
	j.dec.Action, j.phase, j.code = action, phase, code
	j.text = fmt.Sprintf(format, args...)
	j.dec.Code, j.dec.Reason = code, j.text
}
