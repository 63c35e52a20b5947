package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func rome(tb interface{ Fatal(...any) }) ledger.Books {
	b, err := ledger.BooksOf(&v1alpha1.FleetSpec{Currency: "EUR", Timezone: "Europe/Rome"})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// step is one change of a contract's life in a table.
type step struct {
	at     string
	phase  v1alpha1.Phase
	reason string
}

// because is a reason as tests write it: "<code>: <message>".
func because(text string) ledger.Reason {
	code, message, _ := strings.Cut(text, ": ")
	return ledger.Reason{Code: code, Message: message}
}

func live(t *testing.T, b ledger.Books, c *v1alpha1.Contract, steps []step) *v1alpha1.Contract {
	t.Helper()
	for _, s := range steps {
		next, err := b.Transition(c, s.phase, because(s.reason), at(s.at))
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	return c
}

func fresh(hourly, list string) *v1alpha1.Contract {
	c := contract("vision", "llm", 0, 0)
	c.Status = v1alpha1.ContractStatus{}
	c.Spec.Price.Hourly, c.Spec.Price.List = dec(hourly), dec(list)
	return c
}

func TestAccrued(t *testing.T) {
	const day = "2026-11-20T"
	cases := map[string]struct {
		steps []step
		at    string
		want  string
	}{
		"not reserved yet costs nothing":     {nil, day + "12:00:00Z", "0"},
		"from Reserved on, per second":       {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}}, day + "11:00:01Z", "3.601"},
		"phases that are charged go through": {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "10:10:00Z", v1alpha1.PhasePeering, ""}, {day + "10:20:00Z", v1alpha1.PhaseActive, ""}}, day + "11:00:00Z", "3.6"},
		"degraded by the provider is free":   {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "10:30:00Z", v1alpha1.PhaseDegraded, "ProviderLost: paris silent"}}, day + "14:00:00Z", "1.8"},
		"and charged again once recovered":   {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "10:30:00Z", v1alpha1.PhaseDegraded, "NodeNotReady"}, {day + "11:30:00Z", v1alpha1.PhaseActive, ""}}, day + "12:00:00Z", "3.6"},
		"degraded by the consumer is paid":   {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "10:30:00Z", v1alpha1.PhaseDegraded, "ConsumerUnreachable: rome"}}, day + "11:00:00Z", "3.6"},
		"another reason changes who pays":    {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "10:30:00Z", v1alpha1.PhaseDegraded, "ConsumerUnreachable"}, {day + "11:00:00Z", v1alpha1.PhaseDegraded, "ProviderSilent"}}, day + "12:00:00Z", "3.6"},
		"until Releasing":                    {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}, {day + "11:00:00Z", v1alpha1.PhaseReleasing, ""}, {day + "13:00:00Z", v1alpha1.PhaseReleased, ""}}, day + "18:00:00Z", "3.6"},
		"before it began":                    {[]step{{day + "10:00:00Z", v1alpha1.PhaseReserved, ""}}, day + "09:00:00Z", "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := rome(t)
			if got := b.Accrued(live(t, b, fresh("3.6", "4"), tc.steps), at(tc.at)); got.Cmp(dec(tc.want)) != 0 {
				t.Errorf("accrued %s, want %s", got, tc.want)
			}
		})
	}
}

func TestMonthsAreTheFleets(t *testing.T) {
	b := rome(t)
	// Rome's December begins at 23:00 UTC.
	c := live(t, b, fresh("1", "2"), []step{{"2026-11-30T22:00:00Z", v1alpha1.PhaseReserved, ""}})
	got := b.CostByMonth(c, at("2026-12-01T01:00:00Z"))
	if len(got) != 2 || got["2026-11"].Amount.String() != "1" || got["2026-12"].Amount.String() != "2" || got["2026-12"].List.String() != "4" {
		t.Fatalf("%v", got)
	}
	start, end := b.MonthBounds(at("2026-11-30T23:30:00Z"))
	if !start.Equal(at("2026-11-30T23:00:00Z").Time) || !end.Equal(at("2026-12-31T23:00:00Z").Time) {
		t.Fatal(start, end)
	}
}

func TestPriceWindows(t *testing.T) {
	night := v1alpha1.ContractPriceWindow{Window: v1alpha1.Window{From: "20:00", To: "06:00", Timezone: "Europe/Rome"}, Hourly: dec("1")}
	weekend := v1alpha1.ContractPriceWindow{Window: v1alpha1.Window{Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00"}, Hourly: dec("2")}
	saturdayNight := v1alpha1.ContractPriceWindow{Window: v1alpha1.Window{Days: []string{"Sat"}, From: "22:00", To: "02:00"}, Hourly: dec("0.5")}
	cases := map[string]struct {
		windows  []v1alpha1.ContractPriceWindow
		from, to string
		want     string
	}{
		"no window":                        {nil, "2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z", "20"},
		"outside":                          {[]v1alpha1.ContractPriceWindow{night}, "2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z", "20"},
		"a night from evening to morning":  {[]v1alpha1.ContractPriceWindow{night}, "2026-11-20T18:00:00Z", "2026-11-21T06:00:00Z", "30"},
		"the night that began yesterday":   {[]v1alpha1.ContractPriceWindow{night}, "2026-11-20T02:00:00Z", "2026-11-20T06:00:00Z", "13"},
		"Saturday and Sunday by the fleet": {[]v1alpha1.ContractPriceWindow{weekend}, "2026-11-20T22:00:00Z", "2026-11-23T00:00:00Z", "116"},
		"overlap: the first holds":         {[]v1alpha1.ContractPriceWindow{saturdayNight, weekend}, "2026-11-21T20:00:00Z", "2026-11-22T02:00:00Z", "6"},
		// 25 October 2026: 03:00 becomes 02:00 in Rome, the night has eleven hours.
		"an hour that comes twice": {[]v1alpha1.ContractPriceWindow{night}, "2026-10-24T18:00:00Z", "2026-10-25T05:00:00Z", "11"},
		// 28 March 2027: 02:00 becomes 03:00, the night has nine.
		"an hour that does not come": {[]v1alpha1.ContractPriceWindow{night}, "2027-03-27T19:00:00Z", "2027-03-28T04:00:00Z", "9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := rome(t)
			p := v1alpha1.ContractPrice{Hourly: dec("10"), List: dec("10"), Windows: tc.windows}
			if got := b.HoldUntil(p, at(tc.from), v1alpha1.Time{}, at(tc.to)); got.Cmp(dec(tc.want)) != 0 {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestInWindow(t *testing.T) {
	b := rome(t)
	night := v1alpha1.Window{Days: []string{"Mon", "Tue"}, From: "20:00", To: "06:00"}
	always := v1alpha1.Window{From: "00:00", To: "24:00"}
	cases := map[string]struct {
		w     v1alpha1.Window
		at    string
		open  bool
		until string
	}{
		"Monday evening":        {night, "2026-11-23T20:00:00Z", true, "2026-11-24T05:00:00Z"},
		"Wednesday morning":     {night, "2026-11-25T04:59:59Z", true, "2026-11-25T05:00:00Z"},
		"its end is outside":    {night, "2026-11-25T05:00:00Z", false, "2026-11-30T19:00:00Z"},
		"Sunday, until Monday":  {night, "2026-11-22T20:00:00Z", false, "2026-11-23T19:00:00Z"},
		"always has no end":     {always, "2026-11-22T20:00:00Z", true, ""},
		"every weekday is open": {v1alpha1.Window{Days: []string{"Sun"}, From: "06:00", To: "06:00"}, "2026-11-22T20:00:00Z", true, "2026-11-23T05:00:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			open, until := b.InWindow(tc.w, at(tc.at))
			want := v1alpha1.Time{}
			if tc.until != "" {
				want = at(tc.until)
			}
			if open != tc.open || !until.Equal(want.Time) {
				t.Errorf("open %v until %v, want %v until %v", open, until, tc.open, tc.until)
			}
		})
	}
}

func TestHoldMonthly(t *testing.T) {
	b := rome(t)
	c := live(t, b, fresh("2", "2"), []step{{"2026-11-30T20:00:00Z", v1alpha1.PhaseReserved, ""}})
	now := at("2026-11-30T20:00:00Z")
	if got := b.HoldMonthly(c, now); got.String() != "6" {
		t.Errorf("open-ended: %s, want the 3 hours left of Rome's November", got)
	}
	c.Spec.Term.End = at("2026-11-30T21:00:00Z")
	if got := b.HoldMonthly(c, now); got.String() != "2" {
		t.Errorf("term: %s, want 1 hour", got)
	}
	c = live(t, b, c, []step{{"2026-11-30T20:00:00Z", v1alpha1.PhaseReleasing, ""}})
	if got := b.HoldMonthly(c, now); !got.IsZero() {
		t.Errorf("releasing: %s", got)
	}
}

func TestConvert(t *testing.T) {
	day := func(s string) v1alpha1.Date {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return v1alpha1.Date{Time: d}
	}
	b := ledger.Books{Currency: "EUR", Rates: []v1alpha1.Rate{
		{From: "USD", To: "EUR", Rate: dec("0.95"), Date: day("2026-12-01")},
		{From: "USD", To: "EUR", Rate: dec("0.92"), Date: day("2026-11-01")},
		{From: "USD", To: "EUR", Rate: dec("0.90"), Date: day("2026-10-01")},
	}}
	if got, err := b.Convert(dec("10"), "USD", at("2026-11-20T00:00:00Z")); err != nil || got.String() != "9.2" {
		t.Errorf("%s %v, want the newest rate that is not in the future", got, err)
	}
	if _, err := b.Convert(dec("10"), "USD", at("2026-09-20T00:00:00Z")); !errors.Is(err, ledger.ErrNoRate) {
		t.Errorf("before any rate: %v", err)
	}
	if _, err := b.Convert(dec("10"), "CHF", at("2026-11-20T00:00:00Z")); !errors.Is(err, ledger.ErrNoRate) {
		t.Errorf("without a rate: %v", err)
	}
}

// drawLife is a contract that has gone through a random life.
func drawLife(t *rapid.T, b ledger.Books, intent string, replica int32, from v1alpha1.Time) (*v1alpha1.Contract, v1alpha1.Time) {
	c := contract("vision", intent, replica, 0)
	c.Status = v1alpha1.ContractStatus{}
	c.Spec.Price.Hourly = v1alpha1.DecimalFromInt(rapid.Int64Range(0, 1e9).Draw(t, "micro")).DivInt(1e6, 6)
	if rapid.Bool().Draw(t, "window") {
		c.Spec.Price.Windows = []v1alpha1.ContractPriceWindow{{Window: v1alpha1.Window{From: "20:00", To: "06:00"}, Hourly: dec("0.123457")}}
	}
	now := from
	next, err := b.Transition(c, v1alpha1.PhaseReserved, ledger.Reason{}, now)
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		if err != nil {
			t.Fatal(err)
		}
		c = next
		now = v1alpha1.TimeOf(now.Add(time.Duration(rapid.IntRange(0, 40*86400).Draw(t, "seconds")) * time.Second))
		before := b.Accrued(c, now)
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			next = b.Settle(c, now)
			next.Spec.Price.Hourly = dec("7.77")
		case 1:
			next, err = b.Transition(c, v1alpha1.PhaseDegraded, ledger.Reason{Code: "ProviderSilent"}, now)
		case 2:
			if c.Status.Phase != v1alpha1.PhaseActive {
				next, err = b.Transition(c, v1alpha1.PhaseActive, ledger.Reason{}, now)
			}
		}
		if err == nil && b.Accrued(next, now).Cmp(before) != 0 {
			t.Fatalf("a change at %v made %s of %s", now, b.Accrued(next, now), before)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return next, now
}

// TestRetentionLosesNothing: what a tenant spent in every month, and what each
// intent spent, is the same before and after ended contracts leave the tree,
// in one go or in several.
func TestRetentionLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rome(t)
		var ch ledger.Changes
		end := at("2026-01-31T22:58:00Z")
		for _, intent := range []string{"llm", "fold"} {
			ch.States = append(ch.States, model.StateChange{After: state("vision", intent)})
			for i := range rapid.IntRange(1, 3).Draw(t, "contracts") {
				c, now := drawLife(t, b, intent, int32(i), at("2026-01-31T22:58:00Z"))
				if rapid.IntRange(0, 3).Draw(t, "ends") > 0 {
					rel, err := b.Release(c, v1alpha1.PhaseExpired, ledger.Reason{Code: "TermOver"}, now)
					if err != nil {
						t.Fatal(err)
					}
					if c, err = b.End(rel, ledger.Reason{}, now); err != nil {
						t.Fatal(err)
					}
				}
				ch.Contracts = append(ch.Contracts, model.Change{After: c})
				if now.After(end.Time) {
					end = now
				}
			}
		}
		l := ledger.Empty().With(ch)
		later := v1alpha1.TimeOf(end.AddDate(0, 1, 0))
		sums := func(l *ledger.Ledger) []string {
			var out []string
			for m := at("2026-01-15T00:00:00Z"); m.Before(later.AddDate(0, 1, 0)); m = v1alpha1.TimeOf(m.AddDate(0, 1, 0)) {
				_, monthEnd := b.MonthBounds(m)
				last := v1alpha1.TimeOf(monthEnd.Add(-time.Second))
				s, err := b.MonthSpend(l, "vision", last)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s.String())
			}
			for _, intent := range []string{"llm", "fold"} {
				s, err := b.IntentSpent(l, "vision", intent, later)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s.String())
			}
			return out
		}
		want := sums(l)
		first := b.Retire(l, v1alpha1.TimeOf(end.Add(-10*24*time.Hour)), 24*time.Hour, nil)
		l = l.With(first)
		second := b.Retire(l, later, 24*time.Hour, nil)
		l = l.With(second)
		if got := sums(l); !slices.Equal(got, want) {
			t.Fatalf("after retention %v, before %v", got, want)
		}
		for c := range l.Contracts() {
			if ledger.Ended(c.Status.Phase) {
				t.Fatalf("%s stayed", c.Metadata.Name)
			}
		}
		if again := b.Retire(l, later, 24*time.Hour, nil); !again.Empty() {
			t.Fatalf("retention repeats itself: %+v", again)
		}
	})
}

func TestStateLeavesWithItsLastContract(t *testing.T) {
	b := rome(t)
	begins := fresh("1", "1")
	begins.Spec.Term.Start = at("2026-11-01T00:00:00Z")
	c := live(t, b, begins, []step{{"2026-11-01T00:00:00Z", v1alpha1.PhaseReserved, ""}, {"2026-11-01T01:00:00Z", v1alpha1.PhaseReleasing, ""}, {"2026-11-01T01:00:00Z", v1alpha1.PhaseReleased, ""}})
	l := ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: c}}, States: []model.StateChange{{After: state("vision", "llm")}}})
	now := at("2026-11-20T00:00:00Z")
	kept := l.With(b.Retire(l, now, 0, func(string, string) bool { return false }))
	if s := kept.State("vision", "llm"); s == nil || s.Status.Spent == nil || s.Status.Spent.String() != "1" {
		t.Errorf("state %+v, want it kept with what was spent", s)
	}
	gone := l.With(b.Retire(l, now, 0, func(string, string) bool { return true }))
	if gone.State("vision", "llm") != nil || gone.Len() != 0 || len(gone.Spends("vision")) != 1 {
		t.Error("want state and contract gone, and the spend kept")
	}
}
