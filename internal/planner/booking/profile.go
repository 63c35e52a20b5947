package booking

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// MaxInstants is how many different starts of bookings an offer may have ahead.
const MaxInstants = 64

// Hold is capacity that a booking takes on [From, To).
type Hold struct {
	Name     string
	From, To v1alpha1.Time
	Size     quantity.Vector
}

// End is capacity that is held now and comes free at an instant.
type End struct {
	At   v1alpha1.Time
	Size quantity.Vector
}

// Profile is what of an offer is free from an instant on.
type Profile struct {
	// Now is the first instant, Free what is free then without any booking.
	Now  v1alpha1.Time
	Free quantity.Vector
	// Ends are what is known to end, Holds what is booked.
	Ends  []End
	Holds []Hold
	// Grows is what an autoscaler could add. It counts of a resource only while none of
	// that is booked: what is booked is kept of what exists.
	Grows quantity.Vector
}

// Instants are the starts of what is booked, in order; what should have begun before
// the first instant counts as that.
func (p *Profile) Instants() []v1alpha1.Time {
	out := make([]v1alpha1.Time, 0, len(p.Holds))
	for i := range p.Holds {
		h := &p.Holds[i]
		if h.To.After(p.Now.Time) {
			out = append(out, p.later(h.From))
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Time) int { return a.Compare(b.Time) })
	return slices.Compact(out)
}

// later is at, or the first instant where that is later.
func (p *Profile) later(at v1alpha1.Time) v1alpha1.Time {
	if at.Before(p.Now.Time) {
		return p.Now
	}
	return at
}

// At is what is free at an instant, as a Vector of its own: below nothing where more is
// booked than there will be.
func (p *Profile) At(at v1alpha1.Time) quantity.Vector {
	free := p.Free.Clone()
	for i := range p.Ends {
		if e := &p.Ends[i]; !e.At.After(at.Time) {
			free = free.Add(e.Size)
		}
	}
	for i := range p.Holds {
		if h := &p.Holds[i]; !p.later(h.From).After(at.Time) && h.To.After(at.Time) {
			free = free.Sub(h.Size)
		}
	}
	if p.Grows != nil {
		booked := p.Booked(at)
		for r, n := range p.Grows {
			if booked.At(r) == 0 {
				free = free.Set(r, free.At(r)+n)
			}
		}
	}
	return free
}

// looked are the instants of [from, to) at which what is free may be least; to zero is no
// end.
func (p *Profile) looked(from, to v1alpha1.Time) []v1alpha1.Time {
	return within(p.Instants(), p.later(from), to)
}

// within are an instant and the starts after it and before to.
func within(starts []v1alpha1.Time, from, to v1alpha1.Time) []v1alpha1.Time {
	out := []v1alpha1.Time{from}
	for _, at := range starts {
		if at.After(from.Time) && (to.IsZero() || at.Before(to.Time)) {
			out = append(out, at)
		}
	}
	return out
}

// Least is, resource by resource, the least that is free during [from, to), to zero being
// no end, and the instant that is the fullest: at which the free share of what is asked is
// least, by the resource of which it is.
func (p *Profile) Least(from, to v1alpha1.Time, asked quantity.Vector) (least quantity.Vector, at v1alpha1.Time) {
	return leastOf(p.looked(from, to), p.At, asked)
}

// leastOf is Least of instants.
func leastOf(looked []v1alpha1.Time, freeAt func(v1alpha1.Time) quantity.Vector, asked quantity.Vector) (least quantity.Vector, at v1alpha1.Time) {
	fullest := 0.0
	for i, t := range looked {
		free := freeAt(t)
		if s := share(free, asked); i == 0 || s < fullest {
			fullest, at = s, t
		}
		if i == 0 {
			least = free.Clone()
			continue
		}
		for r := range max(len(least), len(free)) {
			least = least.Set(r, min(least.At(r), free.At(r)))
		}
	}
	return least, at
}

// share is how often what is asked fits into what is free, by the resource of which there
// is least of it.
func share(free, asked quantity.Vector) float64 {
	least := math.Inf(1)
	for r, n := range asked {
		if n > 0 {
			least = min(least, float64(free.At(r))/float64(n))
		}
	}
	return least
}

// Until is the first instant of [from, to) at which a size does not fit, and whether there
// is one.
func (p *Profile) Until(from, to v1alpha1.Time, size quantity.Vector) (at v1alpha1.Time, short bool) {
	for _, t := range p.looked(from, to) {
		if !Fits(size, p.At(t)) {
			return t, true
		}
	}
	return at, false
}

// From is the first instant from from on, and not after last, at which a size fits for
// seconds, and whether there is one: from itself, or when something ends.
func (p *Profile) From(from, last v1alpha1.Time, seconds int64, size quantity.Vector) (at v1alpha1.Time, ok bool) {
	return p.firstFit(from, last, seconds, size, p.Until)
}

// firstFit is From by what tells where a size does not fit.
func (p *Profile) firstFit(from, last v1alpha1.Time, seconds int64, size quantity.Vector, until func(from, to v1alpha1.Time, size quantity.Vector) (v1alpha1.Time, bool)) (at v1alpha1.Time, ok bool) {
	tries := make([]v1alpha1.Time, 0, 1+len(p.Ends)+len(p.Holds))
	tries = append(tries, p.later(from))
	for i := range p.Ends {
		tries = append(tries, p.Ends[i].At)
	}
	for i := range p.Holds {
		tries = append(tries, p.Holds[i].To)
	}
	slices.SortFunc(tries, func(a, b v1alpha1.Time) int { return cmp.Compare(a.Unix(), b.Unix()) })
	for _, t := range slices.Compact(tries) {
		if t.Before(from.Time) || t.After(last.Time) {
			continue
		}
		if _, short := until(t, v1alpha1.TimeOf(t.Add(time.Duration(seconds)*time.Second)), size); !short {
			return t, true
		}
	}
	return at, false
}

// Booked is what is booked at an instant.
func (p *Profile) Booked(at v1alpha1.Time) quantity.Vector {
	var sum quantity.Vector
	for i := range p.Holds {
		if h := &p.Holds[i]; !p.later(h.From).After(at.Time) && h.To.After(at.Time) {
			sum = sum.Clone().Add(h.Size)
		}
	}
	return sum
}

// MostBooked is, resource by resource, the most that is booked during [from, to).
func (p *Profile) MostBooked(from, to v1alpha1.Time) quantity.Vector {
	return mostOf(p.looked(from, to), p.Booked)
}

// mostOf is MostBooked of instants.
func mostOf(looked []v1alpha1.Time, bookedAt func(v1alpha1.Time) quantity.Vector) quantity.Vector {
	var most quantity.Vector
	for _, t := range looked {
		for r, n := range bookedAt(t) {
			if n > most.At(r) {
				most = most.Set(r, n)
			}
		}
	}
	return most
}

// Fits reports whether there is enough of each resource that a size asks for.
func Fits(size, free quantity.Vector) bool {
	for r, n := range size {
		if n > 0 && n > free.At(r) {
			return false
		}
	}
	return true
}
