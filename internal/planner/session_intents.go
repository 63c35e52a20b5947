package planner

import (
	"reflect"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// intentsChanged takes over the intents; false when they are not in order.
func (u *update) intentsChanged() bool {
	old, now := u.last.own.given.Intents, u.W.Intents
	slices.SortFunc(u.pools, compareName)
	if len(u.pools) == 0 && len(u.last.own.pools) == 0 && len(old) == len(now) && (len(now) == 0 || &old[0] == &now[0]) {
		return true
	}
	// Nearly all are the same values, and at both ends: only what lies between is
	// walked. Those of warm pools are others each time.
	from, tail := 0, 0
	for from < min(len(u.Intents), len(now)) && u.Intents[from] == now[from] {
		from++
	}
	for tail < min(len(u.Intents), len(now))-from && u.Intents[len(u.Intents)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	now = now[from : len(now)-tail]
	w := &intentWalk{update: u, from: from, at: from, end: len(u.Intents) - tail}
	w.intents, w.cached = make([]*model.Intent, 0, len(now)+len(u.pools)), make([]cachedDecision, 0, len(now)+len(u.pools))
	pools := u.pools
	for _, in := range now {
		for len(pools) > 0 && compareName(pools[0], in) < 0 {
			if !w.next(pools[0]) {
				return false
			}
			pools = pools[1:]
		}
		if !w.next(in) {
			return false
		}
	}
	for _, in := range pools {
		if !w.next(in) {
			return false
		}
	}
	return w.done()
}

// intentWalk walks the intents as they were and as they are side by side.
type intentWalk struct {
	*update
	// from and end are where in the old list what is walked begins and ends, at is
	// how far it was walked.
	from, at, end int
	intents       []*model.Intent
	cached        []cachedDecision
}

// next takes over one as it is; false when it is not in order.
func (w *intentWalk) next(in *model.Intent) bool {
	old := w.update.Intents
	for w.at < w.end && old[w.at].ResourceIntent != in.ResourceIntent && compareName(old[w.at], in) < 0 {
		w.gone(old[w.at])
		w.at++
	}
	known := w.at < w.end && old[w.at].ResourceIntent == in.ResourceIntent
	if !known && !w.follows(in) {
		return false
	}
	if known || w.at < w.end && compareName(old[w.at], in) == 0 {
		was, v := old[w.at], w.update.cached[w.at]
		w.at++
		if sameIntent(was, in) {
			w.intents, w.cached = append(w.intents, was), append(w.cached, v)
			return true
		}
		w.gone(was)
	}
	w.came(in)
	w.intents, w.cached = append(w.intents, in), append(w.cached, cachedDecision{})
	return true
}

// follows reports whether one goes after all that was taken over.
func (w *intentWalk) follows(in *model.Intent) bool {
	if n := len(w.intents); n > 0 {
		return compareName(w.intents[n-1], in) < 0
	}
	return w.from == 0 || compareName(w.update.Intents[w.from-1], in) < 0
}

// done puts what was walked in the place of what was there.
func (w *intentWalk) done() bool {
	u := w.update
	if w.end < len(u.Intents) && !w.follows(u.Intents[w.end]) {
		return false
	}
	for ; w.at < w.end; w.at++ {
		w.gone(u.Intents[w.at])
	}
	u.Intents, u.cached = slices.Replace(u.Intents, w.from, w.end, w.intents...), slices.Replace(u.cached, w.from, w.end, w.cached...)
	return true
}

// sameIntent reports whether two read intents are one and the same.
func sameIntent(a, b *model.Intent) bool {
	return a == b || a.ResourceIntent == b.ResourceIntent && a.Path == b.Path && a.Digest == b.Digest && a.Commit == b.Commit && a.Author == b.Author && a.Since == b.Since && a.Offered == b.Offered &&
		a.Problem == b.Problem && a.ProblemCode == b.ProblemCode && samePredicate(a.Where, b.Where)
}

// samePredicate is cautious: of predicates that cannot be compared nothing is
// known.
func samePredicate(a, b model.Predicate) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Comparable() && y.Comparable() && a == b
}

// gone and came take an intent out and in. Its relations to others are to be
// found again: they may name it.
func (u *update) gone(in *model.Intent) {
	delete(u.renames, in.Key())
	delete(u.Relatives, in.Key())
	u.lost[in.Key()], u.Related = true, nil
	u.typicalChanged()
}

func (u *update) came(in *model.Intent) {
	u.note(in)
	u.lost[in.Key()], u.Related = true, nil
	u.typicalChanged()
}

// typicalChanged notes that other requests may be typical, unless the world states which are.
func (u *update) typicalChanged() {
	if len(u.W.Workload) == 0 {
		u.Match.ForgetWorkload()
	}
}
