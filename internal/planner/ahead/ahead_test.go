package ahead_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// books makes an intent book from so long after the worlds' start for a duration.
func books(after, duration time.Duration) func(*model.Intent) {
	return plantest.With(func(s *v1alpha1.IntentSpec) {
		s.Schedule.NotBefore = v1alpha1.TimeOf(plantest.Start.Add(after))
		s.Schedule.Duration = v1alpha1.Duration{Duration: duration}
		s.Schedule.Book = true
	})
}

// mayBook gives a tenant the right to book.
func mayBook(t *v1alpha1.TenantSpec) {
	q := v1alpha1.TenantQuota{}
	if t.Quota != nil {
		q = *t.Quota
	}
	q.Book = true
	t.Quota = &q
}

// bookable is a world of one provider with eight cards and two tenants that may book.
func bookable() *plantest.Builder {
	return plantest.New().Consumer("rome").Provider("paris").
		Tenant("vision", "rome", mayBook).Tenant("speech", "rome", mayBook).
		Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("2.5"))
}

// contractsOf are all of an intent's contracts that have not ended.
func contractsOf(b *plantest.Builder, ref string) []*v1alpha1.Contract {
	tenant, name, _ := strings.Cut(ref, "/")
	var out []*v1alpha1.Contract
	for _, c := range b.W.Ledger.ByIntent(tenant, name) {
		if c.Status.Phase.Held() || c.Status.Phase == v1alpha1.PhaseBooked {
			out = append(out, c)
		}
	}
	return out
}

func only(t *testing.T, b *plantest.Builder, ref string, phase v1alpha1.Phase) *v1alpha1.Contract {
	t.Helper()
	list := contractsOf(b, ref)
	if len(list) != 1 || list[0].Status.Phase != phase {
		for _, c := range b.W.Ledger.ByIntent("vision", "train") {
			t.Logf("%s %s %s", c.Metadata.Name, c.Status.Phase, c.Status.Message)
		}
		t.Fatalf("%s has %d contracts, want one that is %s: %v", ref, len(list), phase, phases(list))
	}
	return list[0]
}

func phases(list []*v1alpha1.Contract) (out []string) {
	for _, c := range list {
		out = append(out, string(c.Status.Phase)+" "+c.Status.Reason)
	}
	return out
}

// atRest plans until nothing changes, and fails where that takes long.
func atRest(t *testing.T, b *plantest.Builder) *planner.Plan {
	t.Helper()
	for range 8 {
		p := b.Round()
		if len(p.Contracts)+len(p.States) == 0 {
			return p
		}
		b.Deliver().Tick(time.Second)
	}
	t.Fatal("it does not come to rest")
	return nil
}

// TestBooking_IsKeptAndBegins: a booking promises capacity for its term at the price of its
// day, nobody is sold that beyond its start, and at its start it becomes Reserved by a
// commit of its own, from when on it costs.
func TestBooking_IsKeptAndBegins(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
	p := atRest(t, b)
	d := plantest.Of(p, "vision/train")
	c := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	if !strings.Contains(d.Reason, "booked from 2026-11-21T12:00:00Z to 2026-11-23T12:00:00Z") || b.W.Ledger.State("vision", "train").Status.State != v1alpha1.IntentBooked {
		t.Errorf("decided %q", d.Reason)
	}
	if c.Spec.Term != (v1alpha1.Term{Start: plantest.Time("2026-11-21T12:00:00Z"), End: plantest.Time("2026-11-23T12:00:00Z")}) || c.Spec.Price.Hourly.Text() != "20.00" {
		t.Errorf("term %v, %s an hour", c.Spec.Term, c.Spec.Price.Hourly.Text())
	}
	if n := p.HourlyAfter; !n.IsZero() {
		t.Errorf("costs %s before it begins", n.Text())
	}

	// Until it starts, others may have what ends before.
	b.Intent("speech/open", plantest.Wants(1)).
		Intent("speech/long", plantest.Wants(1), plantest.For(24*time.Hour+time.Second)).
		Intent("speech/short", plantest.Wants(8), plantest.For(20*time.Hour))
	p = atRest(t, b)
	only(t, b, "speech/short", v1alpha1.PhaseActive)
	for _, ref := range []string{"speech/open", "speech/long"} {
		if d := plantest.Of(p, ref); d.Action != planner.Queued || len(contractsOf(b, ref)) != 0 {
			t.Errorf("%s: %s, %s", ref, d.Action, d.Reason)
		}
	}

	// Its capacity is free some hours before: the others wait.
	b.Tick(21 * time.Hour)
	p = atRest(t, b)
	if d := plantest.Of(p, "speech/open"); d.Action != planner.Queued || d.Code != "Booked" || !strings.Contains(d.Reason, "is booked from 2026-11-21T12:00:00Z on") {
		t.Errorf("speech/open: %s %s, %s", d.Action, d.Code, d.Reason)
	}

	// Ten minutes before its start it is delivered, and costs nothing until then.
	b.Tick(2*time.Hour + 49*time.Minute)
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Tick(time.Minute)
	b.Round()
	c = only(t, b, "vision/train", v1alpha1.PhaseReserved)
	if c.Status.AccruedAt != c.Spec.Term.Start || c.Decision.Offer.Held[v1alpha1.GPU].Int64() != 0 || !c.Decision.Offer.At.IsZero() {
		t.Errorf("accrued from %v, figures %+v", c.Status.AccruedAt, c.Decision.Offer)
	}
	if st := b.W.Ledger.State("vision", "train").Status; st.State != v1alpha1.IntentPlaced || st.Started != c.Spec.Term.Start {
		t.Errorf("state %s since %v", st.State, st.Started)
	}
	b.Deliver()
	atRest(t, b)
	b.W.Now = v1alpha1.TimeOf(c.Spec.Term.Start.Add(30 * time.Hour))
	atRest(t, b)
	books, err := ledger.BooksOf(b.W.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	c = only(t, b, "vision/train", v1alpha1.PhaseActive)
	b.W.Now = v1alpha1.TimeOf(c.Spec.Term.Start.Add(30 * time.Hour))
	if got := books.Accrued(c, b.W.Now).Text(); got != "600.00" {
		t.Errorf("30 hours of 20.00 cost %s", got)
	}
	b.Tick(18 * time.Hour)
	atRest(t, b)
	if st := b.W.Ledger.State("vision", "train").Status; st.State != v1alpha1.IntentDone {
		t.Errorf("state %s at its end", st.State)
	}
	only(t, b, "speech/open", v1alpha1.PhaseActive)
}

// TestBooking_NeedsTheWholeTerm: what stands without an end counts as staying permanently,
// and what ends before the term does not count.
func TestBooking_NeedsTheWholeTerm(t *testing.T) {
	t.Parallel()
	b := bookable().
		Intent("speech/open", plantest.Wants(2)).
		Intent("speech/day", plantest.Wants(6), plantest.For(24*time.Hour))
	atRest(t, b)
	b.Intent("vision/all", plantest.Wants(8), books(48*time.Hour, time.Hour)).
		Intent("vision/early", plantest.Wants(6), books(23*time.Hour, 2*time.Hour)).
		Intent("vision/after", plantest.Wants(6), books(24*time.Hour, 2*time.Hour))
	p := atRest(t, b)
	only(t, b, "vision/after", v1alpha1.PhaseBooked)
	for _, ref := range []string{"vision/all", "vision/early"} {
		d := plantest.Of(p, ref)
		if d.Action != planner.Queued || len(contractsOf(b, ref)) != 0 {
			t.Errorf("%s: %s, %s", ref, d.Action, d.Reason)
		}
		if want := map[string]string{
			"vision/all":   "paris/h100 has 6 of 8 gpu free at 2026-11-22T12:00:00Z",
			"vision/early": "paris/h100 has 0 of 6 gpu free at 2026-11-21T11:00:00Z",
		}[ref]; len(d.Near) != 1 || d.Near[0] != want {
			t.Errorf("%s: near %q, want %q", ref, d.Near, want)
		}
	}
	if got := plantest.Of(p, "vision/early").Try; len(got) != 1 || !strings.HasPrefix(got[0], "schedule.notBefore: 2026-11-21T14:00:00Z") {
		t.Errorf("try %q", got) // after vision/after
	}
	// The end of one term may be the start of the next.
	b.Intent("vision/next", plantest.Wants(6), books(26*time.Hour, 2*time.Hour))
	atRest(t, b)
	only(t, b, "vision/next", v1alpha1.PhaseBooked)
}

// TestBooking_OthersYield: who writes preemption.yields: booked has what is free until it is
// booked, its contract carries that instant from its first day, and it goes elsewhere then.
func TestBooking_OthersYield(t *testing.T) {
	t.Parallel()
	yields := plantest.With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Yields: "booked"} })
	b := bookable().Intent("vision/train", plantest.Wants(6), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.Intent("speech/long", plantest.Wants(4), yields)
	atRest(t, b)
	c := only(t, b, "speech/long", v1alpha1.PhaseActive)
	if want := (v1alpha1.Term{Start: c.Spec.Term.Start, End: plantest.Time("2026-11-21T12:00:00Z"), Yields: true}); c.Spec.Term != want {
		t.Errorf("term %v, want %v", c.Spec.Term, want)
	}
	// What stays free beside the booking has no end.
	b.Intent("speech/small", plantest.Wants(2), yields)
	atRest(t, b)
	if c := only(t, b, "speech/small", v1alpha1.PhaseActive); !c.Spec.Term.End.IsZero() {
		t.Errorf("it ends at %v though nobody booked what it has", c.Spec.Term.End)
	}
	b.W.Now = plantest.Time("2026-11-21T12:00:00Z")
	p := atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseActive)
	if d := plantest.Of(p, "speech/long"); d.Action != planner.Queued || len(contractsOf(b, "speech/long")) != 0 {
		t.Errorf("speech/long: %s, %s", d.Action, d.Reason)
	}
	b.W.Now = plantest.Time("2026-11-23T12:00:00Z")
	atRest(t, b)
	if c := only(t, b, "speech/long", v1alpha1.PhaseActive); !c.Spec.Term.End.IsZero() {
		t.Errorf("it ends at %v", c.Spec.Term.End)
	}
}

// TestBooking_BoundsExtensionAndEnlargement: what is booked by others is not for a longer
// term or a larger size of a contract either.
func TestBooking_BoundsExtensionAndEnlargement(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("speech/job", plantest.Wants(4), plantest.For(24*time.Hour))
	atRest(t, b)
	b.Intent("vision/train", plantest.Wants(8), books(24*time.Hour+time.Minute, 48*time.Hour))
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Intent("speech/job", plantest.For(36*time.Hour))
	p := atRest(t, b)
	c := only(t, b, "speech/job", v1alpha1.PhaseActive)
	if d := plantest.Of(p, "speech/job"); c.Spec.Term.End != plantest.Time("2026-11-21T12:00:00Z") || d.Action != planner.Queued {
		t.Errorf("it ends at %v: %s, %s", c.Spec.Term.End, d.Action, d.Reason)
	}
	// Until it ends it may have more.
	b.Intent("speech/job", plantest.Wants(8), plantest.For(24*time.Hour))
	atRest(t, b)
	if c := only(t, b, "speech/job", v1alpha1.PhaseActive); c.Spec.GPUs.Count != 8 {
		t.Errorf("it has %d cards", c.Spec.GPUs.Count)
	}
	// An extension that was refused ends on its old terms, and the booking begins.
	b.Intent("speech/job", plantest.For(100*time.Hour))
	atRest(t, b)
	b.W.Now = plantest.Time("2026-11-21T12:01:00Z")
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseActive)
}

// TestBooking_NeedsRights: the tenant's right, the fleet's bounds, and quota and budget for
// the term alone.
func TestBooking_NeedsRights(t *testing.T) {
	t.Parallel()
	quota := func(cards int64) func(*v1alpha1.TenantSpec) {
		return func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: &cards, Book: true} }
	}
	for name, c := range map[string]struct {
		world  func(*plantest.Builder)
		booked bool
		code   string
		says   string
	}{
		"no right": {func(b *plantest.Builder) { b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = nil }) },
			false, "BookingNotAllowed", "tenant vision may not book ahead: set quota.book: true in tenants/vision.yaml"},
		"too far": {func(b *plantest.Builder) {
			b.Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.MaxAhead = v1alpha1.Duration{Duration: 12 * time.Hour} })
		}, false, "BookingNotAllowed", "it would start more than 12h ahead (bookings.maxAhead of the fleet): it can be booked from 2026-11-21T00:00:00Z on"},
		"too much": {func(b *plantest.Builder) { b.Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.MaxShare = 49 }) },
			false, "NothingFits", "has as much booked then as the fleet allows (bookings.maxShare)"},
		"just as much": {func(b *plantest.Builder) { b.Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.MaxShare = 50 }) }, true, "", "booked from"},
		"quota":        {func(b *plantest.Builder) { b.Tenant("vision", "rome", quota(3)) }, false, "QuotaExceeded", "quota"},
		"quota that is free by then": {func(b *plantest.Builder) {
			b.Tenant("vision", "rome", quota(4)).Intent("vision/now", plantest.Wants(4), plantest.For(24*time.Hour))
		}, true, "", "booked from"},
		"quota that is not": {func(b *plantest.Builder) {
			b.Tenant("vision", "rome", quota(4)).Intent("vision/now", plantest.Wants(1))
		}, false, "QuotaExceeded", "quota"},
		"budget of its months": {func(b *plantest.Builder) { // two hours in December of 10 EUR each
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("20")} })
			b.Intent("vision/train", at("2026-11-30T22:00:00Z", 4*time.Hour))
		}, true, "", "booked from"},
		"over the budget of a month": {func(b *plantest.Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("20")} })
			b.Intent("vision/train", at("2026-11-30T23:00:00Z", 4*time.Hour))
		}, false, "BudgetExceeded", "monthly budget"},
		"over the hourly budget": {func(b *plantest.Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: plantest.Money("9.99")} })
		}, false, "BudgetExceeded", "hourly budget"},
	} {
		b := bookable().Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
		c.world(b)
		p := atRest(t, b)
		d := plantest.Of(p, "vision/train")
		if got := len(contractsOf(b, "vision/train")) == 1; got != c.booked || d.Code != c.code || !strings.Contains(d.Reason, c.says) {
			t.Errorf("%s: booked %v, %s %s, want %v %s %s", name, got, d.Code, d.Reason, c.booked, c.code, c.says)
		}
	}
}

// at books from an instant on.
func at(start string, duration time.Duration) func(*model.Intent) {
	return plantest.With(func(s *v1alpha1.IntentSpec) {
		s.Schedule = v1alpha1.Schedule{NotBefore: plantest.Time(start), Duration: v1alpha1.Duration{Duration: duration}, Book: true}
	})
}

// TestBooking_CountsForItsTermAlone: what a tenant has booked counts against its quota at
// the instants of the term, and against the month's budget from the day it is booked.
func TestBooking_CountsForItsTermAlone(t *testing.T) {
	t.Parallel()
	cards := int64(4)
	b := bookable().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Quota = &v1alpha1.TenantQuota{GPU: &cards, Book: true}
		s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("100")}
	}).Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour)) // 40 EUR
	atRest(t, b)
	b.Intent("vision/before", plantest.Wants(4), plantest.For(6*time.Hour)). // 60 EUR
											Intent("vision/during", plantest.Wants(1))
	p := atRest(t, b)
	only(t, b, "vision/before", v1alpha1.PhaseActive)
	if got := p.Budgets[0].Forecast.Text(); got != "100.00" {
		t.Errorf("the month's forecast is %s", got)
	}
	if d := plantest.Of(p, "vision/during"); d.Code != "QuotaExceeded" {
		t.Errorf("what overlaps: %s %s", d.Code, d.Reason)
	}
	// A fifth hour of four cards in this month would take what the booking costs.
	b.Remove("vision/during").Intent("vision/more", plantest.Wants(4), at("2026-11-25T00:00:00Z", time.Hour))
	p = atRest(t, b)
	if d := plantest.Of(p, "vision/more"); d.Code != "BudgetExceeded" || len(contractsOf(b, "vision/more")) != 0 {
		t.Errorf("beyond the month: %s %s", d.Code, d.Reason)
	}
}

// TestBooking_MovesFromWhatShrinks: what an offer cannot keep any more is reported at once
// and moved after a grace period, the youngest first, and kept and reported where no other
// place fits.
func TestBooking_MovesFromWhatShrinks(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/first", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
	atRest(t, b)
	b.Tick(time.Minute).Intent("speech/second", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
	atRest(t, b)
	first, second := only(t, b, "vision/first", v1alpha1.PhaseBooked).Metadata.Name, only(t, b, "speech/second", v1alpha1.PhaseBooked).Metadata.Name
	b.Offer("paris/h100", plantest.Capacity("gpu=6"))
	p := b.Round()
	d := plantest.Of(p, "speech/second")
	c := only(t, b, "speech/second", v1alpha1.PhaseBooked)
	if c.Metadata.Name != second || c.Status.Reason != "BookingShort" || !strings.Contains(c.Status.Message, "paris/h100 has 2 of 4 gpu for it at 2026-11-21T12:00:00Z") || d.Code != "BookingShort" {
		t.Errorf("%s %s: %s %s", c.Metadata.Name, c.Status.Why(), d.Code, d.Reason)
	}
	if c := only(t, b, "vision/first", v1alpha1.PhaseBooked); c.Metadata.Name != first || c.Status.Reason != "" {
		t.Errorf("the first is %s", c.Status.Why())
	}
	atRest(t, b)
	// Elsewhere there is room: it moves when what is missing has not come back within a grace
	// period, at the price of then, and who lost it is told why.
	b.Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("3"))
	atRest(t, b)
	if c := only(t, b, "speech/second", v1alpha1.PhaseBooked); c.Metadata.Name != second {
		t.Errorf("it moved to %s at the first dip", c.Spec.Provider)
	}
	b.Tick(5 * time.Minute)
	atRest(t, b)
	if c := only(t, b, "speech/second", v1alpha1.PhaseBooked); c.Spec.Price.Hourly.Text() != "12.00" {
		t.Errorf("moved, it costs %s an hour", c.Spec.Price.Hourly.Text())
	}
	if c := only(t, b, "speech/second", v1alpha1.PhaseBooked); c.Spec.Provider != "milan" || c.Status.Reason != "" {
		t.Errorf("on %s, %s", c.Spec.Provider, c.Status.Why())
	}
	if c := b.W.Ledger.Contract(second); c.Status.Phase != v1alpha1.PhaseFailed || c.Status.Reason != "BookingLost" || !strings.Contains(c.Status.Message, "2 of 4 gpu") {
		t.Errorf("the old one: %s %s", c.Status.Phase, c.Status.Why())
	}
	// A provider that is lost, or drained before the term ends, loses its bookings too.
	b.Offer("milan/h100", plantest.Heard(model.Lost)).Offer("paris/h100", plantest.Capacity("gpu=8"))
	atRest(t, b)
	if c := only(t, b, "speech/second", v1alpha1.PhaseBooked); c.Spec.Provider != "paris" {
		t.Errorf("on %s, which is lost", c.Spec.Provider)
	}
}

// TestBooking_Ends: deleting, suspending or changing the intent cancels, and costs by the
// fleet's rule; a changed one is booked again in the same commit, or stays as it was.
func TestBooking_Ends(t *testing.T) {
	t.Parallel()
	b := bookable().Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.FreeUntil = v1alpha1.Duration{Duration: 12 * time.Hour} }).
		Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 4*time.Hour)).
		Intent("speech/other", plantest.Wants(4), books(24*time.Hour, 4*time.Hour))
	atRest(t, b)
	was := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Intent("vision/train", plantest.Wants(3))
	atRest(t, b)
	now := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	if c := b.W.Ledger.Contract(was.Metadata.Name); c.Status.Phase != v1alpha1.PhaseReleased || c.Status.Accrued != nil || now.Spec.GPUs.Count != 3 {
		t.Errorf("changed in time: %s, cost %v, now %d cards", c.Status.Phase, c.Status.Accrued, now.Spec.GPUs.Count)
	}
	b.Intent("vision/train", plantest.Wants(6))
	p := atRest(t, b)
	if d := plantest.Of(p, "vision/train"); only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name != now.Metadata.Name || !strings.Contains(d.Reason, "what was booked before stays") {
		t.Errorf("%s", d.Reason)
	}
	b.Intent("vision/train", plantest.Wants(3))
	atRest(t, b)
	b.Tick(12 * time.Hour)
	name := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.Remove("vision/train")
	b.Round()
	c := b.W.Ledger.Contract(name)
	if c.Status.Phase != v1alpha1.PhaseReleased || c.Status.Accrued == nil || c.Status.Accrued.Text() != "30.00" || !strings.Contains(c.Status.Message, "its term is charged") {
		t.Errorf("removed too late: %s %s, cost %v", c.Status.Phase, c.Status.Message, c.Status.Accrued)
	}
	b.Intent("speech/other", plantest.With(func(s *v1alpha1.IntentSpec) { s.Suspend = true }))
	atRest(t, b)
	if n := len(contractsOf(b, "speech/other")); n != 0 {
		t.Errorf("suspended it has %d bookings", n)
	}
}

// TestBooking_GangsAndStarts: a gang is booked whole, on one provider where it must, and a
// flavor has bookings at 64 instants at most.
func TestBooking_GangsAndStarts(t *testing.T) {
	t.Parallel()
	gang := plantest.With(func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(true) })
	b := bookable().Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 12, "80Gi"), plantest.Costs("3")).
		Intent("vision/gang", plantest.Wants(4), plantest.Times(3), gang, books(24*time.Hour, 4*time.Hour)).
		Intent("vision/larger", plantest.Wants(4), plantest.Times(3), gang, books(25*time.Hour, 4*time.Hour))
	p := atRest(t, b)
	list := contractsOf(b, "vision/gang")
	for _, c := range list {
		if c.Spec.Provider != "milan" {
			t.Errorf("on %s", c.Spec.Provider)
		}
	}
	if d := plantest.Of(p, "vision/larger"); len(list) != 3 || d.Action != planner.Queued || len(contractsOf(b, "vision/larger")) != 0 {
		t.Errorf("%d replicas; %s %s", len(list), d.Action, d.Reason)
	}
	b = bookable()
	for i := range 65 {
		b.Intent("vision/n"+string(rune('a'+i/26))+string(rune('a'+i%26)), plantest.Wants(1), books(time.Duration(i+1)*time.Hour, 30*time.Minute))
	}
	p = atRest(t, b)
	refused := 0
	for _, d := range p.Intents {
		if d.Action == planner.Queued {
			refused++
			if !strings.Contains(d.Reason, "has bookings that begin at 64 instants already") {
				t.Errorf("%s: %s", d.Name, d.Reason)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d of 65 wait, want 1", refused)
	}
}

// TestBooking_TermsGoOn: an intent whose file cannot be read begins as it booked, and its
// booking is not made again; one whose capacity stays taken is given up after the grace
// period, and placed as any other.
func TestBooking_TermsGoOn(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.W.Frozen = []model.Freeze{{Path: "intents/vision/train.yaml", Why: "yaml"}}
	b.W.Intents = nil
	b.Tick(12 * time.Hour)
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Tick(12 * time.Hour)
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseActive)

	b = bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.Offer("paris/h100", plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Used = plantest.Amounts("gpu=8") }))
	b.Tick(24 * time.Hour)
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Tick(6 * time.Minute)
	p := atRest(t, b)
	if d := plantest.Of(p, "vision/train"); d.Action != planner.Queued || len(contractsOf(b, "vision/train")) != 0 {
		t.Errorf("%s %s", d.Action, d.Reason)
	}
	b.Offer("paris/h100", plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Used = nil }))
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseActive)
}
