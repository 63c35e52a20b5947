package planner_test

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// newBooking is a story of any kind in which, half of the time, intents book ahead.
func newBooking(t *rapid.T) *story {
	s := newSharing(t)
	if s.books = rapid.Bool().Draw(t, "books"); !s.books {
		return s
	}
	s.W.Tenants = maps.Clone(s.W.Tenants)
	for _, name := range []string{"ada", "bob"} {
		tenant := *s.W.Tenants[name]
		quota := v1alpha1.TenantQuota{}
		if tenant.Spec.Quota != nil {
			quota = *tenant.Spec.Quota
		}
		quota.Book = true
		tenant.Spec.Quota, s.W.Tenants[name] = &quota, &tenant
	}
	return s
}

// No plan of a story in which intents book ahead, providers deny and drain, and operators
// force is followed by another that changes something, and none catches itself. (That
// nothing is oversold at any instant is asked in package ahead.)
func TestBookedStories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newBooking(t)
		for range rapid.IntRange(1, 14).Draw(t, "length") {
			said := s.oftenDenied()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 30, 600, 3600, 6 * 3600, 23 * 3600, 200 * 3600}).Draw(t, "seconds")) * time.Second)
			p := s.Plan()
			s.Apply(p)
			for _, d := range p.Intents {
				if d.Code == lifecycle.CodeInvariant {
					t.Fatalf("after %q the planner caught itself:\n%s", said, describe(p))
				}
			}
			if again := s.planAgain(p); again.Changes() {
				t.Fatalf("after %q planning again changes:\n%s\n%s", said, describe(again), describe(p))
			}
		}
	})
}

// oftenDenied is an event of which more than half are intents, deliveries and denials.
func (s *story) oftenDenied() string {
	t := s.t
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		provider := s.W.Offers[rapid.IntRange(0, len(s.W.Offers)-1).Draw(t, "offer")].Flavor.Metadata.Namespace
		s.denies(provider)
		return "denied by " + provider
	case 1, 2:
		ref := s.name()
		s.Intent(ref, s.anyIntent, s.crowd)
		return "intent " + ref
	case 3:
		s.Deliver()
		return "deliver"
	}
	return s.event()
}

// anyBooking lets an intent book ahead, or yield to those that do, or neither.
func (s *story) anyBooking(in *model.Intent) {
	switch t := s.t; rapid.SampledFrom([]string{"", "books", "books", "yields"}).Draw(t, "ahead") {
	case "books":
		in.Spec.Schedule = v1alpha1.Schedule{
			NotBefore: v1alpha1.TimeOf(s.W.Now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "start")) * time.Hour)),
			Duration:  v1alpha1.Duration{Duration: time.Duration(rapid.IntRange(1, 48).Draw(t, "length")) * time.Hour},
			Book:      true,
		}
	case "yields":
		in.Spec.Preemption = &v1alpha1.Preemption{Yields: "booked"}
	}
}
