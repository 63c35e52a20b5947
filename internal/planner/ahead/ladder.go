package ahead

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// ladder is what is booked on an offer, in the order in which it is kept, and what is free
// beside the first of it. Whoever asks for one booking after the other, in about that order,
// takes a step for each and does not sum up all that comes before it: of an offer that got
// smaller each of its bookings is asked for.
type ladder struct {
	rungs []rung
	free  *booking.Running // beside what is held, and the first n rungs
	n     int
}

// rung is a booking, and what its place in the order goes by (Compare).
type rung struct {
	standing int32
	since    v1alpha1.Time
	hold     booking.Hold
}

func compareRungs(a, b rung) int {
	return cmp.Or(cmp.Compare(b.standing, a.standing), a.since.Compare(b.since.Time), strings.Compare(a.hold.Name, b.hold.Name))
}

// holdOf is what a booking takes of an offer.
func holdOf(a draft.Axis, o *inventory.Offer, c *v1alpha1.Contract) booking.Hold {
	return booking.Hold{Name: c.Metadata.Name, From: c.Spec.Term.Start, To: c.Spec.Term.End, Size: a.Ahead(o, c)}
}

func rungOf(a draft.Axis, o *inventory.Offer, c *v1alpha1.Contract) rung {
	return rung{a.Standing(c), c.Status.Since, holdOf(a, o, c)}
}

// newLadder is that of an offer as it is now.
func newLadder(a draft.Axis, o *inventory.Offer) *ladder {
	l := &ladder{}
	booked := map[string]bool{}
	for _, c := range a.ContractsOn(o) {
		if c.Status.Phase == v1alpha1.PhaseBooked {
			l.rungs = append(l.rungs, rungOf(a, o, c))
			booked[c.Metadata.Name] = true
		}
	}
	slices.SortFunc(l.rungs, compareRungs)
	l.free = booking.Follow(a.Profile(o, booked))
	return l
}

// below is what is free beside what is held and what is kept before a booking. It is good
// until the next question.
func (l *ladder) below(x rung) *booking.Running {
	i, _ := slices.BinarySearchFunc(l.rungs, x, compareRungs)
	for ; l.n < i; l.n++ {
		l.free.Add(l.rungs[l.n].hold)
	}
	for ; l.n > i; l.n-- {
		l.free.Remove(l.rungs[l.n-1].hold.Name)
	}
	return l.free
}

// add adds a booking.
func (l *ladder) add(x rung) {
	i, _ := slices.BinarySearchFunc(l.rungs, x, compareRungs)
	l.rungs = slices.Insert(l.rungs, i, x)
	if i < l.n {
		l.free.Add(x.hold)
		l.n++
	}
}

// remove takes a booking away, and reports whether it was there.
func (l *ladder) remove(x rung) bool {
	i, is := slices.BinarySearchFunc(l.rungs, x, compareRungs)
	if !is {
		return false
	}
	l.rungs = slices.Delete(l.rungs, i, i+1)
	if i < l.n {
		l.free.Remove(x.hold.Name)
		l.n--
	}
	return true
}
