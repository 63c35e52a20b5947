package planner_test

import (
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
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
