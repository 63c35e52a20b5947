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
	p = b.Round()
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
	p = atRest(t, b)
	if st := b.W.Ledger.State("vision", "train").Status; st.State != v1alpha1.IntentDone {
		t.Errorf("state %s at its end", st.State)
	}
	only(t, b, "speech/open", v1alpha1.PhaseActive)
	_ = p
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
