package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// unseen names an intent that had no turn yet, none since its contracts ended, or
// none since the ledger changed, "" where there is none. Where the work of a round
// does not do for all, tenants take turns in an order that is drawn each minute,
// and what is written of an intent is what its last turn found: a calm of some
// minutes does not show that no turn comes, the end of the time to converge does.
func (s *sim) unseen() string {
	led := sync.OnceValue(func() *ledger.Ledger {
		led, _, err := ledger.Read(context.Background(), s.ledgerTree(), nil)
		if err != nil {
			s.fail("ledger", "%v", err)
		}
		return led
	})
	for _, d := range s.daemons { // the others' plans are what each would decide, at its own instants
		if v := d.loop.View(); d.up && v.Plan != nil {
			if why := s.unseenBy(v.Plan, led); why != "" {
				return why
			}
		}
	}
	return ""
}

// unseenBy is unseen by one plan; read is the ledger.
func (s *sim) unseenBy(p *planner.Plan, read func() *ledger.Ledger) string {
	for i := range p.Intents {
		d := p.Intents[i]
		in := s.people.intents[d.Tenant+"/"+d.Name]
		if !lifecycle.AwaitsTurn(d.Code) || in == nil || in.wish.stage == "find" {
			continue
		}
		led := read()
		if s.failure != nil {
			return ""
		}
		switch st := led.State(d.Tenant, d.Name); {
		case st == nil:
			return "intent " + in.key() + " had no turn yet"
		case st.Status.State == v1alpha1.IntentPlaced && !slices.ContainsFunc(led.ByIntent(d.Tenant, d.Name), func(c *v1alpha1.Contract) bool { return c.Status.Phase.Charged() }):
			return "intent " + in.key() + " had no turn since it lost what it held"
		case s.turns[in.key()] <= s.changed:
			return "intent " + in.key() + " had no turn since the ledger changed"
		}
	}
	return ""
}

// turnsTake is how long it may take until each that waits for its turn has had it, where
// one of all has it a minute (package settle).
func (s *sim) turnsTake() time.Duration {
	v, most, waiting := s.daemons[0].loop.View(), 0, map[string]int{}
	if v.Plan == nil {
		return 0
	}
	for i := range v.Plan.Intents {
		if d := v.Plan.Intents[i]; d.Action == planner.Queued {
			waiting[d.Tenant]++
			most = max(most, waiting[d.Tenant])
		}
	}
	return time.Duration(5*(len(waiting)+1)*most) * time.Minute
}

// noteTurns notes whom a round looked at.
func (s *sim) noteTurns(p *planner.Plan) {
	if n := s.counts.Commits; n != s.changes {
		s.changes, s.changed = n, s.tl.now
	}
	if p == nil {
		return
	}
	for i := range p.Intents {
		if d := p.Intents[i]; !lifecycle.AwaitsTurn(d.Code) {
			s.turns[d.Tenant+"/"+d.Name] = s.tl.now
		}
	}
}
