// Package observing turns what the rooms tell of their work into metrics and log lines.
// Their goroutines call it, the loop's above all; Each is called before rounds begin.
package observing

import (
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

// Observer turns what the rooms tell into metrics.
type Observer struct {
	// Metrics are told; Log has what is no metric.
	Metrics *server.Metrics
	Log     *slog.Logger
	// Traces knows the traces of contracts; may be nil.
	Traces *traced.Keeper
	// News learns how long plans take.
	News process.News

	rounds []func() // called after each round
}

// Each has something called after each round. Rounds must not have begun.
func (o *Observer) Each(f func()) { o.rounds = append(o.rounds, f) }

// CommitDone implements gitrepo.Observer.
func (o *Observer) CommitDone(took time.Duration, _ int, outcome string) {
	if outcome == "committed" {
		o.Metrics.Commit(took)
	}
}

// PushConflict implements gitrepo.Observer.
func (o *Observer) PushConflict() { o.Metrics.PushConflict() }

// LocalTrouble implements gitrepo.Observer.
func (o *Observer) LocalTrouble(err error) {
	o.Log.Warn("the local copy of the fleet repo has trouble; work goes on with a new one, or in memory", "error", err)
}

// RoundDone implements reconciler.Observer.
func (o *Observer) RoundDone(took time.Duration, outcome string) {
	o.Metrics.Round(outcome)
	o.Log.Debug("round", "took", took, "outcome", outcome)
	for _, f := range o.rounds {
		f()
	}
}

// Decided implements reconciler.Observer.
func (o *Observer) Decided(took time.Duration, _ *planner.Plan) {
	o.Metrics.Decision(took)
	o.News.Planned(took)
}

// Forgot implements planning.Observer.
func (o *Observer) Forgot() { o.Metrics.PlannerFault() }

// Stepped implements planning.Observer.
func (o *Observer) Stepped(s planner.Step, t time.Duration) { o.Metrics.PlannerStep(s.String(), t) }

// Checked implements planning.Observer.
func (o *Observer) Checked(c planning.Check) { o.Metrics.PlannerCheck(string(c.Result), c.Bytes) }

// Landed implements reconciler.Observer: phases that contracts entered, and
// how long their teams waited.
func (o *Observer) Landed(plan *planner.Plan, changes []model.Change) {
	seen := map[string]v1alpha1.Time{}
	for _, s := range plan.States {
		if s.After != nil {
			seen[s.After.Metadata.Namespace+"/"+s.After.Metadata.Name] = s.After.Status.FirstSeen.At
		}
	}
	for _, c := range changes {
		after := c.After
		if c.Before != nil && c.Before.Status.Phase == after.Status.Phase {
			continue
		}
		o.Metrics.Reservation(after.Status.Phase, process.Requester(after))
		first := seen[after.Metadata.Namespace+"/"+after.Spec.Intent.Name]
		switch {
		case c.Before == nil && !first.IsZero():
			o.Metrics.TimeToReserve(plan.Now.Sub(first.Time), o.Traces.Came(after.Metadata.Name).Trace())
		case c.Before != nil && after.Status.Phase == v1alpha1.PhaseActive && c.Before.Status.Phase != v1alpha1.PhaseDegraded:
			o.Metrics.TimeToActive(max(plan.Now.Sub(after.Spec.Term.Start.Time), 0), o.Traces.Came(after.Metadata.Name).Trace()) // a booking is delivered before its start
		}
	}
}
