package reconciler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// View is what the daemon knew after its newest round, for readiness, the API
// and people. It is immutable.
type View struct {
	// Trouble is why the newest round failed or may not act; "" when all is well.
	Trouble string
	// Stopped: the history was rewritten, and an operator must accept it.
	Stopped bool
	// At is the newest good round's time.
	At v1alpha1.Time
	// Inputs and Ledger are the heads it stood on.
	Inputs, Ledger tree.Hash
	Fleet          *fleet.Fleet
	Contracts      *ledger.Ledger
	World          planner.World
	Plan           *planner.Plan
	// Deaf: too few providers are heard.
	Deaf bool
	// Verified is what of the inputs is acted on, with findings of what is not,
	// because no authorised account has signed it; nil before the first good round.
	Verified *verify.State
	// Offered is the page of the pull request that waits with what was decided,
	// "" when there is none.
	Offered string
	// Withheld is why nothing is written though the fleet wants it, "" when
	// nothing stands in the way.
	Withheld string
	// Trust is what signatures are held to, with what others noted at the remote
	// as accepted since the start.
	Trust wire.Trust
	// Refused are the intents whose changes the remote refused in the newest
	// round that committed, with its words.
	Refused []gitrepo.Refusal
}

// Unverified is what of the inputs is not acted on.
func (v *View) Unverified() []verify.Finding {
	if v.Verified == nil {
		return nil
	}
	return v.Verified.Findings
}

// View is the newest view. Safe for any goroutine.
func (r *Reconciler) View() *View { return r.view.Load() }

// HasRead reports whether fleet and ledger have been read since the start. That is enough
// to be elected: nothing can be planned before a leader has undone foreign edits.
func (r *Reconciler) HasRead() bool { return r.hasRead.Load() }

// Newest says why the ledger that was read may not be the remote's newest, or nil. Safe for
// any goroutine.
func (r *Reconciler) Newest() error {
	if late := r.progress.Late(); late != "" {
		return errors.New(late)
	}
	if v := r.View(); v.Trouble != "" {
		return errors.New(v.Trouble)
	}
	return nil
}

// Ready says why the daemon is not ready to serve, or nil.
func (r *Reconciler) Ready() error {
	if err := r.Newest(); err != nil {
		return err
	}
	switch v := r.View(); {
	case v.Withheld != "":
		return errors.New(v.Withheld)
	case v.Deaf:
		return errors.New("deaf: fewer than half of the providers that hold contracts report; agents report every 30 s, look at their logs if this lasts")
	}
	return nil
}

// publish makes a good round's knowledge the view.
func (r *Reconciler) publish(in *inputs, w planner.World, plan *planner.Plan, refused []gitrepo.Refusal) {
	r.conditions(r.View().Plan, plan)
	r.view.Store(&View{
		At: plan.Now, Inputs: in.heads.Inputs.Commit.Hash, Ledger: in.heads.Ledger.Commit.Hash,
		Fleet: in.fleet, Contracts: in.ledger, World: w, Plan: plan, Deaf: w.Deaf, Refused: refused,
		Withheld: r.withheld(in.fleet.Policy), Verified: r.state,
		Offered: r.offered.pull.URL, Trust: r.trust(in.heads.Ledger.Commit.Hash),
	})
}

// trouble keeps the last good view and says what is wrong now.
func (r *Reconciler) trouble(err error) {
	v := *r.view.Load()
	v.Trouble = err.Error()
	var rewritten *gitrepo.ErrRewritten
	v.Stopped = errors.As(err, &rewritten)
	r.view.Store(&v)
}

// recovered takes trouble back after a good round: one that finds nothing
// changed publishes nothing.
func (r *Reconciler) recovered() {
	if v := *r.view.Load(); v.Trouble != "" && v.Fleet != nil {
		v.Trouble, v.Stopped = "", false
		r.view.Store(&v)
	}
}

// report logs each diagnostic once.
func (r *Reconciler) report(f *fleet.Fleet) {
	for _, d := range f.Diagnostics {
		r.once.Log.Warn("the inputs have a problem", "reason", d.String())
	}
}

// problems logs each rendering problem once.
func (r *Reconciler) problems(list []manifests.Problem) {
	for _, p := range list {
		r.once.Log.Warn("manifests cannot be rendered as asked for", "reason", p.String())
	}
}

// conditions logs those of providers that the last plan did not have, and lets
// their agents show them as Events. What they say may change with every report:
// that is for status.
func (r *Reconciler) conditions(last, now *planner.Plan) {
	for _, c := range now.Conditions {
		if last == nil || !slices.ContainsFunc(last.Conditions, func(o planner.Condition) bool { return o.Provider == c.Provider && o.Type == c.Type }) {
			r.opts.Log.Warn("provider needs a look", "provider", c.Provider, "condition", c.Type, "reason", c.Message)
			r.warn(c, now.Now)
		}
	}
}

// now is the round's time: never before the ledger's newest commit.
func (r *Reconciler) now(in *inputs) v1alpha1.Time {
	now := v1alpha1.TimeOf(r.opts.Now())
	if parent := in.heads.Ledger.Commit; !parent.IsZero() {
		last, err := r.opts.Repo.LastOwn(parent.Hash)
		if err != nil {
			r.opts.Log.Warn("when the ledger was last written is not known", "error", err)
			return now
		}
		if when := v1alpha1.TimeOf(last); now.Before(when.Time) && when.Sub(now.Time) <= 30*time.Second {
			return when
		}
	}
	return now
}

func (v *View) String() string {
	return fmt.Sprintf("inputs %s, ledger %s", v.Inputs.Short(), v.Ledger.Short())
}
