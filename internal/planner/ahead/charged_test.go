package ahead_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// chargedLate is bookable, where cancelling a booking costs its term from so long before its
// start on.
func chargedLate(free time.Duration) *plantest.Builder {
	return bookable().Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.FreeUntil = v1alpha1.Duration{Duration: free} })
}

// monthly is a budget a month of a tenant that may book.
func monthly(money string) func(*v1alpha1.TenantSpec) {
	return func(s *v1alpha1.TenantSpec) {
		mayBook(s)
		s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money(money)}
	}
}

// costOf is what a contract has cost by the ledger, "" for nothing.
func costOf(b *plantest.Builder, name string) string {
	if c := b.W.Ledger.Contract(name); c.Status.Accrued != nil && !c.Status.Accrued.IsZero() {
		return c.Status.Accrued.Text()
	}
	return ""
}

// TestBooking_MovedIntoThePast: who moves the start of a booking into the past cancels it, at
// the price of that, and the old term never begins: what its file asks for now begins now, and
// is refused where the term that it says is over.
func TestBooking_MovedIntoThePast(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]time.Duration{"the term over": time.Hour, "the term running": 30 * time.Hour} {
		b := chargedLate(48*time.Hour).Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
		atRest(t, b)
		was := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
		b.Intent("vision/train", books(-24*time.Hour, to))
		now := b.W.Now
		settled(t, b)
		if c := b.W.Ledger.Contract(was); c.Status.Phase != v1alpha1.PhaseReleased || c.Status.Reason != "IntentChanged" || costOf(b, was) != "40.00" {
			t.Errorf("%s: the old one is %s, %s, and cost %q", name, c.Status.Phase, c.Status.Why(), costOf(b, was))
		}
		b.Deliver().Tick(time.Second)
		atRest(t, b)
		if name == "the term over" {
			if d := plantest.Of(b.Plan(), "vision/train"); d.Action != planner.Refuse || len(contractsOf(b, "vision/train")) > 0 {
				t.Errorf("%s: %s %s with %d contracts", name, d.Action, d.Reason, len(contractsOf(b, "vision/train")))
			}
			continue
		}
		if c := only(t, b, "vision/train", v1alpha1.PhaseActive); c.Spec.Term.Start != now {
			t.Errorf("%s: what it asks for now starts at %v", name, c.Spec.Term.Start)
		}
	}
}

// TestBooking_ChangedAsItBegins: what an intent no longer asks for as its lead begins is
// cancelled as booked, and what stays begins.
func TestBooking_ChangedAsItBegins(t *testing.T) {
	t.Parallel()
	b := chargedLate(24*time.Hour).Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.Lead = v1alpha1.Duration{Duration: 15 * time.Minute} }).
		Intent("vision/train", plantest.Wants(4), plantest.Times(2), books(24*time.Hour, 4*time.Hour))
	atRest(t, b)
	list := contractsOf(b, "vision/train")
	b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24*time.Hour - 15*time.Minute))
	b.Intent("vision/train", plantest.Times(1))
	settled(t, b)
	for _, was := range list {
		c, first := b.W.Ledger.Contract(was.Metadata.Name), was.Spec.Intent.Replica == 0
		want := map[bool]string{true: "Booked Reserved ", false: "Booked Released 40.00"}[first]
		got := ""
		for _, h := range c.Status.History {
			got += string(h.Phase) + " "
		}
		if got += costOf(b, c.Metadata.Name); got != want {
			t.Errorf("replica %d: %q, want %q", was.Spec.Intent.Replica, got, want)
		}
	}
	// A change of what is booked itself books again, and begins nothing on the way.
	b = chargedLate(24*time.Hour).Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
	atRest(t, b)
	was := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24*time.Hour - 10*time.Minute))
	b.Intent("vision/train", plantest.Wants(3))
	b.Round()
	if c := b.W.Ledger.Contract(was); c.Status.Phase != v1alpha1.PhaseReleased || costOf(b, was) != "40.00" {
		t.Errorf("changed, it is %s and cost %q", c.Status.Phase, costOf(b, was))
	}
	if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Spec.GPUs.Count != 3 {
		t.Errorf("it has %d cards", c.Spec.GPUs.Count)
	}
}

// TestBooking_ChargesCountInTheirRound: what a cancelled booking costs is money that the same
// round does not spend again: of its tenant's month, and of its intent's total.
func TestBooking_ChargesCountInTheirRound(t *testing.T) {
	t.Parallel()
	total := plantest.With(func(s *v1alpha1.IntentSpec) { s.Budget = &v1alpha1.IntentBudget{MaxTotal: plantest.Money("100")} })
	none := func(*v1alpha1.TenantSpec) {}
	for name, c := range map[string]struct {
		tenant func(*v1alpha1.TenantSpec)
		own    bool
		kept   bool
	}{
		"a month of 100": {monthly("100"), false, true},
		"a month of 120": {monthly("120"), false, false},
		"100 in all":     {none, true, true},
		"no limit":       {none, false, false},
	} {
		b := chargedLate(48*time.Hour).Tenant("vision", "rome", mayBook, c.tenant).
			Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 6*time.Hour)) // 60 EUR
		if c.own {
			b.Intent("vision/train", total)
		}
		atRest(t, b)
		was := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
		b.Intent("vision/train", plantest.Wants(6), books(24*time.Hour, 4*time.Hour)) // 60 EUR, too
		p := b.Round()
		now := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
		if (now == was) != c.kept {
			t.Errorf("%s: kept %v, want %v: %s", name, now == was, c.kept, plantest.Of(p, "vision/train").Reason)
		}
		if c.kept != (costOf(b, was) == "") {
			t.Errorf("%s: the old one cost %q", name, costOf(b, was))
		}
	}
}

// TestBooking_ChargesOfItsLeadCountInTheirRound: the same of what is delivered already.
func TestBooking_ChargesOfItsLeadCountInTheirRound(t *testing.T) {
	t.Parallel()
	for money, placed := range map[string]int{"119": 0, "120": 1} {
		b := chargedLate(48*time.Hour).Tenant("vision", "rome", monthly(money)).
			Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 6*time.Hour)) // 60 EUR
		atRest(t, b)
		b.Tick(24*time.Hour - 9*time.Minute)
		atRest(t, b)
		was := only(t, b, "vision/train", v1alpha1.PhaseActive).Metadata.Name
		b.Remove("vision/train").Intent("vision/other", plantest.Wants(4), plantest.For(6*time.Hour)) // 60 EUR, too
		settled(t, b)
		if n := len(contractsOf(b, "vision/other")); n != placed || costOf(b, was) != "60.00" {
			t.Errorf("%d contracts beside %q that are charged of %s", n, costOf(b, was), money)
		}
	}
}

// TestBooking_ChargesCountInTheirMonth: what a booking of a later month cost that was
// cancelled is money of that month, in the round that cancels it and in those after.
func TestBooking_ChargesCountInTheirMonth(t *testing.T) {
	t.Parallel()
	b := chargedLate(60*24*time.Hour).Tenant("vision", "rome", monthly("100")).
		Intent("vision/train", plantest.Wants(4), at("2026-12-05T00:00:00Z", 6*time.Hour)) // 60 EUR
	atRest(t, b)
	was := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.Remove("vision/train").Intent("vision/other", plantest.Wants(4), at("2026-12-07T00:00:00Z", 6*time.Hour))
	b.Round()
	for range 2 { // in the same round, and by the ledger
		if n := len(contractsOf(b, "vision/other")); n != 0 || costOf(b, was) != "60.00" {
			t.Errorf("%d bookings beside %q that are charged of 100", n, costOf(b, was))
		}
		b.Tick(time.Minute).Round()
	}
	b.Intent("vision/other", at("2026-12-07T00:00:00Z", 4*time.Hour)) // 40 EUR
	atRest(t, b)
	only(t, b, "vision/other", v1alpha1.PhaseBooked)
}

// TestBooking_ReplacedInItsLead: what replaces a booking that is delivered already costs from
// the start of the term on, and what it replaces is charged as cancelled, whether it goes at
// once or when the new one works.
func TestBooking_ReplacedInItsLead(t *testing.T) {
	t.Parallel()
	model := func(name string) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) { s.Resources.GPU.Models = []string{name} }
	}
	for name, update := range map[string]*v1alpha1.Update{"at once": nil, "beside": {}} {
		b := chargedLate(24*time.Hour).Provider("milan").
			Offer("milan/a100", plantest.Cards("nvidia-a100", 8, "80Gi"), plantest.Costs("1.5")).
			Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour), plantest.With(model("nvidia-h100")), plantest.With(func(s *v1alpha1.IntentSpec) { s.Update = update }))
		atRest(t, b)
		b.Tick(24*time.Hour - 9*time.Minute)
		atRest(t, b)
		was := only(t, b, "vision/train", v1alpha1.PhaseActive)
		b.Intent("vision/train", plantest.With(model("nvidia-a100")))
		atRest(t, b)
		c := only(t, b, "vision/train", v1alpha1.PhaseActive)
		if c.Spec.Provider != "milan" || c.Spec.Term != was.Spec.Term || c.Status.AccruedAt != was.Spec.Term.Start {
			t.Errorf("%s: on %s for %v, charged from %v", name, c.Spec.Provider, c.Spec.Term, c.Status.AccruedAt)
		}
		if got := costOf(b, was.Metadata.Name); got != "40.00" {
			t.Errorf("%s: the old one cost %q: %s", name, got, b.W.Ledger.Contract(was.Metadata.Name).Status.Why())
		}
	}
}

// TestBooking_ShortOfAPartMoves: a booking that its offer cannot keep moves after a grace
// period, too, where not all of its intent's replicas are booked.
func TestBooking_ShortOfAPartMoves(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(4), plantest.Times(3), books(24*time.Hour, 4*time.Hour), plantest.With(func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(false) }))
	atRest(t, b)
	if n := len(contractsOf(b, "vision/train")); n != 2 {
		t.Fatalf("%d bookings, want 2 of 3", n)
	}
	b.Offer("paris/h100", plantest.Capacity("gpu=6"))
	atRest(t, b)
	if st := b.W.Ledger.State("vision", "train").Status; st.Reason != "BookingShort" || !strings.Contains(st.Message, "2 of 3 replicas fit") {
		t.Errorf("%s: %s", st.Reason, st.Message)
	}
	short := ""
	for _, c := range contractsOf(b, "vision/train") {
		if c.Status.Reason == "BookingShort" {
			short = c.Metadata.Name
		}
	}
	b.Tick(6*time.Minute).Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 4, "80Gi"), plantest.Costs("3"))
	settled(t, b)
	list := contractsOf(b, "vision/train")
	for _, c := range list {
		if c.Status.Reason != "" {
			t.Errorf("on %s, %s", c.Spec.Provider, c.Status.Why())
		}
	}
	if c := b.W.Ledger.Contract(short); len(list) != 2 || c.Status.Phase != v1alpha1.PhaseFailed || c.Status.Reason != "BookingLost" {
		t.Errorf("%d bookings; what was short is %s, %s", len(list), c.Status.Phase, c.Status.Why())
	}
	if d := plantest.Of(b.Plan(), "vision/train"); d.Code != "NothingFits" {
		t.Errorf("%s: %s", d.Code, d.Reason)
	}
}
