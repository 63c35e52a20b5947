package planner_test

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// describe draws a plan for failing tests.
func describe(p *planner.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v -> %v %s, due %v, held back %q\n", p.HourlyBefore, p.HourlyAfter, p.Currency, p.Due, p.HeldBack)
	for _, d := range p.Intents {
		fmt.Fprintf(&b, "%-8s %s/%s %s: %s\n", d.Action, d.Tenant, d.Name, d.Code, d.Reason)
		for _, c := range d.Contracts {
			fmt.Fprintf(&b, "         %-8s %s %s/%s %v %s\n", c.Action, c.Name, c.Provider, c.Flavor, c.Resources.Canonical(), c.Phase)
		}
	}
	for _, c := range p.Contracts {
		from, to, name := "-", "-", ""
		if c.Before != nil {
			from, name = string(c.Before.Status.Phase), c.Before.Metadata.Name
		}
		if c.After != nil {
			to, name = string(c.After.Status.Phase), c.After.Metadata.Name
			if c.After.Status.Reason != "" {
				to += " (" + c.After.Status.Reason + ")"
			}
		}
		fmt.Fprintf(&b, "contract %s %s -> %s status only %v\n", name, from, to, c.StatusOnly)
	}
	for _, s := range p.States {
		switch {
		case s.After == nil:
			fmt.Fprintf(&b, "state    %s gone\n", s.Before.Metadata.Name)
		case s.Before == nil:
			fmt.Fprintf(&b, "state    %s - -> %+v\n", s.After.Metadata.Name, s.After.Status)
		default:
			fmt.Fprintf(&b, "state    %s %+v -> %+v\n", s.After.Metadata.Name, s.Before.Status, s.After.Status)
		}
	}
	return b.String()
}
