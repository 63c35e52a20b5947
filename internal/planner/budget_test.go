package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func budget(b v1alpha1.TenantBudget) func(*v1alpha1.TenantSpec) {
	return func(s *v1alpha1.TenantSpec) { s.Budget = &b }
}

// flat is a card at 1.00 EUR an hour.
func flat(zone string) *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Fleet(func(f *v1alpha1.FleetSpec) { f.Timezone = zone }).
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1.00"), Static)
}

func line(t *testing.T, p *planner.Plan) planner.BudgetLine {
	t.Helper()
	if len(p.Budgets) != 1 {
		t.Fatalf("%+v", p.Budgets)
	}
	return p.Budgets[0]
}

var reserved = With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve })

// Accrued, held and forecast of a month that has a change of the clock: in
// Rome, October 2026 has 745 hours and March 743.
func TestBudgetOverAMonth(t *testing.T) {
	for _, c := range []struct {
		zone, now, ends string
		hours           string // of the whole month
	}{
		{"Europe/Rome", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", "745.00"},
		{"Europe/Rome", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", "743.00"},
		{"UTC", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z", "744.00"},
		{"UTC", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "696.00"},
	} {
		b := flat(c.zone).Tenant("vision", "rome", budget(v1alpha1.TenantBudget{Monthly: Money("800")})).Intent("vision/train", Wants(1), reserved)
		b.W.Now = Time(c.now)
		l := line(t, b.Round())
		if l.Accrued.Text() != "0.00" || l.Held.Text() != c.hours || l.Forecast.Text() != c.hours || l.Ends != Time(c.ends) || l.Warning != "" {
			t.Fatalf("%s %s: %+v", c.zone, c.now, l)
		}
		b.Tick(100 * time.Hour)
		if l = line(t, b.Round()); l.Accrued.Text() != "100.00" || l.Forecast.Text() != c.hours {
			t.Fatalf("%s after 100 hours: %+v", c.zone, l)
		}
		// A second before the month turns all of it is accrued, and at its turn nothing.
		b.W.Now = v1alpha1.TimeOf(Time(c.ends).Add(-time.Second))
		b.Round()
		b.Tick(time.Second)
		if l = line(t, b.Round()); l.Accrued.Text() != "0.00" || l.Month == "" {
			t.Fatalf("%s after the turn: %+v", c.zone, l)
		}
	}
}

func TestAtLimit(t *testing.T) {
	start := Time("2026-11-29T00:00:00Z") // two days before the month ends
	made := func(at string) *Builder {
		b := flat("UTC").Tenant("vision", "rome", budget(v1alpha1.TenantBudget{Monthly: Money("60"), AtLimit: at}))
		b.W.Now = start
		b.Intent("vision/a", Wants(1), reserved)
		b.Round()
		return b.Intent("vision/train", Wants(1), reserved)
	}
	t.Run("stop", func(t *testing.T) {
		b := made("")
		p := step(t, b, "48 are held, 48 more do not fit", map[string]string{"vision/a": "keep", "vision/train": "queue BudgetExceeded"})
		if d := Of(p, "vision/train"); d.Expected.IsZero() != true {
			t.Fatalf("in December both would be too dear: %v", d.Expected)
		}
		b.W.Now = Time("2026-12-01T00:00:00Z")
		step(t, b, "what stands runs on", map[string]string{"vision/a": "keep", "vision/train": "queue BudgetExceeded"})
		if l := line(t, b.Round()); l.Warning != "has spent and holds 744.00 of 60.00 EUR this month" {
			t.Fatalf("%+v", l)
		}
	})
	t.Run("warn", func(t *testing.T) {
		b := made("warn")
		p := step(t, b, "goes on", map[string]string{"vision/train": "place"})
		if l := line(t, p); l.Warning != "has spent and holds 96.00 of 60.00 EUR this month" || l.AtLimit != "warn" {
			t.Fatalf("%+v", l)
		}
	})
	t.Run("end", func(t *testing.T) {
		b := made("end")
		step(t, b, "as stop", map[string]string{"vision/a": "keep", "vision/train": "queue BudgetExceeded"})
		b.W.Now = Time("2026-12-01T00:00:00Z")
		b.Round()
		b.W.Now = Time("2026-12-03T11:59:59Z")
		step(t, b, "a second before", map[string]string{"vision/a": "keep"})
		b.W.Now = Time("2026-12-03T12:00:00Z")
		p := step(t, b, "spent", map[string]string{"vision/a": "queue BudgetExceeded", "vision/train": "queue BudgetExceeded"})
		if l := line(t, p); l.Warning != "has spent 60.00 of 60.00 EUR this month" {
			t.Fatalf("%+v", l)
		}
		// What waits for money starts by itself when the month turns, if it fits then.
		b.Intent("vision/next", Wants(1), reserved, For(24*time.Hour))
		p = step(t, b, "waits for January", map[string]string{"vision/next": "queue BudgetExceeded"})
		if d := Of(p, "vision/next"); d.Expected != Time("2027-01-01T00:00:00Z") {
			t.Fatalf("%v", d.Expected)
		}
		b.W.Now = Time("2027-01-01T00:00:00Z")
		step(t, b, "January", map[string]string{"vision/next": "place", "vision/a": "queue BudgetExceeded"})
	})
}

// Windows that open again before the month ends are in the forecast.
func TestForecastOfWindows(t *testing.T) {
	b := flat("Europe/Rome").Tenant("vision", "rome", budget(v1alpha1.TenantBudget{Monthly: Money("25")}))
	b.W.Now = Time("2026-11-26T20:00:00Z") // 21:00 in Rome
	b.Intent("vision/night", Wants(1), reserved, With(func(s *v1alpha1.IntentSpec) {
		s.Schedule.Windows = []v1alpha1.Window{{From: "20:00", To: "02:00"}}
	}))
	// Held: five hours of this night. To come: the 27th, 28th and 29th six hours
	// each, and of the 30th the four before midnight.
	l := line(t, b.Round())
	if l.Held.Text() != "5.00" || l.Forecast.Text() != "27.00" || l.Warning != "is forecast to spend 27.00 of 25.00 EUR this month" {
		t.Fatalf("%+v", l)
	}
}

// A limit in another currency counts by the newest rate that is not in the
// future, and prices by that of their placement.
func TestBudgetByDatedRates(t *testing.T) {
	day := func(s string) v1alpha1.Date { return v1alpha1.Date{Time: Time(s + "T00:00:00Z").Time} }
	b := flat("UTC").Fleet(func(f *v1alpha1.FleetSpec) {
		f.Rates = []v1alpha1.Rate{
			{From: "USD", To: "EUR", Rate: v1alpha1.MustDecimal("0.50"), Date: day("2026-11-22")},
			{From: "USD", To: "EUR", Rate: v1alpha1.MustDecimal("0.90"), Date: day("2026-11-10")},
			{From: "USD", To: "EUR", Rate: v1alpha1.MustDecimal("0.80"), Date: day("2026-11-01")},
		}
	}).Tenant("vision", "rome", budget(v1alpha1.TenantBudget{Hourly: Money("2"), Currency: "USD"}))
	if l := line(t, b.Round()); l.MaxHourly.Text() != "1.80" {
		t.Fatalf("%+v", l)
	}
	b.Intent("vision/a", Wants(1), reserved).Round()
	b.W.Now = Time("2026-11-22T00:00:00Z")
	b.Intent("vision/train", Wants(1), reserved)
	p := step(t, b, "at half the rate", map[string]string{"vision/a": "keep", "vision/train": "queue BudgetExceeded"})
	if l := line(t, p); l.MaxHourly.Text() != "1.00" || l.Hourly.Text() != "1.00" {
		t.Fatalf("%+v", l)
	}
}
