package ahead_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/ahead"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

func text(list []domains.Problem) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, strings.Trim(fmt.Sprint(p.At), "[]")+p.Text)
	}
	return strings.Join(parts, "\n")
}

// TestOf: a booking needs a start and a length, and refuses what is not booked ahead, each
// with what to do.
func TestOf(t *testing.T) {
	t.Parallel()
	booking := func(change func(*v1alpha1.IntentSpec)) *v1alpha1.IntentSpec {
		s := &v1alpha1.IntentSpec{Schedule: v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(time.Unix(1764000000, 0)), Duration: v1alpha1.Duration{Duration: time.Hour}, Book: true}}
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.IntentSpec)
		want   string
	}{
		"right":      {func(*v1alpha1.IntentSpec) {}, ""},
		"no start":   {func(s *v1alpha1.IntentSpec) { s.Schedule.NotBefore = v1alpha1.Time{} }, "schedule book: a booking needs schedule.notBefore, its start; add it, or take book out"},
		"no length":  {func(s *v1alpha1.IntentSpec) { s.Schedule.Duration = v1alpha1.Duration{} }, "schedule book: a booking needs schedule.duration, its length; add it, or take book out"},
		"windows":    {func(s *v1alpha1.IntentSpec) { s.Schedule.Windows = []v1alpha1.Window{{From: "20:00", To: "06:00"}} }, "schedule windows: windows are not booked ahead; take them out, or book out"},
		"range":      {func(s *v1alpha1.IntentSpec) { s.Replicas = v1alpha1.Replicas{Min: 1, Max: 3, Range: true} }, "replicas: replicas of min and max are not booked ahead; write one number, or take schedule.book out"},
		"spot":       {func(s *v1alpha1.IntentSpec) { s.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot} }, "purchase: spot capacity is not booked ahead, because its provider may take it back; take spot out, or schedule.book"},
		"split":      {func(s *v1alpha1.IntentSpec) { s.Split = &v1alpha1.Split{} }, "split: replicas put together from parts are not booked ahead; take split out, or schedule.book"},
		"together":   {func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"a"} }, "placement together: what is placed together with other intents is not booked ahead; take together out, or schedule.book"},
		"apart":      {func(s *v1alpha1.IntentSpec) { s.Placement.Apart = []string{"a"} }, "placement apart: what is placed apart from other intents is not booked ahead; take apart out, or schedule.book"},
		"find":       {func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind }, "stage: stage find reserves nothing, and so books nothing; take it out, or schedule.book"},
		"preempts":   {func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Preempts: "lower"} }, "preemption preempts: a booking takes what is free and preempts nobody; take preempts out, or schedule.book"},
		"yields too": {func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Yields: "booked"} }, "preemption yields: a booking does not yield to others; take yields out, or schedule.book"},
		"a typo":     {func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Yields: "boked"} }, `preemption yields: unknown value "boked" (did you mean "booked"?)`},
	} {
		if got := text(ahead.Of(booking(c.change))); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	open := booking(func(s *v1alpha1.IntentSpec) {
		s.Schedule = v1alpha1.Schedule{}
		s.Preemption = &v1alpha1.Preemption{Yields: "booked", Preempts: "higher"}
	})
	if got, want := text(ahead.Of(open)), `preemption preempts: unknown value "higher"; write one of never, lower`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRules: a fleet's bounds make sense.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bounds  v1alpha1.Bookings
		written bool
		want    string
	}{
		{v1alpha1.Bookings{}, false, ""},
		{v1alpha1.Bookings{MaxShare: 100}, true, ""},
		{v1alpha1.Bookings{}, true, "maxShare: 0 lets nobody book; leave quota.book out of the tenants' files for that"},
		{v1alpha1.Bookings{MaxShare: 101}, true, "maxShare: 101 is not a percentage from 1 to 100; leave it out for 100"},
		{v1alpha1.Bookings{MaxShare: -1}, true, "maxShare: -1 is not a percentage from 1 to 100; leave it out for 100"},
		{v1alpha1.Bookings{Lead: v1alpha1.Duration{Duration: 48 * time.Hour}, MaxAhead: v1alpha1.Duration{Duration: 24 * time.Hour}}, false,
			"lead: 48h is longer than bookings.maxAhead (24h); write less, such as 10m"},
	} {
		if got := text(ahead.Rules(&c.bounds, c.written)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.bounds, got, c.want)
		}
	}
}
