package planning

import (
	"log/slog"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Observer is told of plans, for metrics. Methods return at once.
type Observer interface {
	// Forgot reports that the session could not be brought up to date by a
	// mistake, and that the plan was made from nothing.
	Forgot()
	// Stepped reports how long one step of a plan took; each plan reports all.
	Stepped(step planner.Step, took time.Duration)
	// Checked reports what came of a check.
	Checked(c Check)
}

// Options configure a Planner.
type Options struct {
	// Every is how many plans there are to one that is checked; 0 checks none.
	Every uint64
	// Budget is how many bytes a check may take; 0 does not limit.
	Budget uint64
	// Seal, if set, is called before each plan. What it returns is called after, and
	// says what of the world was changed meanwhile, "" if nothing was. It is for
	// tests: it may cost as much as a copy of the world.
	Seal func(planner.World) (changed func() string)
	// Now is the clock that times steps.
	Now func() time.Time
	// Log and Observer of what goes wrong.
	Log      *slog.Logger
	Observer Observer
}

// Planner makes the plans of one reconciler. Make it with New.
type Planner struct {
	opts    Options
	session planner.Session
	number  uint64 // of the newest plan
	steps   steps
	needed  needed
	said    map[string]time.Time // when a mistake was last logged, by kind
}

// New returns a Planner that knows nothing yet.
func New(opts Options) *Planner {
	p := &Planner{opts: opts, said: map[string]time.Time{}}
	p.session.Fault, p.session.Step, p.session.Disputed = p.fault, p.steps.begin, p.disputed
	p.steps.now = opts.Now
	return p
}

// Scratch is how many plans so far were made from nothing, those of checks left
// out.
func (p *Planner) Scratch() uint64 { return p.session.Scratch() }

// Decide makes the plan of a world, and checks it if its number says so.
func (p *Planner) Decide(w planner.World) *planner.Plan {
	changed := func() string { return "" }
	if p.opts.Seal != nil {
		changed = p.opts.Seal(w)
	}
	p.number++
	scratch := p.session.Scratch()
	plan := p.session.Decide(w)
	for step, took := range p.steps.end() {
		p.opts.Observer.Stepped(step, took)
	}
	if p.session.Scratch() == scratch { // else there is nothing to compare
		plan = p.check(w, plan)
	}
	if what := changed(); what != "" {
		p.opts.Observer.Checked(Check{Result: Unsealed, Why: what})
		p.opts.Log.Error("a plan changed its world in place", "changed", what)
	}
	return plan
}

// fault counts a mistake in bringing the session up to date, which cost this plan
// its time and nothing else.
func (p *Planner) fault(why string) {
	p.opts.Observer.Forgot()
	p.complain("planner session could not be updated: plan made from nothing, slower and correct; please report this", "fault", why)
}

// disputed counts a plan that does not agree with what it leaves of providers that deny.
func (p *Planner) disputed(providers []string) {
	p.opts.Observer.Checked(Check{Result: Disputed, Why: strings.Join(providers, ", ")})
	p.complain("a plan would be decided otherwise by the denials that it records: the next round may undo it; please report this", "providers", providers)
}

// complain logs a mistake, each kind once a minute.
func (p *Planner) complain(message string, args ...any) {
	now := p.opts.Now()
	if last, ok := p.said[message]; ok && now.Sub(last) < time.Minute && !now.Before(last) {
		return
	}
	p.said[message] = now
	p.opts.Log.Error(message, args...)
}
