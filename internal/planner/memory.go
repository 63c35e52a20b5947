package planner

import (
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// Memory makes plan after plan of a world that changes little in between. A
// plan is the one that Decide would make, word for word, but it costs what has
// changed since the plan before and what waits, not what stands: offers and
// their figures, shapes with their order, what the ledger holds and who is
// served as he asks are kept and brought up to date.
//
//	same address                 same value: World's rule
//	intents, offers, observed    compared one by one where the list is another
//	ledger                       by the nodes that two ledgers share
//	tenants, clusters            one by one: what was worked out of them
//	fleet, policies, flavors     any change: from nothing
//	that come or go
//
// What cannot be brought up to date safely is read from nothing. The zero value
// is ready. One goroutine at a time may use a Memory; plans may be shared.
type Memory struct {
	// Fault, if set, is told of each mistake in bringing the memory up to date:
	// what went wrong, with the stack. The plan was then made from nothing.
	Fault func(why string)

	last   *round
	number uint64
	// scratch counts the plans that were made from nothing.
	scratch uint64
}

// Decide makes the plan of a world.
func (m *Memory) Decide(w World) *Plan {
	m.number++
	if p := m.tryResume(&w); p != nil {
		return p
	}
	m.scratch++
	r := newRound(&w)
	r.number = m.number
	r.decide()
	m.keep(r)
	return r.plan
}

// Scratch is how many plans so far were made from nothing.
func (m *Memory) Scratch() uint64 { return m.scratch }

// tryResume plans from what is kept, nil where that is not possible. A mistake
// in bringing it up to date must cost time, not the round.
func (m *Memory) tryResume(w *World) (p *Plan) {
	last := m.last
	m.last = nil
	defer func() {
		if why := recover(); why != nil {
			m.last, p = nil, nil
			if m.Fault != nil {
				m.Fault(fmt.Sprintf("%v\n%s", why, debug.Stack()))
			}
		}
	}()
	if last == nil || !last.holdsFor(w) {
		return nil
	}
	r := resume(last, w)
	if r == nil {
		return nil
	}
	r.number = m.number
	r.decide()
	m.keep(r)
	return r.plan
}

// Bounds of what is kept: candidates of all shapes together, and offers in the
// list of those that were touched, as a multiple of all offers.
const (
	keptCandidates = 2_000_000
	keptTouched    = 4
)

// keep keeps a round for the next.
func (m *Memory) keep(r *round) {
	r.forgetShapes()
	if forgotten, shortened := r.inventory.ShortenTouched(keptTouched*len(r.inventory.Offers()) + 1024); shortened {
		maps.DeleteFunc(r.shapes, func(_ string, s *shape) bool { return s.seen < forgotten })
		for _, s := range r.shapes {
			s.seen = 0 // they look at these once more, which changes nothing
		}
	}
	if r.inventory.Alterations() > len(r.inventory.Offers()) {
		maps.DeleteFunc(r.shapes, func(_ string, s *shape) bool { return !r.catchUp(s) })
		for _, s := range r.shapes {
			s.altered = 0
		}
		r.inventory.ForgetAltered()
	}
	r.jobs, r.waiting, r.jobsByName, r.claims, r.warm, r.accounts = nil, nil, nil, nil, nil, nil
	r.seats, r.current, r.before = nil, nil, nil
	m.last = r
}

// forgetShapes drops those that were not asked for the longest, when there are
// too many candidates.
func (r *round) forgetShapes() {
	sum := 0
	keys := slices.Collect(maps.Keys(r.shapes))
	for _, s := range r.shapes {
		sum += s.weight()
	}
	if sum <= keptCandidates {
		return
	}
	slices.SortFunc(keys, func(a, b string) int {
		return compareNumbers(r.shapes[a].used, r.shapes[b].used, a, b)
	})
	for _, key := range keys {
		if sum <= keptCandidates {
			return
		}
		sum -= r.shapes[key].weight()
		delete(r.shapes, key)
	}
}

func compareNumbers(a, b uint64, x, y string) int {
	if a != b {
		if a < b {
			return -1
		}
		return 1
	}
	return compareNames(x, "", y, "")
}

// weight is what a shape costs to keep, in candidates.
func (s *shape) weight() int { return len(s.cands) + len(s.at)/32 }

// holdsFor reports whether what was worked out for a world that everything
// depends on holds in another.
func (r *round) holdsFor(w *World) bool {
	was := r.given
	if w.Now.Before(was.Now.Time) || w.Fleet != was.Fleet || w.Fleet == nil || w.Deaf != was.Deaf ||
		!slices.Equal(w.Frozen, was.Frozen) ||
		len(w.Workload) != len(was.Workload) || len(w.Workload) > 0 && &w.Workload[0] != &was.Workload[0] ||
		!maps.Equal(w.ForceRelease, was.ForceRelease) || !maps.Equal(w.Heard, was.Heard) || !maps.Equal(w.Reached, was.Reached) || !slices.EqualFunc(w.Policies, was.Policies, samePolicy) {
		return false
	}
	for i := range w.Fleet.Rates {
		// A rate that begins to hold changes every price.
		if at := w.Fleet.Rates[i].Date; at.After(was.Now.Time) && !at.After(w.Now.Time) {
			return false
		}
	}
	return true
}

func samePolicy(a, b model.Policy) bool {
	return reflect.DeepEqual(a.Policy, b.Policy) && samePredicate(a.Predicate, b.Predicate)
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

// resume is a round of a world, made from the one before it; nil when it has to
// be made from nothing.
func resume(last *round, w *World) *round {
	r := startRound(w)
	r.names, r.defaults, r.latencies, r.tariffs = last.names, last.defaults, last.latencies, last.tariffs
	r.shapes, r.key = last.shapes, last.key
	r.inventory, r.traits = last.inventory, last.traits
	r.inventory.Begin(r.facts())
	r.refusals, r.marks, r.mapped, r.nothing = last.refusals, last.marks, last.mapped, last.nothing
	r.tally, r.intents, r.verdicts, r.orphans, r.renames, r.relatives, r.related, r.whole, r.load = last.tally, last.intents, last.verdicts, last.orphans, last.renames, last.relatives, last.related, last.whole, last.load
	u := &update{round: r, last: last, dirty: map[[2]string]bool{}, lost: map[[2]string]bool{}}
	if !u.offersChanged() || !u.intentsChanged() || !u.tenantsChanged() {
		return nil
	}
	u.clustersChanged()
	u.ledgerChanged()
	r.openAccounts()
	u.refusalsChanged()
	u.observedChanged()
	u.workloadChanged()
	u.remeasure()
	u.forget()
	r.readContracts()
	r.finishRefusals()
	return r
}
