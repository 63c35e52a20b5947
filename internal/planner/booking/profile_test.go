package booking_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

var noon = v1alpha1.TimeOf(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))

func hour(n int) v1alpha1.Time { return v1alpha1.TimeOf(noon.Add(time.Duration(n) * time.Hour)) }

func drawn(t *rapid.T) *booking.Profile {
	p := &booking.Profile{Now: noon, Free: quantity.Vector{int64(rapid.IntRange(-2, 8).Draw(t, "free"))}}
	for range rapid.IntRange(0, 4).Draw(t, "ends") {
		p.Ends = append(p.Ends, booking.End{At: hour(rapid.IntRange(0, 20).Draw(t, "end")), Size: quantity.Vector{int64(rapid.IntRange(1, 4).Draw(t, "size"))}})
	}
	for range rapid.IntRange(0, 5).Draw(t, "holds") {
		from := rapid.IntRange(-3, 20).Draw(t, "from")
		p.Holds = append(p.Holds, booking.Hold{From: hour(from), To: hour(from + rapid.IntRange(1, 8).Draw(t, "length")), Size: quantity.Vector{int64(rapid.IntRange(1, 4).Draw(t, "size"))}})
	}
	return p
}

// free is what is free at an hour, hour by hour.
func free(p *booking.Profile, n int) int64 {
	sum := p.Free[0]
	for _, e := range p.Ends {
		if !e.At.After(hour(n).Time) {
			sum += e.Size[0]
		}
	}
	for _, h := range p.Holds {
		if !h.From.After(hour(n).Time) && h.To.After(hour(n).Time) {
			sum -= h.Size[0]
		}
	}
	return sum
}

// TestProfile_LooksAtEveryInstantThatMatters: the least of an interval, where it is, the
// first instant that is short, and the first start that would do, are those that looking at
// each hour finds.
func TestProfile_LooksAtEveryInstantThatMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		from := rapid.IntRange(0, 20).Draw(t, "interval from")
		to := from + rapid.IntRange(1, 10).Draw(t, "hours")
		size := int64(rapid.IntRange(1, 8).Draw(t, "asked"))
		least, first := free(p, from), -1
		for n := from; n < to; n++ {
			least = min(least, free(p, n))
			if first < 0 && free(p, n) < size {
				first = n
			}
		}
		got, at := p.Least(hour(from), hour(to), quantity.Vector{1})
		if got[0] != least || p.At(at)[0] != least {
			t.Fatalf("least %d at %v, want %d", got[0], at, least)
		}
		until, short := p.Until(hour(from), hour(to), quantity.Vector{size})
		if short != (first >= 0) || short && until != hour(first) {
			t.Fatalf("short at %v (%v), want hour %d", until, short, first)
		}
		length, soonest := to-from, -1
		for n := from; n <= 40 && soonest < 0; n++ {
			fits := true
			for k := n; k < n+length; k++ {
				fits = fits && free(p, k) >= size
			}
			if fits {
				soonest = n
			}
		}
		start, ok := p.From(hour(from), hour(40), int64(length*3600), quantity.Vector{size})
		if ok != (soonest >= 0) || ok && start != hour(soonest) {
			t.Fatalf("from %v (%v), want hour %d", start, ok, soonest)
		}
	})
}

// TestProfile_HasNoEnd: what stays permanently meets every booking that is to come.
func TestProfile_HasNoEnd(t *testing.T) {
	t.Parallel()
	p := &booking.Profile{Now: noon, Free: quantity.Vector{8}, Holds: []booking.Hold{{From: hour(5000), To: hour(5001), Size: quantity.Vector{3}}}}
	if at, short := p.Until(noon, v1alpha1.Time{}, quantity.Vector{6}); !short || at != hour(5000) {
		t.Errorf("short %v at %v", short, at)
	}
	if _, short := p.Until(noon, v1alpha1.Time{}, quantity.Vector{5}); short {
		t.Error("what is left beside it is not free")
	}
	if most := p.MostBooked(noon, hour(6000)); most.At(0) != 3 {
		t.Errorf("most booked %v", most)
	}
	if n := len(p.Instants()); n != 1 {
		t.Errorf("%d instants", n)
	}
}

// TestRunning_IsTheProfileWithWhatWasAdded: bookings added one after the other, and some
// taken away again, with questions in between, leave what the profile with all that is left
// of them has.
func TestRunning_IsTheProfileWithWhatWasAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		for i := range p.Holds {
			p.Holds[i].Name = fmt.Sprint("there ", i)
		}
		r := booking.Follow(p)
		all := *p
		for n := range rapid.IntRange(0, 12).Draw(t, "added") {
			if len(all.Holds) > 0 && rapid.Bool().Draw(t, "taken away") {
				i := rapid.IntRange(0, len(all.Holds)-1).Draw(t, "which")
				r.Remove(all.Holds[i].Name)
				all.Holds = slices.Delete(slices.Clone(all.Holds), i, i+1)
			}
			from := rapid.IntRange(-3, 20).Draw(t, "added from")
			h := booking.Hold{Name: fmt.Sprint("added ", n), From: hour(from), To: hour(from + rapid.IntRange(1, 8).Draw(t, "added length")), Size: quantity.Vector{int64(rapid.IntRange(1, 4).Draw(t, "added size"))}}
			all.Holds = append(slices.Clone(all.Holds), h)
			r.Add(h)
			from = rapid.IntRange(-1, 20).Draw(t, "asked from")
			to := hour(from + rapid.IntRange(1, 10).Draw(t, "asked hours"))
			asked := quantity.Vector{int64(rapid.IntRange(1, 8).Draw(t, "asked"))}
			got, at := r.Least(hour(from), to, asked)
			if want, then := all.Least(hour(from), to, asked); !slices.Equal(got, want) || at != then {
				t.Fatalf("least %v at %v, want %v at %v", got, at, want, then)
			}
			if got, want := r.MostBooked(hour(from), to), all.MostBooked(hour(from), to); got.At(0) != want.At(0) {
				t.Fatalf("most booked %v, want %v", got, want)
			}
			if got, want := r.Starts(), all.Instants(); !slices.Equal(got, want) {
				t.Fatalf("starts %v, want %v", got, want)
			}
			first, lacks := r.Until(hour(from), to, asked)
			if want, short := all.Until(hour(from), to, asked); lacks != short || first != want {
				t.Fatalf("short at %v (%v), want %v (%v)", first, lacks, want, short)
			}
		}
	})
}
