package cli

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// getBookings lists what is booked ahead, by flavor and start, in the fleet's timezone.
func getBookings(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "FLAVOR", "TERM", "GPU", "TENANT", "INTENT", ">"+in.perHour()+"=hourly", "NAME", "REASON", "+CONSUMER", "+RESOURCES", "+BOOKED", "+MESSAGE")
	objects := []*v1alpha1.Contract{}
	facts := in.facts()
	zone, _ := report.ZoneOf(in.fleet.Policy.Timezone)
	calendar := planner.CalendarOf(in.fleet.Policy.Timezone, in.ledger.Bookings())
	if calendar == nil {
		return t, tables.Listed(t, objects)
	}
	for _, c := range calendar.Bookings {
		m := c.Metadata
		ref := c.Spec.Provider + "/" + c.Spec.Flavor
		if !o.wanted(m.Namespace, m.Name) && !o.wanted(m.Namespace, c.Spec.Intent.Name) && !o.wanted(m.Namespace, ref) {
			continue
		}
		objects = append(objects, c)
		t.Row(ref, report.TermText(c.Spec.Term, zone), report.SizeText(c), m.Namespace, c.Spec.Intent.Name, t.Money(facts.Hourly(c)), m.Name,
			c.Status.Reason, c.Spec.Consumer, resourceList(c.Spec.Resources), t.Age(c.Status.Since), c.Status.Message)
	}
	return t, tables.Listed(t, objects)
}
