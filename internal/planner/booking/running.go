package booking

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Running is a Profile to which bookings are added one after the other, as a search makes
// them, and from which they are taken: what was summed up for an instant is brought up to
// date, and not summed again. It answers as the Profile with these bookings does; the Profile
// itself is not changed.
type Running struct {
	p      Profile
	starts []v1alpha1.Time
	begin  map[v1alpha1.Time]int // how many bookings start at an instant of starts
	sums   map[v1alpha1.Time]sums
}

// maxSums bounds for how many instants sums are kept: whoever asks for many that nothing
// starts at makes no further booking more expensive.
const maxSums = 4 * MaxInstants

// sums are what is free and booked at an instant.
type sums struct{ free, booked quantity.Vector }

// Follow is what a Profile without growth is before anything is added.
func Follow(p *Profile) *Running {
	q := *p
	q.Holds, q.Grows = slices.Clone(p.Holds), nil
	r := &Running{p: q, starts: q.Instants(), begin: map[v1alpha1.Time]int{}, sums: map[v1alpha1.Time]sums{}}
	for i := range q.Holds {
		if h := &q.Holds[i]; h.To.After(q.Now.Time) {
			r.begin[q.later(h.From)]++
		}
	}
	return r
}

// Add adds a booking.
func (r *Running) Add(h Hold) {
	r.p.Holds = append(r.p.Holds, h)
	if !h.To.After(r.p.Now.Time) {
		return
	}
	from := r.p.later(h.From)
	if r.begin[from]++; r.begin[from] == 1 {
		at, _ := slices.BinarySearchFunc(r.starts, from, compare)
		r.starts = slices.Insert(r.starts, at, from)
	}
	for at, s := range r.sums {
		if !from.After(at.Time) && h.To.After(at.Time) {
			r.sums[at] = sums{s.free.Clone().Sub(h.Size), s.booked.Clone().Add(h.Size)}
		}
	}
}

// Remove takes away a booking that is there, by its name: the one that was added last is
// found at once.
func (r *Running) Remove(name string) {
	i := len(r.p.Holds) - 1
	for i >= 0 && r.p.Holds[i].Name != name {
		i--
	}
	if i < 0 {
		return
	}
	h := r.p.Holds[i]
	r.p.Holds = slices.Delete(r.p.Holds, i, i+1)
	if !h.To.After(r.p.Now.Time) {
		return
	}
	from := r.p.later(h.From)
	if r.begin[from]--; r.begin[from] == 0 {
		delete(r.begin, from)
		at, _ := slices.BinarySearchFunc(r.starts, from, compare)
		r.starts = slices.Delete(r.starts, at, at+1)
	}
	for at, s := range r.sums {
		if !from.After(at.Time) && h.To.After(at.Time) {
			r.sums[at] = sums{s.free.Clone().Add(h.Size), s.booked.Clone().Sub(h.Size)}
		}
	}
}

// Starts are the starts of what is booked, in order; they are not to be changed.
func (r *Running) Starts() []v1alpha1.Time { return r.starts }

// at is what is free and booked at an instant.
func (r *Running) at(t v1alpha1.Time) sums {
	s, known := r.sums[t]
	if !known {
		if len(r.sums) >= maxSums {
			clear(r.sums)
		}
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

// At is Profile.At; what it returns is not to be changed.
func (r *Running) At(t v1alpha1.Time) quantity.Vector { return r.at(t).free }

// Until is Profile.Until.
func (r *Running) Until(from, to v1alpha1.Time, size quantity.Vector) (at v1alpha1.Time, short bool) {
	for _, t := range r.looked(from, to) {
		if !Fits(size, r.at(t).free) {
			return t, true
		}
	}
	return at, false
}

// From is Profile.From.
func (r *Running) From(from, last v1alpha1.Time, seconds int64, size quantity.Vector) (at v1alpha1.Time, ok bool) {
	return r.p.firstFit(from, last, seconds, size, r.Until)
}

// Tries is how many instants From may try.
func (r *Running) Tries() int { return 1 + len(r.p.Ends) + len(r.p.Holds) }

// MostBooked is Profile.MostBooked.
func (r *Running) MostBooked(from, to v1alpha1.Time) quantity.Vector {
	return mostOf(r.looked(from, to), func(t v1alpha1.Time) quantity.Vector { return r.at(t).booked })
}

func compare(a, b v1alpha1.Time) int { return a.Compare(b.Time) }
