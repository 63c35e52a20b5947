package forecast

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// longest is how far back a history goes at the most.
const longest = 28 * day * time.Hour

// day is its hours.
const day = 24

// History is what contracts of one kind did in each full hour of a window.
type History struct {
	// From is when the first hour began, UTC.
	From v1alpha1.Time
	// Held is how many GPUs were held on average, by hour.
	Held []float64
}

// Shape is contracts of one size.
type Shape struct {
	// Tenant that holds them.
	Tenant string
	// Model of the GPUs such as nvidia-h100.
	Model string
	// Count of units in each contract.
	Count int64
}

// ShapeOf is a contract's shape. It has none when it has no GPUs or is one of
// the fleet's own warm slices.
func ShapeOf(c *v1alpha1.Contract) (Shape, bool) {
	if c.Spec.GPUs == nil || c.Spec.GPUs.Count <= 0 || c.Metadata.Namespace == v1alpha1.FleetTenant {
		return Shape{}, false
	}
	return Shape{c.Metadata.Namespace, c.Spec.GPUs.Model, c.Spec.GPUs.Count}, true
}

// Histories are those of a ledger's contracts up to the hour in which now is,
// by what kind says of them (false: not counted). keep is how long ended
// contracts stay in the ledger; zero is the default. GPUs are counted in units.
func Histories[K comparable](l *ledger.Ledger, now v1alpha1.Time, keep time.Duration, kind func(*v1alpha1.Contract) (K, bool)) map[K]*History {
	keep = ledger.Retention(keep)
	until := now.UTC().Truncate(time.Hour)
	// Of the window's first hour something may have left the tree already.
	from := until.Add(-min(keep, longest)).Truncate(time.Hour).Add(time.Hour)
	first := until
	of := map[K][]*v1alpha1.Contract{}
	for c := range l.Contracts() {
		start, end := spanOf(c, until)
		if !start.Before(until) || start.Before(from) && !end.After(from) {
			continue
		}
		if start.Before(first) {
			first = start
		}
		if k, ok := kind(c); ok {
			of[k] = append(of[k], c)
		}
	}
	if first.After(from) {
		from = first.Truncate(time.Hour)
	}
	out := map[K]*History{}
	for k, list := range of {
		out[k] = historyOf(list, from, until)
	}
	return out
}

// historyOf is that of contracts that reach into the hours from from until
// until.
func historyOf(list []*v1alpha1.Contract, from, until time.Time) *History {
	hours := int(until.Sub(from) / time.Hour)
	h := &History{From: v1alpha1.TimeOf(from), Held: make([]float64, hours)}
	seconds := make([]int64, hours)
	for _, c := range list {
		start, end := spanOf(c, until)
		if c.Spec.GPUs != nil {
			lay(seconds, from, start, end, c.Spec.GPUs.Count)
		}
	}
	for i, s := range seconds {
		h.Held[i] = float64(s) / time.Hour.Seconds()
	}
	return h
}

// spanOf is from when until when a contract kept capacity, cut at until.
func spanOf(c *v1alpha1.Contract, until time.Time) (start, end time.Time) {
	start, end = c.Spec.Term.Start.UTC(), until
	if ledger.Ended(c.Status.Phase) && c.Status.Since.Before(until) {
		end = c.Status.Since.UTC()
	}
	return start, end
}

// lay adds units for the seconds from start to end to each hour they fall in.
func lay(hours []int64, from, start, end time.Time, units int64) {
	if start.Before(from) {
		start = from
	}
	for at := start; at.Before(end); {
		i := int(at.Sub(from) / time.Hour)
		next := from.Add(time.Duration(i+1) * time.Hour)
		if end.Before(next) {
			next = end
		}
		hours[i] += units * int64(next.Sub(at)/time.Second)
		at = next
	}
}
