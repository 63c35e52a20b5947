package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// Outcome is what a round did.
type Outcome struct {
	// Plan that was made; nil when nothing had changed.
	Plan *planner.Plan
	// Committed are the commits that landed.
	Committed []gitrepo.Committed
	// Refused are the intents whose changes the remote refuses.
	Refused []gitrepo.Refusal
	// Again: what was planned on has moved, and another round should follow at once.
	Again bool
	// Due is when to plan again though nothing happens; zero when there is none.
	Due time.Time
	// Took is where the round's time went.
	Took Took
}

// Took is where a round's time went.
type Took = traced.Took

// Round is one pass: read, plan, commit, deliver.
func (r *Reconciler) Round(ctx context.Context) (Outcome, error) {
	start := r.opts.Now()
	r.suspected.wrote, r.paced = nil, time.Time{}
	ctx = r.traced.Begin(ctx)
	ctx = pushbudget.OnWait(ctx, func() func() { return r.progress.Doing("wait for the fleet repo's budget of pushes", false) })
	r.takeTurn()
	done := r.progress.Doing("read and plan", false)
	out, err := r.round(ctx)
	done()
	out.Took, out.Committed = r.traced.Took, append(r.suspected.wrote, out.Committed...)
	if err == nil && (r.desk.stale || r.fleet != nil && r.fleet.Unfinished) { // the next round reads on
		r.ask.Store(true)
		out.Again = true
	}
	if err == nil && r.hint.Load() { // put off while clients waited
		if out.Again = out.Again || r.ought(r.opts.Now()); !out.Again { // they wait on
			out.Due = earliest(out.Due, r.asked.Add(hinted))
		}
	}
	outcome := outcomeOf(out, err)
	r.opts.Observer.RoundDone(r.opts.Now().Sub(start), outcome)
	r.traced.End(traced.Ended{Outcome: outcome, Commits: len(out.Committed), Held: (!r.paced.IsZero() || !r.last.statusDue.IsZero()) && !r.standby && !r.opts.Shadow, Standby: r.standby, Err: err})
	if err != nil {
		r.fail(err)
		r.trouble(err)
	} else {
		r.recovered()
	}
	return out, err
}

func (r *Reconciler) round(ctx context.Context) (Outcome, error) {
	in, err := r.read(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if err := r.rightTime(); err != nil {
		return Outcome{}, err
	}
	if done, out, err := r.prepare(ctx, in); done || err != nil {
		return out, err
	}
	if done, out, err := r.recordDropped(ctx, in); done || err != nil {
		return out, err
	}
	if in, err = r.recordAside(ctx, in); err != nil || in == nil {
		return Outcome{Again: err == nil}, err
	}
	snapshot := r.opts.Market.Snapshot()
	observed, generation := r.observe()
	r.gone.Follow(observed, r.opts.Now())
	unheard, err := r.gone.Unheard(in.ledger, r.opts.Market, func(c *v1alpha1.Contract) (began, newest uint64, err error) {
		if newest, err = r.opts.Repo.Sequence(in.heads.Ledger.Commit.Hash); err == nil {
			began, err = r.ended.Seq(r.opts.Repo, in.heads.Ledger.Commit.Hash, c)
		}
		return began, newest, err
	})
	if err != nil {
		return Outcome{}, err
	}
	if err := r.openDesk(ctx, in); err != nil {
		return Outcome{}, err
	}
	k := r.keyOf(in, snapshot, generation, unheard)
	if k.same(r.last, r.now(in)) {
		return Outcome{Due: r.due(r.last)}, nil
	}
	if until := r.gather(in, k, snapshot); !until.IsZero() {
		r.traced.Wait()
		return Outcome{Due: earliest(until, r.due(r.last))}, nil
	}
	w, err := r.standInLine(ctx, in, r.world(in, k, snapshot, observed, unheard))
	if err != nil {
		return Outcome{}, err
	}
	w, plan, err := r.decideRequests(ctx, in, w)
	if err != nil {
		return Outcome{}, err
	}
	r.housekeep(ctx, in, plan.Now.Time)
	k.planDue, k.statusDue = plan.Due, r.holdStatus(in, plan)
	if in.renewing || len(r.desk.files) == 0 && (!k.statusDue.IsZero() || !plan.Changes() || r.shadow(in)) {
		out := Outcome{Plan: plan, Due: r.due(k), Again: len(r.desk.refused) > 0}
		if out.Again { // what was planned for is gone: the next round decides without it
			r.refuse(true)
			return out, nil
		}
		if in.renewing { // whether it was merged is looked at again
			out.Due = earliest(out.Due, r.opts.Now().Add(r.opts.Poll))
		} else if !plan.Changes() {
			if out.Again, err = r.settleOffer(ctx, in); err != nil || out.Again {
				return out, err
			}
			if in.aside != nil && in.fleet.Policy.WriteBack.Merge { // whether it may be merged is looked at again
				k.statusDue = r.opts.Now().Add(r.opts.Poll)
				out.Due = r.due(k)
			}
		}
		r.conclude(k, snapshot, plan)
		r.publish(in, w, plan, nil)
		out.Again = !plan.Changes() && (r.renewOne(in) || r.copySources(ctx, in, plan.Now) || r.sweep(ctx, in, plan.Now))
		return out, nil
	}
	if r.offers(in) {
		return r.review(ctx, in, w, plan, k, snapshot)
	}
	return r.commit(ctx, in, w, plan, k, Outcome{Plan: plan, Due: r.due(k)}, snapshot)
}

// prepare puts the ledger in order before anything is decided on it, and delivers
// what stands there; done is that the round ends with that.
func (r *Reconciler) prepare(ctx context.Context, in *inputs) (done bool, out Outcome, err error) {
	if err := r.renewed.numbers.Read(r.opts.Repo, in.heads.Ledger.Commit.Hash, "undo", "sweep", planSetAside, planAccept); err != nil {
		return true, out, err
	}
	if err := r.renewed.numbers.Newer(); err != nil { // Leases go to whoever knows it
		return true, out, errors.Join(err, r.deliver.to(r.opts.Delivery, in, true, nil))
	}
	if len(in.foreign) > 0 {
		out, err = r.undo(ctx, in)
		return true, out, err
	}
	waits, wrote, err := r.renew(ctx, in)
	if wrote || err != nil {
		return true, Outcome{Again: err == nil}, err
	}
	return false, out, r.deliver.to(r.opts.Delivery, in, !r.delivers() || in.fleet.Policy.WriteBack.Mode == writeBackNone, waits)
}

// commit writes a plan back. Nothing of it is believed before the remote has
// it.
func (r *Reconciler) commit(ctx context.Context, in *inputs, w planner.World, plan *planner.Plan, k key, out Outcome, snapshot *market.Snapshot) (Outcome, error) {
	if late, err := planning.Outdated(ctx, r.opts.Newest, plan, snapshot, r.opts.Market.Snapshot); late || err != nil {
		r.refuse(false) // by another plan, then
		out.Again = err == nil
		return out, err
	}
	req, err := r.request(in, &w, plan, snapshot.Tree())
	if err != nil {
		return out, err
	}
	done := r.traced.Time(traced.Commit)
	pushed := r.progress.Doing("push to the fleet repo", true)
	res, err := r.opts.Repo.Commit(ctx, req)
	pushed()
	done()
	r.contended = res.Conflicts > 0
	without := r.refusedCopies(in, res, err)
	out.Committed, out.Refused = res.Commits, res.Refused
	var advanced error
	if err == nil && len(res.Commits) > 0 {
		// Before anybody is answered: who is told "reserved" may ask for
		// instructions at once, and finds what was reserved.
		// A stop meanwhile does not change what stands.
		advanced = r.advance(context.WithoutCancel(ctx), res)
		clusters := in.fleet.Delivered() // the new contracts were rendered by these files
		for name, providers := range manifests.ProvidersOf(plan.Contracts) {
			if last := r.renewed.of[name]; last != nil && len(res.Refused) == 0 {
				last.facts = last.facts.With(clusters, providers)
			}
		}
	}
	r.settle(in, plan, res)
	r.refuse(err == nil && len(res.Refused) == 0)
	r.landed(ctx, plan, res)
	switch {
	case errors.As(err, new(*gitrepo.ErrReplan)), errors.As(err, new(*gitrepo.ErrBusy)), errors.As(err, new(*gitrepo.ErrHeld)):
		r.opts.Log.InfoContext(ctx, "plan again", "error", err)
		r.ask.Store(true)
		out.Again = true
		return out, ctx.Err()
	case without: // what was decided on these copies
		out.Again = true
		return out, ctx.Err()
	case err != nil:
		return out, fmt.Errorf("write the plan back: %w", err)
	}
	for _, refusal := range res.Refused {
		r.opts.Log.ErrorContext(ctx, "the remote refuses a change", "intent", refusal.Key, "error", refusal.Cause)
	}
	r.publish(in, w, plan, res.Refused)
	if len(r.desk.waiting) > 0 {
		// What they ask for stands there already, written by another daemon.
		r.ask.Store(true)
		out.Again = true
	}
	if len(res.Commits) == 0 {
		r.conclude(k, snapshot, plan)
		return out, nil
	}
	// The next round delivers what landed and finds only keeps. After a refusal
	// it waits for the next poll: trying again at once would be refused again.
	out.Again = out.Again || len(res.Refused) == 0
	return out, advanced
}

// advance takes over the ledger that was just written, without asking the
// remote, which has acknowledged it.
func (r *Reconciler) advance(ctx context.Context, res gitrepo.Result) error {
	heads := r.heads
	heads.Ledger.Commit = res.Commits[len(res.Commits)-1].Commit
	var err error
	if heads.Ledger.Tree, err = r.opts.Repo.Tree(heads.Ledger.Commit.Hash); err != nil {
		return fmt.Errorf("read what was just written: %w", err)
	}
	heads.Accepted.Ledger = heads.Ledger.Commit.Hash
	if err := r.adopt(ctx, heads); err != nil {
		return err
	}
	// Everything up to here is ours: agents hear of it without waiting for the
	// next round.
	r.stand(&inputs{heads: r.heads, fleet: r.fleet, ledger: r.ledger})
	return nil
}

// landed tells metrics what is on the ledger, and remembers when status was
// last written.
func (r *Reconciler) landed(ctx context.Context, plan *planner.Plan, res gitrepo.Result) {
	done := map[string]bool{}
	for _, c := range res.Commits {
		for _, key := range c.Keys {
			done[key] = true
		}
	}
	var changes []model.Change
	for _, c := range plan.Contracts {
		if c.After == nil || !done[c.After.Metadata.Namespace+"/"+c.After.Spec.Intent.Name] {
			continue
		}
		changes = append(changes, c)
		if c.StatusOnly {
			r.lastStatus = plan.Now.Time
		}
	}
	traced.Committed(ctx, r.opts.Log, res.Commits)
	if len(changes) > 0 {
		r.opts.Observer.Landed(plan, changes)
	}
}

// decide makes the plan and times it.
func (r *Reconciler) decide(w planner.World) *planner.Plan {
	done := r.traced.Time(traced.Plan)
	r.opts.Watch.Begin(poison.Plan, r.suspected.pieces)
	plan := r.plans.Decide(w)
	r.opts.Watch.Done(poison.Plan, r.suspected.pieces)
	done()
	r.opts.Observer.Decided(r.traced.Took.Plan, plan)
	for _, note := range plan.Notes {
		r.once.Log.Warn("the plan has a note", "reason", note)
	}
	return plan
}

func outcomeOf(out Outcome, err error) string {
	switch {
	case err != nil:
		return "error"
	case len(out.Committed) > 0:
		return "committed"
	case out.Again:
		return traced.Again
	case out.Plan == nil:
		return traced.Unchanged
	}
	return "planned"
}
