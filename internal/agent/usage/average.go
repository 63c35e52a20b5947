package usage

import (
	"math"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	// Window in which what was taken before loses all but a third of its weight.
	Window = time.Hour
	// steps are in which use is told, of what is held: a figure that moves a
	// little must not make a report of its own.
	steps = 20
)

// Average is what a contract took of what it holds, as time goes on. The zero
// Average knows nothing yet.
type Average struct {
	at          time.Time
	held, takes v1alpha1.Resources
	mean        map[string]float64
	told        v1alpha1.Resources
}

// Next is the average at an instant from which on a contract holds so much and
// takes so much of it. An instant before the last one counts as that.
func (a Average) Next(now time.Time, held, takes v1alpha1.Resources) Average {
	keep := 1.0
	if now.After(a.at) {
		keep = math.Exp(-float64(now.Sub(a.at)) / float64(Window))
	} else {
		now = a.at
	}
	next := Average{at: now, held: held, takes: takes, mean: make(map[string]float64, len(held)), told: make(v1alpha1.Resources, len(held))}
	for name, h := range held {
		most := float64(h.Int64())
		mean := most
		if was, known := a.mean[name]; known {
			before := float64(a.held[name].Int64())
			took := min(float64(a.takes[name].Int64()), before)
			mean = min(took+(was-took)*keep+max(0, most-before), most)
		}
		next.mean[name] = mean
		next.told[name] = a.tell(name, h, mean)
	}
	return next
}

// tell rounds a mean up to a step, and stays with what was told while that is
// neither too little nor far too much.
func (a Average) tell(name string, held v1alpha1.Amount, mean float64) v1alpha1.Amount {
	step := max(held.Int64()/steps, 1)
	if told, was := a.told[name]; was && a.held[name] == held {
		if t := float64(told.Int64()); mean <= t && mean > t-2*float64(step) {
			return told
		}
	}
	up := int64(math.Ceil(mean/float64(step))) * step
	return v1alpha1.AmountOf(min(up, held.Int64()))
}

// Told is the average as it is reported: never less than it is, and never more
// than is held. Not to be modified.
func (a Average) Told() v1alpha1.Resources { return a.told }
