package draft

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Calendar is what is booked ahead, by flavor and start.
type Calendar struct {
	// Timezone is the fleet's.
	Timezone string
	Bookings []*v1alpha1.Contract
}

// CalendarOf is that of bookings, in the fleet's timezone; nil where there are none. What
// is no booking is left out.
func CalendarOf(timezone string, contracts []*v1alpha1.Contract) *Calendar {
	c := &Calendar{Timezone: timezone}
	for _, b := range contracts {
		if b.Status.Phase == v1alpha1.PhaseBooked {
			c.Bookings = append(c.Bookings, b)
		}
	}
	if len(c.Bookings) == 0 {
		return nil
	}
	slices.SortFunc(c.Bookings, func(a, b *v1alpha1.Contract) int {
		return cmp.Or(strings.Compare(a.Spec.Provider, b.Spec.Provider), strings.Compare(a.Spec.Flavor, b.Spec.Flavor),
			a.Spec.Term.Start.Compare(b.Spec.Term.Start.Time), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return c
}

// AddCalendar writes down what is booked after the plan.
func (r Axis) AddCalendar() {
	if !r.AnyBookings() && r.W.Ledger.Booked() == 0 {
		return
	}
	changed := map[string]bool{}
	var list []*v1alpha1.Contract
	for i := range r.Plan.Contracts {
		ch := &r.Plan.Contracts[i]
		changed[ch.Last().Metadata.Name] = true
		if ch.After != nil {
			list = append(list, ch.After)
		}
	}
	for _, c := range r.W.Ledger.Bookings() {
		if !changed[c.Metadata.Name] {
			list = append(list, c)
		}
	}
	r.Plan.Calendar = CalendarOf(r.Fleet.Timezone, list)
}
