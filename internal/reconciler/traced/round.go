package traced

import (
	"context"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Took is where a round's time went.
type Took struct {
	// Ask is the remote's answer, with what was new there; Read is fleet and
	// ledger at the heads, Plan the decision, Commit the write-back.
	Ask, Read, Plan, Commit time.Duration
}

// Step is a part of a round.
type Step int

// The steps, as Took has them.
const (
	Ask Step = iota
	Read
	Plan
	Commit
)

var names = [...]string{"ask the fleet repo", "read", "plan", "commit"}

// maxSteps bounds the steps that a round's trace shows.
const maxSteps = 64

// Round is the round under way. The zero value measures nothing; Now is needed.
type Round struct {
	// Now is the clock.
	Now func() time.Time
	// Tracer makes spans; nil: none.
	Tracer *tracing.Tracer
	// Took is where the time went since Begin.
	Took Took

	span     tracing.Span
	triggers []*tracing.Trigger
	steps    []past
	waits    bool
}

// past is a step that has ended.
type past struct {
	name         string
	began, ended time.Time
}

// Begin begins a round.
func (r *Round) Begin(ctx context.Context) context.Context {
	r.Took, r.span, r.steps, r.waits = Took{}, tracing.Span{}, r.steps[:0], false
	if r.Tracer == nil {
		return ctx
	}
	r.triggers = r.Tracer.Triggers()
	parent, links, dropped := tracing.Led(r.triggers)
	if dropped { // what led to it is in no trace
		return ctx
	}
	ctx, r.span = r.Tracer.Begin(ctx, "round", r.Now(), parent, links)
	r.Tracer.InRound(r.span.Origin())
	return ctx
}

// of is where a step's time goes.
func (t *Took) of(s Step) *time.Duration {
	return [...]*time.Duration{&t.Ask, &t.Read, &t.Plan, &t.Commit}[s]
}

// Time measures a step until its result is called.
func (r *Round) Time(s Step) (done func()) {
	began := r.Now()
	return func() {
		ended := r.Now()
		*r.Took.of(s) += ended.Sub(began)
		r.Add(names[s], began, ended)
	}
}

// Add notes a step of the trace that has ended.
func (r *Round) Add(name string, began, ended time.Time) {
	if !r.span.Origin().IsZero() && len(r.steps) < maxSteps {
		r.steps = append(r.steps, past{name, began, ended})
	}
}

// Trailers are those of a commit that the round makes: the trace that led to it, if there
// is one.
func (r *Round) Trailers() []string {
	if o := r.span.Origin(); !o.IsZero() {
		return []string{tracing.Trailer + ": " + o.String()}
	}
	return nil
}

// Origin is the round's span, none where it is in no trace.
func (r *Round) Origin() tracing.Origin { return r.span.Origin() }

// In is a context whose log lines name the round's trace, until the next begins.
func (r *Round) In(ctx context.Context) context.Context { return r.span.In(ctx) }

// Wait notes that what led to the round is looked at by a later one.
func (r *Round) Wait() { r.waits = true }

// Outcomes of which a round's trace knows more than the name.
const (
	Unchanged = "unchanged" // it found nothing to do
	Again     = "again"     // another round does what it did not
)

// Ended is how a round ended.
type Ended struct {
	Outcome string
	Commits int
	// Held: what it decided waits until it may be pushed. Standby: another replica decides.
	Held, Standby bool
	Err           error
}

// End ends a round. What led to it leads to the next one too, unless something was
// committed, or the round had asked the remote and found nothing to do.
func (r *Round) End(e Ended) {
	triggers := r.triggers
	r.triggers = nil
	r.Tracer.InRound(tracing.Origin{})
	held := e.Err != nil || e.Outcome == Again || e.Held || r.waits
	back := e.Commits == 0 && (held || e.Outcome == Unchanged && r.Took.Ask == 0) // the news may come just now
	if back {
		r.Tracer.PutBack(triggers, held)
	}
	if e.Err == nil && e.Outcome == Unchanged && (back || len(triggers) == 0) {
		return // a span that is not ended is nowhere
	}
	for _, s := range r.steps {
		r.span.Add(s.name, s.began, s.ended)
	}
	r.span.Set("fleetbroker.round.outcome", e.Outcome)
	r.span.SetInt("fleetbroker.round.commits", e.Commits)
	if e.Standby {
		r.span.SetBool("fleetbroker.round.standby", true)
	}
	r.span.EndAt(e.Err, r.Now())
}

// Planning has the planner's steps noted in the round's trace.
type Planning struct {
	planning.Observer
	Round *Round
}

// Stepped implements planning.Observer.
func (p *Planning) Stepped(s planner.Step, took time.Duration) {
	p.Observer.Stepped(s, took)
	if took > 0 && !p.Round.Origin().IsZero() {
		now := p.Round.Now()
		p.Round.Add("plan: "+s.String(), now.Add(-took), now)
	}
}
