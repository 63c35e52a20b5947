package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// What is taken off a contract is not sold in the same round: its provider may have
// granted all of it and not have reported so yet (invariant 11). Where no agent will
// ever report so, and by the rules of before, it is.
func TestSmallerIsSoldLater(t *testing.T) {
	for name, c := range map[string]struct {
		static bool
		rules  int
		want   planner.Action
	}{
		"from an agent":               {false, planner.Rules, planner.Queued},
		"from a file":                 {true, planner.Rules, planner.Place},
		"from an agent, by old rules": {false, 5, planner.Place},
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Offer("paris/h100", func(o *model.Offer) { o.Static = c.static }).Intent("vision/train", Wants(6, "H100"))
			b.W.Rules = c.rules
			b.Round()
			b.Tick(time.Second).Deliver().Round()
			b.Tick(time.Second).Intent("vision/train", Wants(2, "H100")).Intent("vision/next", Wants(4, "H100"))
			p := b.Round()
			if d := Of(p, "vision/train"); d.Action != planner.Resize {
				t.Fatalf("%s %q", d.Action, d.Reason)
			}
			if d := Of(p, "vision/next"); d.Action != c.want {
				t.Fatalf("%s %q, want %s", d.Action, d.Reason, c.want)
			}
			b.Tick(time.Second).Round()
			if n := len(b.Contracts("vision/next")); n != 1 {
				t.Fatalf("%d contracts a round later", n)
			}
		})
	}
}
