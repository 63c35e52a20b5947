// Package ahead checks what intents and the fleet write of booking ahead
// (schedule.book, preemption.yields, bookings).
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// Pure functions; safe for concurrent use.
package ahead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

// Of are the problems of an intent's specification that have to do with booking ahead
// and preemption, each with its place below spec.
func Of(s *v1alpha1.IntentSpec) []domains.Problem {
	var out []domains.Problem
	if p := s.Preemption; p != nil {
		out = append(oneOf(p.Preempts, "preempts", "never", "lower"), oneOf(p.Yields, "yields", "never", "booked")...)
	}
	if !s.Schedule.Book {
		return out
	}
	add := func(is bool, text string, at ...any) {
		if is {
			out = append(out, domains.Problem{At: at, Text: text})
		}
	}
	add(s.Schedule.NotBefore.IsZero(), ": a booking needs schedule.notBefore, its start; add it, or take book out", "schedule", "book")
	add(s.Schedule.Duration.Duration == 0, ": a booking needs schedule.duration, its length; add it, or take book out", "schedule", "book")
	add(len(s.Schedule.Windows) > 0, ": windows are not booked ahead; take them out, or book out", "schedule", "windows")
	add(s.Replicas.Range, ": replicas of min and max are not booked ahead; write one number, or take schedule.book out", "replicas")
	add(slices.Contains(s.Purchase, v1alpha1.Spot), ": spot capacity is not booked ahead, because its provider may take it back; take spot out, or schedule.book", "purchase")
	add(s.Split != nil, ": replicas put together from parts are not booked ahead; take split out, or schedule.book", "split")
	add(len(s.Placement.Together) > 0, ": what is placed together with other intents is not booked ahead; take together out, or schedule.book", "placement", "together")
	add(len(s.Placement.Apart) > 0, ": what is placed apart from other intents is not booked ahead; take apart out, or schedule.book", "placement", "apart")
	add(s.Stage == v1alpha1.StageFind, ": stage find reserves nothing, and so books nothing; take it out, or schedule.book", "stage")
	if p := s.Preemption; p != nil {
		add(p.Preempts == "lower", ": a booking takes what is free and preempts nobody; take preempts out, or schedule.book", "preemption", "preempts")
		add(p.Yields == "booked", ": a booking does not yield to others; take yields out, or schedule.book", "preemption", "yields")
	}
	return out
}

// oneOf is the problem of a value of preemption that is none of those known; "" is the
// default.
func oneOf(value, field string, known ...string) []domains.Problem {
	at := []any{"preemption", field}
	switch near := nearest.Of(value, known); {
	case value == "" || slices.Contains(known, value):
		return nil
	case near != "":
		return []domains.Problem{{At: at, Text: fmt.Sprintf(": unknown value %q (did you mean %q?)", value, near)}}
	}
	return []domains.Problem{{At: at, Text: fmt.Sprintf(": unknown value %q; write one of %s", value, strings.Join(known, ", "))}}
}

// Rules are the problems of a fleet's bounds, each with its place below bookings; share
// states whether its maxShare is written.
func Rules(b *v1alpha1.Bookings, share bool) []domains.Problem {
	var out []domains.Problem
	if share && b.MaxShare == 0 {
		out = append(out, domains.Problem{At: []any{"maxShare"}, Text: ": 0 lets nobody book; leave quota.book out of the tenants' files for that"})
	}
	if b.MaxShare < 0 || b.MaxShare > 100 {
		out = append(out, domains.Problem{At: []any{"maxShare"}, Text: fmt.Sprintf(": %d is not a percentage from 1 to 100; leave it out for 100", b.MaxShare)})
	}
	if b.Lead.Duration > b.Ahead() {
		out = append(out, domains.Problem{At: []any{"lead"}, Text: fmt.Sprintf(": %s is longer than bookings.maxAhead (%s); write less, such as 10m", b.Lead, v1alpha1.Duration{Duration: b.Ahead()})})
	}
	return out
}
