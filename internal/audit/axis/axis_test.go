package axis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/axis"
)

var noon = v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func hours(n int) v1alpha1.Time { return v1alpha1.TimeOf(noon.Add(time.Duration(n) * time.Hour)) }

func amount(n int64) v1alpha1.Resources {
	return v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(n)}
}

// contract has so many of eight cards from an hour on, until another (0: no end).
func contract(name string, phase v1alpha1.Phase, cards int64, from, to int) *v1alpha1.Contract {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ContractSpec{Provider: "paris", Flavor: "h100", Slice: name, Resources: amount(cards)}}
	c.Spec.Term.Start = hours(from)
	if to != 0 {
		c.Spec.Term.End = hours(to)
	}
	c.Status.Phase = phase
	c.Decision.Offer = v1alpha1.OfferFigures{Capacity: amount(8)}
	if phase == v1alpha1.PhaseBooked {
		c.Decision.Offer.At = hours(from)
	}
	return c
}

// TestFaults: an instant at which bookings begin is judged like the present, for what a
// commit books, places, enlarges or extends; what has no end is always in the way.
func TestFaults(t *testing.T) {
	t.Parallel()
	const booked, active = v1alpha1.PhaseBooked, v1alpha1.PhaseActive
	for name, tc := range map[string]struct {
		before, c *v1alpha1.Contract
		others    []*v1alpha1.Contract
		want      string
	}{
		"alone":                    {nil, contract("a", booked, 8, 10, 20), nil, ""},
		"beside what ends before":  {nil, contract("a", booked, 8, 10, 20), []*v1alpha1.Contract{contract("b", active, 8, 0, 10)}, ""},
		"beside what ends later":   {nil, contract("a", booked, 8, 10, 20), []*v1alpha1.Contract{contract("b", active, 1, 0, 11)}, "gpu of paris/h100 at 2026-11-20T22:00:00Z: contracts hold and have booked 9"},
		"beside what has no end":   {nil, contract("a", booked, 8, 10, 20), []*v1alpha1.Contract{contract("b", active, 1, 0, 0)}, "have booked 9"},
		"over a later booking":     {nil, contract("a", booked, 5, 10, 20), []*v1alpha1.Contract{contract("b", booked, 4, 15, 30)}, "at 2026-11-21T03:00:00Z: contracts hold and have booked 9"},
		"one begins as one ends":   {nil, contract("a", booked, 8, 10, 20), []*v1alpha1.Contract{contract("b", booked, 8, 20, 30), contract("c", booked, 8, 5, 10)}, ""},
		"placed until it begins":   {nil, contract("a", active, 8, 0, 10), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, ""},
		"placed beyond it":         {nil, contract("a", active, 8, 0, 11), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, "have booked 16"},
		"placed for good":          {nil, contract("a", active, 1, 0, 0), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, "have booked 9"},
		"extended over it":         {contract("a", active, 8, 0, 9), contract("a", active, 8, 0, 12), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, "have booked 16"},
		"enlarged under it":        {contract("a", active, 1, 0, 12), contract("a", active, 2, 0, 12), []*v1alpha1.Contract{contract("b", booked, 7, 10, 20)}, "have booked 9"},
		"unchanged":                {contract("a", active, 8, 0, 12), contract("a", active, 8, 0, 12), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, ""},
		"a booking that begins":    {contract("a", booked, 8, 1, 12), contract("a", v1alpha1.PhaseReserved, 8, 1, 12), []*v1alpha1.Contract{contract("b", booked, 8, 10, 20)}, ""},
		"one that should have":     {nil, contract("a", active, 1, 0, 1), []*v1alpha1.Contract{contract("b", booked, 8, -1, 20)}, "at 2026-11-20T12:00:00Z: contracts hold and have booked 9"},
		"beside what is let go":    {nil, contract("a", booked, 8, 10, 20), []*v1alpha1.Contract{contract("b", v1alpha1.PhaseReleasing, 8, 0, 0)}, ""},
		"figures leave too little": {nil, told(contract("a", booked, 8, 10, 20), 1, 10), nil, "books 8 gpu of paris/h100, of which its own figures for 2026-11-20T22:00:00Z leave 7"},
		"figures of another day":   {nil, told(contract("a", booked, 8, 10, 20), 0, 20), nil, "its figures are those of 2026-11-21T08:00:00Z, which is outside of its term"},
	} {
		held, ahead := map[string]*v1alpha1.Contract{}, map[string]*v1alpha1.Contract{}
		for _, c := range append(tc.others, tc.c) {
			if c.Status.Phase == booked {
				ahead[c.Metadata.Name] = c
			} else {
				held[c.Metadata.Name] = c
			}
		}
		got := strings.Join(axis.Faults(noon, tc.before, tc.c, held, ahead), "; ")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// told is a booking whose figures name what others hold at an hour.
func told(c *v1alpha1.Contract, held int64, at int) *v1alpha1.Contract {
	c.Decision.Offer.Held, c.Decision.Offer.At = amount(held), hours(at)
	return c
}
