package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/audit/focus"
	inputs "github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// TestChargesOfCancelledBookings: what a booking costs that is cancelled too late, before its
// delivery or within its lead, is charged once, in the months of its term, and verified; the
// rows of FOCUS call it a purchase of which nothing was used.
func TestChargesOfCancelledBookings(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"booked": time.Hour, "within its lead": 24*time.Hour - 5*time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fleet{story.New(t, "ledger", nil, ""), t}
			s.EditFleet("Bookings", "  retention: {ended: 30m}\n", "  bookings: {freeUntil: 48h}\n")
			s.Push("May book", map[string]string{"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], quota: {book: true}, budget: {monthly: \"100000\", currency: EUR}}\n"})
			start := s.At.Add(24 * time.Hour).Truncate(time.Second).UTC()
			s.Ask("later", 2, fmt.Sprintf("  schedule: {notBefore: %q, duration: 1440h, book: true}\n", start.Format(time.RFC3339)))
			s.Rest()
			if c := s.Contract("later"); c.Status.Phase != v1alpha1.PhaseBooked {
				t.Fatalf("it is %s", c.Status.Phase)
			}
			s.At = start.Add(wait - 24*time.Hour)
			s.Rest()
			s.Push("No more", nil, "intents/vision/later.yaml")
			s.Rest()
			now, books := v1alpha1.TimeOf(s.At), ledger.Books{Zone: time.UTC, Currency: "EUR"}
			var list []audit.Charge
			sum := func(when audit.Period) (cost v1alpha1.Decimal, months map[string]bool) {
				list, months = nil, map[string]bool{}
				when.Now = now
				if err := audit.Charges(t.Context(), s.Remote.Objects(), s.options(), when, func(c audit.Charge) {
					list = append(list, c)
					cost, months[c.Month] = cost.Add(c.Cost.Amount), true
				}); err != nil {
					t.Fatal(err)
				}
				return cost, months
			}
			cost, months := sum(audit.Period{})
			if want := carried(s.Read(), books, now)["EUR"].Amount; cost.Cmp(want) != 0 || cost.Text() != "7200.00" || len(months) < 3 {
				t.Errorf("charges %s over %d months, the ledger says %s", cost.Text(), len(months), want.Text())
			}
			var out strings.Builder
			if err := focus.Write(&out, focus.V13, &inputs.Fleet{Name: "acme"}, books, "EUR", list); err != nil {
				t.Fatal(err)
			}
			for _, row := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
				if !strings.Contains(row, ",Purchase,,cancelled booking of vision/later on paris/h100") {
					t.Errorf("row %s", row)
				}
			}
			_, next := books.MonthBounds(v1alpha1.TimeOf(start))
			before, _ := sum(audit.Period{Until: next})
			after, _ := sum(audit.Period{From: next})
			if before.Add(after).Cmp(cost) != 0 || before.IsZero() || after.IsZero() {
				t.Errorf("%s before and %s after make %s", before.Text(), after.Text(), cost.Text())
			}
			spent, err := books.MonthSpend(s.Read(), "vision", next)
			if err != nil || spent.IsZero() {
				t.Errorf("the next month has %s: %v", spent.Text(), err)
			}
			if rep := s.verify(); len(rep.Violations) > 0 {
				t.Error(rep.Violations[0])
			}
		})
	}
}

// TestChargesOfWhatEndsAsItBegins: a booking that begins and is given up in one round is
// charged as one that had begun before: what the ledger charges is verified, and what it
// forgets is found.
func TestChargesOfWhatEndsAsItBegins(t *testing.T) {
	t.Parallel()
	for name, charged := range map[string]bool{"charged": true, "forgotten": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fleet{story.New(t, "ledger", nil, ""), t}
			s.EditFleet("Bookings", "  retention: {ended: 30m}\n", "  bookings: {freeUntil: 48h}\n")
			s.Push("May book", map[string]string{"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], quota: {book: true}}\n"})
			start := s.At.Add(24 * time.Hour).Truncate(time.Second).UTC()
			s.Ask("later", 2, fmt.Sprintf("  schedule: {notBefore: %q, duration: 24h, book: true}\n", start.Format(time.RFC3339)))
			s.Rest()
			was := s.Contract("later")
			s.At = start.Add(-5 * time.Minute)
			now, books := v1alpha1.TimeOf(s.At), ledger.Books{Zone: time.UTC, Currency: "EUR"}
			next, err := books.Transition(was, v1alpha1.PhaseReserved, ledger.Reason{}, now)
			if err != nil {
				t.Fatal(err)
			}
			if next, err = books.Release(next, v1alpha1.PhaseReleased, ledger.Reason{Code: "FewerReplicas", Message: "its file asks for fewer"}, now); err != nil {
				t.Fatal(err)
			}
			if charged {
				next = books.ChargeTerm(next)
			}
			s.forge(forged{changes: changed(was, next), now: s.At})
			var spend []string
			for _, v := range s.verify().Violations {
				if v.Rule == "spend" {
					spend = append(spend, v.Message)
				}
			}
			if (len(spend) == 0) != charged {
				t.Errorf("violations: %q", spend)
			}
		})
	}
}
