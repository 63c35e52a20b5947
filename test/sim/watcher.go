package sim

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
)

// watcher fails the simulation when a daemon's planner goes wrong between two
// rounds: here every plan is made from nothing too, and every world is sealed.
type watcher struct{ d *daemon }

func (watcher) RoundDone(time.Duration, string)      {}
func (watcher) Landed(*planner.Plan, []model.Change) {}
func (watcher) Stepped(planner.Step, time.Duration)  {}

// Decided implements reconciler.Observer.
func (w watcher) Decided(_ time.Duration, p *planner.Plan) { w.d.s.planned.add(w.d.name, p) }

// Forgot implements planning.Observer.
func (w watcher) Forgot() { w.d.s.fail("session", "%s cannot update its planner session", w.d.name) }

// Checked implements planning.Observer.
func (w watcher) Checked(c planning.Check) {
	switch c.Result {
	case planning.Different:
		w.d.s.fail("session", "%s decided differently from a plan made from nothing: %s", w.d.name, c.Why)
	case planning.Disputed:
		w.d.s.fail("3", "%s decided by other denials of %s than its plan leaves", w.d.name, c.Why)
	case planning.Unsealed:
		w.d.s.fail("session", "%s changed %s in place while it planned", w.d.name, c.Why)
	case planning.Equal:
		w.d.s.counts.Checked++
	}
}
