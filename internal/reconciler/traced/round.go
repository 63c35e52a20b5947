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
}

// past is a step that has ended.
type past struct {
	name         string
	began, ended time.Time
}

// Begin begins a round.
func (r *Round) Begin(ctx context.Context) context.Context {
	r.Took, r.span, r.steps = Took{}, tracing.Span{}, r.steps[:0]
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

// End ends a round. unchanged: it found nothing to do; asked says that it had asked the
// remote.
func (r *Round) End(outcome string, unchanged bool, commits int, err error) {
	triggers := r.triggers
	r.triggers = nil
	r.Tracer.InRound(tracing.Origin{})
	if unchanged && err == nil {
		if r.Took.Ask == 0 { // the news of what led to it may come just now
			r.Tracer.PutBack(triggers)
			return
		}
		if len(triggers) == 0 {
			return // a span that is not ended is nowhere
		}
	}
	for _, s := range r.steps {
		r.span.Add(s.name, s.began, s.ended)
	}
	r.span.Set("fleetbroker.round.outcome", outcome)
	r.span.SetInt("fleetbroker.round.commits", commits)
	r.span.EndAt(err, r.Now())
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
