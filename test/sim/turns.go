package sim

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// unseen names an intent that had no turn yet, "" where there is none. Where the
// work of a round does not do for all, tenants take turns in an order that is
// drawn each minute, and nothing is written of an intent before its first turn: a
// calm of some minutes does not show that no turn comes, the end of the time to
// converge does.
func (s *sim) unseen() string {
	v := s.daemons[0].loop.View()
	if v.Plan == nil {
		return ""
	}
	var led *ledger.Ledger
	for i := range v.Plan.Intents {
		d := v.Plan.Intents[i]
		in := s.people.intents[d.Tenant+"/"+d.Name]
		if d.Code != planner.CodeWork || in == nil || in.wish.stage == "find" {
			continue
		}
		if led == nil {
			var err error
			if led, _, err = ledger.Read(context.Background(), s.ledgerTree(), nil); err != nil {
				s.fail("ledger", "%v", err)
				return ""
			}
		}
		if led.State(d.Tenant, d.Name) == nil {
			return "intent " + in.key() + " had no turn yet"
		}
	}
	return ""
}
