package booking

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Running is a Profile to which bookings are added one after the other, as a search makes
// them: what was summed up for an instant is brought up to date, and not summed again. It
// answers as the Profile with these bookings does; the Profile itself is not changed.
type Running struct {
	p      Profile
	starts []v1alpha1.Time
	sums   map[v1alpha1.Time]sums
}

// sums are what is free and booked at an instant.
type sums struct{ free, booked quantity.Vector }

// Follow is what a Profile without growth is before anything is added.
func Follow(p *Profile) *Running {
	q := *p
	q.Holds, q.Grows = slices.Clip(p.Holds), nil
	return &Running{p: q, starts: q.Instants(), sums: map[v1alpha1.Time]sums{}}
}

// Add adds a booking.
func (r *Running) Add(h Hold) {
	r.p.Holds = append(r.p.Holds, h)
	if !h.To.After(r.p.Now.Time) {
		return
	}
	from := r.p.later(h.From)
	if at, known := slices.BinarySearchFunc(r.starts, from, compare); !known {
		r.starts = slices.Insert(r.starts, at, from)
	}
	for at, s := range r.sums {
		if !from.After(at.Time) && h.To.After(at.Time) {
			r.sums[at] = sums{s.free.Clone().Sub(h.Size), s.booked.Clone().Add(h.Size)}
		}
	}
}

// Starts are the starts of what is booked, in order; they are not to be changed.
func (r *Running) Starts() []v1alpha1.Time { return r.starts }

// at is what is free and booked at an instant.
func (r *Running) at(t v1alpha1.Time) sums {
	s, known := r.sums[t]
	if !known {
		s = sums{r.p.At(t), r.p.Booked(t)}
		r.sums[t] = s
	}
	return s
}

// looked are the instants of [from, to) at which what is free may be least.
func (r *Running) looked(from, to v1alpha1.Time) []v1alpha1.Time {
	return within(r.starts, r.p.later(from), to)
}

// Least is Profile.Least.
func (r *Running) Least(from, to v1alpha1.Time, asked quantity.Vector) (least quantity.Vector, at v1alpha1.Time) {
	return leastOf(r.looked(from, to), func(t v1alpha1.Time) quantity.Vector { return r.at(t).free }, asked)
}

// MostBooked is Profile.MostBooked.
func (r *Running) MostBooked(from, to v1alpha1.Time) quantity.Vector {
	return mostOf(r.looked(from, to), func(t v1alpha1.Time) quantity.Vector { return r.at(t).booked })
}

func compare(a, b v1alpha1.Time) int { return a.Compare(b.Time) }
