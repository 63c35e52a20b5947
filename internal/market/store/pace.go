package store

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Budgets of what is written, so that the market never starves the cluster whose
// API it stands on: every change is a revision that etcd keeps for minutes.
const (
	// pace is how often a provider's list is written, unless it is urgent.
	pace = 10 * time.Second
	// smallPace is how often it is written when only use within what is unsold changed.
	smallPace = time.Minute
	// writesPerSecond and writesAtOnce are those of all lists and of all that is seen in
	// clusters, by all replicas.
	writesPerSecond, writesAtOnce = 100, 200
	// maxStored is what they may take together, packed.
	maxStored = 512 << 20
	// urgentPace is how often an urgent list is written, after urgentAtOnce of them.
	urgentPace, urgentAtOnce = 10 * time.Second, 6
	// seenPace is how often what a cluster's agent sees is written, after seenAtOnce.
	seenPace, seenAtOnce = 5 * time.Second, 6
)

// paces judge whether a list may be written now. Shared's lock guards them.
type paces struct {
	all *rate.Limiter
	// written is when each provider's list was last written here.
	written map[string]time.Time
	// urgent, seen and looks are the budgets of each provider or cluster.
	urgent, seen, looks map[string]*rate.Limiter
}

func newPaces() paces {
	return paces{all: rate.NewLimiter(writesPerSecond, writesAtOnce), written: map[string]time.Time{}, urgent: map[string]*rate.Limiter{}, seen: map[string]*rate.Limiter{}, looks: map[string]*rate.Limiter{}}
}

// admit lets a list be written, or says when to come again. was is the list that
// the store has, nil for none; stored is what all take now, with this one.
func (p *paces) admit(provider string, was, next *wire.FlavorReport, stored int64, now time.Time) error {
	least := pace
	switch {
	case was == nil:
		least = 0
	case urgent(was, next):
		least = 0
		if after := spend(p.urgent, provider, urgentPace, urgentAtOnce, now); after > 0 {
			return &BusyError{Because: fmt.Sprintf("the list of %s takes something back too often", provider), After: after}
		}
	case small(was, next):
		least = smallPace
	}
	if last, ok := p.written[provider]; ok {
		if wait := last.Add(least).Sub(now); wait > 0 && wait <= least {
			return &BusyError{Because: fmt.Sprintf("the list of %s is written at most every %s for what has changed", provider, least), After: wait}
		}
	}
	return p.admitAll(stored, now)
}

// admitAll lets one more object be written, after which all take so much.
func (p *paces) admitAll(stored int64, now time.Time) error {
	if stored > maxStored {
		return &BusyError{Because: fmt.Sprintf("what providers offer and what is seen in clusters take more than %d MiB of the market's store", maxStored>>20), After: smallPace}
	}
	if !p.all.AllowN(now, 1) {
		return &BusyError{Because: fmt.Sprintf("more than %.3g changes a second are reported to this replica", float64(p.all.Limit())), After: 2 * time.Second}
	}
	return nil
}

// share makes this replica's part of what all may write that of one of so many.
func (p *paces) share(replicas int, now time.Time) {
	if limit := rate.Limit(float64(writesPerSecond) / float64(max(replicas, 1))); limit != p.all.Limit() {
		p.all.SetLimitAt(now, limit)
		p.all.SetBurstAt(now, max(writesAtOnce/max(replicas, 1), 1))
	}
}

// spend takes one of a budget, or says when there will be one.
func spend(budgets map[string]*rate.Limiter, of string, every time.Duration, burst int, now time.Time) time.Duration {
	l := budgets[of]
	if l == nil {
		l = rate.NewLimiter(rate.Every(every), burst)
		budgets[of] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// urgent reports whether a list takes something back that may have been sold, or
// lets go of something: what is decided meanwhile on the former list would be
// wrong, or somebody waits for it.
func urgent(was, next *wire.FlavorReport) bool {
	now := byName(next)
	for i := range was.Flavors {
		old := &was.Flavors[i]
		f := now[old.Metadata.Name]
		if f == nil || !f.Spec.Capacity.Covers(old.Spec.Capacity) || len(old.Spec.Refused) != len(f.Spec.Refused) || old.Spec.Cordon != f.Spec.Cordon {
			return true
		}
		for slice, held := range old.Spec.Held {
			if !f.Spec.Held[slice].Covers(held) {
				return true
			}
		}
		for slice := range f.Spec.Refused {
			if _, ok := old.Spec.Refused[slice]; !ok {
				return true
			}
		}
	}
	return false
}

// small reports whether all that differs is what the provider's own pods and the
// contracts' use, and every flavor has room for it beside what is held.
func small(was, next *wire.FlavorReport) bool {
	old := byName(was)
	if len(old) != len(next.Flavors) || was.Honoured != next.Honoured || !reflect.DeepEqual(was.Demand, next.Demand) {
		return false
	}
	for i := range next.Flavors {
		f := &next.Flavors[i]
		before := old[f.Metadata.Name]
		if before == nil {
			return false
		}
		a, b := *before, *f
		a.Spec.Used, a.Spec.Usage, b.Spec.Used, b.Spec.Usage = nil, nil, nil, nil
		a.Spec.Nodes, b.Spec.Nodes = nil, nil // as the capacity, which is compared, but for use
		if !a.SameButUse(&b) || !maps.EqualFunc(a.Spec.Held, b.Spec.Held, v1alpha1.Resources.Equal) || !v1alpha1.SameOnNodes(a.Spec.HeldOn, b.Spec.HeldOn) || overfull(f) {
			return false
		}
	}
	return true
}

// overfull reports whether a flavor has less than is used and held of it.
func overfull(f *v1alpha1.Flavor) bool {
	sum := f.Spec.Used
	for _, held := range f.Spec.Held {
		sum = sum.Add(held)
	}
	return !f.Spec.Capacity.Covers(sum)
}

// byName are the flavors of a list.
func byName(r *wire.FlavorReport) map[string]*v1alpha1.Flavor {
	out := make(map[string]*v1alpha1.Flavor, len(r.Flavors))
	for i := range r.Flavors {
		out[r.Flavors[i].Metadata.Name] = &r.Flavors[i]
	}
	return out
}
