// Package booked is what the commands show of bookings: the list of `get bookings`, the
// names to complete, and why a contract holds nothing to release.
//
// It draws what it is handed and reads nothing. Package cli calls it.
package booked

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// Table lists bookings by flavor and start, in a fleet's timezone: those that are wanted, by
// tenant and any of their names. perHour is the unit of prices, hourly what one costs in it.
func Table(v tables.View, perHour, timezone string, bookings []*v1alpha1.Contract, wanted func(tenant, name string) bool, hourly func(*v1alpha1.Contract) v1alpha1.Decimal) (*tables.Table, any) {
	t := tables.New(v, "FLAVOR", "TERM", "GPU", "TENANT", "INTENT", ">"+perHour+"=hourly", "NAME", "REASON", "+CONSUMER", "+RESOURCES", "+BOOKED", "+MESSAGE")
	objects := []*v1alpha1.Contract{}
	zone, _ := report.ZoneOf(timezone)
	calendar := planner.CalendarOf(timezone, bookings)
	if calendar == nil {
		return t, tables.Listed(t, objects)
	}
	for _, c := range calendar.Bookings {
		m, ref := c.Metadata, c.Spec.Provider+"/"+c.Spec.Flavor
		if !wanted(m.Namespace, m.Name) && !wanted(m.Namespace, c.Spec.Intent.Name) && !wanted(m.Namespace, ref) {
			continue
		}
		objects = append(objects, c)
		t.Row(ref, report.TermText(c.Spec.Term, zone), report.SizeText(c), m.Namespace, c.Spec.Intent.Name, t.Money(hourly(c)), m.Name,
			c.Status.Reason, c.Spec.Consumer, tables.Resources(c.Spec.Resources), t.Age(c.Status.Since), c.Status.Message)
	}
	return t, tables.Listed(t, objects)
}

// HoldsNothing is why a contract cannot be released.
func HoldsNothing(c *v1alpha1.Contract) error {
	if c.Status.Phase == v1alpha1.PhaseBooked {
		return fmt.Errorf("contract %s is booked ahead and holds nothing yet: to cancel it, delete or suspend intent %s/%s", c.Metadata.Name, c.Metadata.Namespace, c.Spec.Intent.Name)
	}
	return fmt.Errorf("contract %s has ended already: %s", c.Metadata.Name, c.Status.Phase)
}

// Names are those of bookings, in order.
func Names(bookings []*v1alpha1.Contract) (out []string) {
	for _, c := range bookings {
		out = append(out, c.Metadata.Name)
	}
	return out
}
