package ledger_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// booking is one made on 2026-11-20 for a term.
func booking(name, start, end string) *v1alpha1.Contract {
	c := fresh("1", "1")
	c.Metadata.Name = name
	c.Spec.Term = v1alpha1.Term{Start: at(start), End: at(end)}
	ledger.Book(c, ledger.Reason{}, at("2026-11-20T00:00:00Z"))
	return c
}

// TestBooking_CostsFromItsStart: nothing accrues before a term begins, whatever is written
// down until then, and one that begins late costs from then on.
func TestBooking_CostsFromItsStart(t *testing.T) {
	b := rome(t)
	c := booking("a", "2026-11-30T12:00:00Z", "2026-12-02T12:00:00Z")
	if got := b.Accrued(c, at("2026-12-01T12:00:00Z")); !got.IsZero() {
		t.Errorf("a booking that has not begun costs %s", got)
	}
	early, err := b.Transition(c, v1alpha1.PhaseReserved, ledger.Reason{}, at("2026-11-30T11:50:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	active, err := b.Transition(early, v1alpha1.PhaseActive, ledger.Reason{}, at("2026-11-30T11:55:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Accrued(active, at("2026-11-30T11:59:00Z")); !got.IsZero() {
		t.Errorf("it costs %s before its term begins", got)
	}
	if got := b.Accrued(active, at("2026-12-01T12:00:00Z")).String(); got != "24" {
		t.Errorf("24 hours at 1 cost %s", got)
	}
	if got := b.HoldMonthly(early, at("2026-11-30T11:50:00Z")).String(); got != "11" { // Rome's month ends at 23:00 UTC
		t.Errorf("it holds %s of the month", got)
	}
	late, err := b.Transition(c, v1alpha1.PhaseReserved, ledger.Reason{}, at("2026-11-30T13:00:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Accrued(late, at("2026-11-30T14:00:00Z")).String(); got != "1" {
		t.Errorf("an hour after it began an hour late it costs %s", got)
	}
}

// TestCancel_CostsByTheFleetsRule: nothing by default and before freeUntil, else the whole
// term, each month's part in that month; only what the tenant did itself costs.
func TestCancel_CostsByTheFleetsRule(t *testing.T) {
	b := rome(t)
	c := booking("a", "2026-11-30T12:00:00Z", "2026-12-01T12:00:00Z")
	rule := &v1alpha1.Bookings{FreeUntil: v1alpha1.Duration{Duration: 48 * time.Hour}}
	for name, tc := range map[string]struct {
		rule      *v1alpha1.Bookings
		code, now string
		want      string
	}{
		"no rule":     {&v1alpha1.Bookings{}, "IntentRemoved", "2026-11-30T11:00:00Z", "0"},
		"in time":     {rule, "IntentRemoved", "2026-11-28T11:59:59Z", "0"},
		"too late":    {rule, "IntentRemoved", "2026-11-28T12:00:00Z", "24"},
		"not by them": {rule, "BookingLost", "2026-11-30T11:00:00Z", "0"},
		"changed":     {rule, "IntentChanged", "2026-11-30T11:00:00Z", "24"},
	} {
		costs := ledger.CancelCosts(tc.rule, c, tc.code, at(tc.now))
		gone, err := b.Cancel(c, v1alpha1.PhaseReleased, ledger.Reason{Code: tc.code}, costs, at(tc.now))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Accrued(gone, at("2027-01-01T00:00:00Z")).String(); got != tc.want || gone.Status.Target != v1alpha1.PhaseReleased {
			t.Errorf("%s: it cost %s, want %s (to %s)", name, got, tc.want, gone.Status.Target)
		}
		if m := gone.Status.Months; tc.want == "24" && (m["2026-11"].Amount.String() != "11" || m["2026-12"].Amount.String() != "13") {
			t.Errorf("%s: by month %v", name, m)
		}
	}
}

// TestAhead_WhatTakesCapacityWhen: a term holds its first instant and not its last; what
// has no end stays, and what is being released is gone.
func TestAhead_WhatTakesCapacityWhen(t *testing.T) {
	b := rome(t)
	held := func(name string, end string) *v1alpha1.Contract {
		c := fresh("1", "1")
		c.Metadata.Name = name
		c.Spec.Term.End = v1alpha1.Time{}
		if end != "" {
			c.Spec.Term.End = at(end)
		}
		ledger.Begin(c, ledger.Reason{}, at("2026-11-20T12:00:00Z"))
		return c
	}
	leaving, err := b.Release(held("leaving", ""), v1alpha1.PhaseReleased, ledger.Reason{}, at("2026-11-21T00:00:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	all := []*v1alpha1.Contract{
		held("open", ""), held("day", "2026-11-22T00:00:00Z"), leaving,
		booking("first", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"), booking("second", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"),
	}
	for when, want := range map[string]string{
		"2026-11-21T23:59:59Z": "open day ", "2026-11-22T00:00:00Z": "open first ", "2026-11-23T00:00:00Z": "open second ", "2026-11-24T00:00:00Z": "open ",
	} {
		got := ""
		for _, c := range all {
			if ledger.TakesAt(c, at(when)) {
				got += c.Metadata.Name + " "
			}
		}
		if got != want {
			t.Errorf("at %s: %q, want %q", when, got, want)
		}
	}
	if got := ledger.Starts(all, at("2026-11-22T06:00:00Z"), at("2026-11-23T00:00:00Z")); len(got) != 1 || got[0] != at("2026-11-22T06:00:00Z") {
		t.Errorf("starts %v: one that should have begun counts as the first instant, and the last does not count", got)
	}
	// What is reported of a contract that will have ended does not count then.
	f := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"}}
	f.Spec.Held = map[string]v1alpha1.Resources{"day": {v1alpha1.CPU: v1alpha1.AmountOf(99000)}}
	now := ledger.Figures(ledger.At(f, all, at("2026-11-21T12:00:00Z")), nil, "")
	then := ledger.Figures(ledger.At(f, all, at("2026-11-24T00:00:00Z")), nil, "")
	if now.Held[v1alpha1.CPU].Int64() < 99000 || then.Held[v1alpha1.CPU].Int64() >= 99000 {
		t.Errorf("held %v, then %v", now.Held, then.Held)
	}
	// The ledger keeps bookings apart from what is held.
	var ch ledger.Changes
	for _, c := range all {
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	l := ledger.Empty().With(ch)
	p, n := all[0].Spec.Provider, all[0].Spec.Flavor
	if l.Booked() != 2 || len(l.Bookings()) != 2 || len(l.BookedOn(p, n)) != 2 || len(l.HeldOn(p, n)) != 3 || l.Held() != 3 {
		t.Errorf("%d booked, %d held", l.Booked(), l.Held())
	}
	begun, err := b.Transition(all[3], v1alpha1.PhaseReserved, ledger.Reason{}, at("2026-11-22T00:00:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	l = l.With(ledger.Changes{Contracts: []model.Change{{Before: all[3], After: begun}}})
	if l.Booked() != 1 || len(l.HeldOn(p, n)) != 4 {
		t.Errorf("%d booked, %d held after one began", l.Booked(), l.Held())
	}
}
