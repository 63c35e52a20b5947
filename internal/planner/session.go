package planner

import (
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Session makes plan after plan of a world that changes little in between. A
// plan is the one that Decide would make, word for word, but it costs what has
// changed since the plan before and what waits, not all that there is: offers and
// their figures, classes with their order, what the ledger holds and who is
// served as he asks are kept (base) and brought up to date (session_update.go).
//
//	same address                 same value: World's rule
//	intents, offers              compared one by one where the list is another
//	ledger, observed             by the nodes that two of them share
//	tenants, clusters            one by one: what was worked out of them
//	rules, fleet, policies,      any change: from nothing
//	flavors that come or go
//
// What cannot be brought up to date safely is read from nothing. That values at
// the same address are the same its owner checks from time to time, by a plan from
// nothing. The zero value is ready. One goroutine at a time may use a Session;
// plans may be shared.
type Session struct {
	// Fault, if set, is called with each mistake in bringing the base up to date:
	// what went wrong, with the stack. The plan was then made from nothing.
	Fault func(why string)
	// Step, if set, is called as each step of a plan begins.
	Step func(Step)
	// Disputed, if set, is called with the providers by which the tries of a plan to agree
	// with what it leaves in the ledger still differ (agree): the plan is the last of them.
	Disputed func(providers []string)

	// base is nil where the next plan is made from nothing.
	base   *base
	number uint64
	// scratch counts the plans that were made from nothing.
	scratch uint64
}

// Decide makes the plan of a world.
func (s *Session) Decide(w draft.World) *draft.Plan {
	s.number++
	StepObserve.begin(s.Step)
	if p := s.tryUpdate(&w); p != nil {
		return p
	}
	s.scratch++
	return s.decide(newRound(&w), fromNothing)
}

// decide makes the plan of a round that has read its world, and keeps what the
// next can go on with.
func (s *Session) decide(r *round, again reading) *draft.Plan {
	r.on(errand{number: s.number, step: s.Step, disputed: s.Disputed})
	r.decide()
	r = agree(r, again)
	s.base = r.handOver()
	return r.Plan
}

// fromBase brings up to date what the round leaves, where its intents are in order.
func fromBase(r *round, marks map[string]draft.RefusalMark) *round {
	w := r.given
	if next := updatedBy(r.handOver(), &w, marks); next != nil {
		return next
	}
	return newRoundBy(&w, marks)
}

// Scratch is how many plans so far were made from nothing.
func (s *Session) Scratch() uint64 { return s.scratch }

// Forget makes the next plan from nothing.
func (s *Session) Forget() { s.base = nil }

// tryUpdate plans from the base, nil where that is not possible. A mistake in
// bringing it up to date must cost time, not the round.
func (s *Session) tryUpdate(w *draft.World) (p *draft.Plan) {
	last := s.base
	s.base = nil
	defer func() {
		if why := recover(); why != nil {
			s.base, p = nil, nil
			if s.Fault != nil {
				s.Fault(fmt.Sprintf("%v\n%s", why, debug.Stack()))
			}
		}
	}()
	if last != nil && last.holdsFor(w) {
		if r := updated(last, w); r != nil {
			return s.decide(r, fromBase)
		}
	}
	return nil
}

// holdsFor reports whether what was worked out for a world that everything
// depends on holds in another.
func (b *base) holdsFor(w *draft.World) bool {
	was := b.own.given
	if w.Rules != was.Rules || w.Now.Before(was.Now.Time) || w.Fleet != was.Fleet || w.Fleet == nil || w.Deaf != was.Deaf || w.InOrder != was.InOrder ||
		!slices.Equal(w.Frozen, was.Frozen) ||
		len(w.Workload) != len(was.Workload) || len(w.Workload) > 0 && &w.Workload[0] != &was.Workload[0] ||
		!maps.Equal(w.ForceRelease, was.ForceRelease) || !slices.EqualFunc(w.Policies, was.Policies, samePolicy) {
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

// updated is a round of a world, made from what the one before it left; nil when
// it has to be made from nothing.
func updated(last *base, w *draft.World) *round { return updatedBy(last, w, nil) }

// updatedBy is updated by other marks of providers than follow from the ledger; nil is by
// those.
func updatedBy(last *base, w *draft.World, marks map[string]draft.RefusalMark) *round {
	r := startRound(w, *last)
	r.Inventory.Begin(r.inventoryFacts())
	r.Match.Begin(r.matchFacts())
	u := &update{round: r, last: last, dirty: map[[2]string]bool{}, lost: map[[2]string]bool{}}
	if !u.offersChanged() || !u.intentsChanged() || !u.tenantsChanged() {
		return nil
	}
	u.clustersChanged()
	u.ledgerChanged()
	r.OpenAccounts()
	u.refusalsChanged(marks)
	u.observedChanged()
	u.Match.DropStaleScores() // only parts of cards are scored by the workload
	u.remeasure()
	u.forget()
	r.readContracts()
	r.finishRefusals()
	return r
}
