package planner

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

func TestOpenAt(t *testing.T) {
	rome := func(days []string, from, to string) v1alpha1.Window {
		return v1alpha1.Window{Days: days, From: from, To: to, Timezone: "Europe/Rome"}
	}
	at := func(s string) v1alpha1.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v1alpha1.TimeOf(v)
	}
	night := rome([]string{"Fri"}, "20:00", "06:00")
	for name, c := range map[string]struct {
		windows     []v1alpha1.Window
		at          string
		open        bool
		untilOrNext string
	}{
		"before":               {windows: []v1alpha1.Window{night}, at: "2026-11-20T12:00:00Z", untilOrNext: "2026-11-20T19:00:00Z"},
		"in it, past midnight": {windows: []v1alpha1.Window{night}, at: "2026-11-21T04:59:59Z", open: true, untilOrNext: "2026-11-21T05:00:00Z"},
		"at its end":           {windows: []v1alpha1.Window{night}, at: "2026-11-21T05:00:00Z", untilOrNext: "2026-11-27T19:00:00Z"},
		"two that touch":       {windows: []v1alpha1.Window{night, rome([]string{"Sat"}, "06:00", "24:00")}, at: "2026-11-20T20:00:00Z", open: true, untilOrNext: "2026-11-21T23:00:00Z"},
		"all week":             {windows: []v1alpha1.Window{rome(nil, "00:00", "24:00")}, at: "2026-11-20T20:00:00Z", open: true},
		"summer time begins":   {windows: []v1alpha1.Window{rome(nil, "20:00", "06:00")}, at: "2026-03-28T20:00:00Z", open: true, untilOrNext: "2026-03-29T04:00:00Z"},
	} {
		books, err := ledger.BooksOf(&v1alpha1.FleetSpec{Timezone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		open, until, next := lifecycle.OpenAt(books, c.windows, at(c.at))
		edge := until
		if !open {
			edge = next
		}
		want := v1alpha1.Time{}
		if c.untilOrNext != "" {
			want = at(c.untilOrNext)
		}
		if open != c.open || !edge.Equal(want.Time) {
			t.Errorf("%s: open %v, edge %v; want %v, %v", name, open, edge, c.open, want)
		}
	}
}
