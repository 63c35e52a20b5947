package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func data(region string, sizeGi, egress int64) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Data = &v1alpha1.DataLocation{Region: region, SizeGi: sizeGi, EgressGiPerHour: egress}
	})
}

// abroad is a fleet in which b, in the south, is more expensive by 1 EUR an hour and
// GPU than a in the north.
func abroad() *Builder {
	return cities("a", "b").Fleet(func(f *v1alpha1.FleetSpec) {
		f.Transfer = []v1alpha1.TransferPrice{
			{From: "south", To: "north", PerGi: v1alpha1.MustDecimal("0.02")},
			{From: "east", To: "north", PerGi: v1alpha1.MustDecimal("0.10"), Currency: "USD"},
		}
	})
}

func TestDataDecidesWhere(t *testing.T) {
	for name, c := range map[string]struct {
		data func(*model.Intent)
		more func(*model.Intent)
		want string // provider
		cost string // an hour, in addition to the price
		once string
	}{
		"none":                         {With(func(*v1alpha1.IntentSpec) {}), cheap, "a", "", ""},
		"little":                       {data("south", 0, 20), cheap, "a", "0.4", "0"},
		"much":                         {data("south", 0, 200), cheap, "b", "0", "0"},
		"moved once, over a month":     {data("south", 7300, 0), cheap, "a", "0.2", "146"},
		"moved once, over a day":       {data("south", 7300, 0), For(24 * time.Hour), "b", "0", "0"},
		"both":                         {data("south", 730, 10), cheap, "a", "0.22", "14.6"},
		"in another currency":          {data("east", 0, 1), cheap, "a", "0.092", "0"},
		"a price that does not divide": {data("south", 1, 0), cheap, "a", "0.000028", "0.02"},
	} {
		t.Run(name, func(t *testing.T) {
			b := abroad().Intent("vision/train", Wants(1, "H100"), c.more, cheap, c.data)
			p := b.Round()
			k := b.Contracts("vision/train")[0]
			if k.Spec.Provider != c.want {
				t.Fatalf("placed on %s:\n%s", k.Spec.Provider, describe(p))
			}
			if got := k.Decision.Transfer; c.cost == "" {
				if got != nil {
					t.Fatalf("%+v", got)
				}
			} else if got.Hourly.String() != c.cost || got.Once.String() != c.once || got.Currency != "EUR" {
				t.Fatalf("transfer %+v", got)
			}
			if k.Spec.Price.Hourly.String() != map[string]string{"a": "1", "b": "2"}[c.want] {
				t.Fatalf("the contract's price is %s: data is no part of it", k.Spec.Price.Hourly)
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// Data weighs on the intent's budget, of each replica.
func TestDataAndBudget(t *testing.T) {
	b := abroad().Drop("b/h100").Intent("vision/train", Wants(1, "H100"), Times(2), data("south", 0, 20), AtMost("2.79"))
	d := Of(b.Plan(), "vision/train")
	if d.Action != planner.Queued || d.Rejected["budget.maxHourly"] != 1 || len(d.Try) != 1 || d.Try[0] != `budget.maxHourly: "2.80"  # 2.80 EUR/h` {
		t.Fatalf("%+v", d)
	}
	b.Intent("vision/train", AtMost("2.80"))
	p := b.Round()
	if d := Of(p, "vision/train"); d.Action != planner.Place || d.Contracts[0].Transfer.String() != "0.4" {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
	// Another replica must pay for its data too, in addition to what exists.
	b.Tick(time.Minute).Intent("vision/train", Times(3), AtMost("4.10"))
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Queued {
		t.Fatalf("%+v", d)
	}
	// Data that grows is written into the contract, and no price changes.
	b.Tick(time.Minute).Intent("vision/train", Times(2), AtMost("9"), data("south", 0, 40))
	b.Round()
	k := b.Contracts("vision/train")[0]
	if len(b.Contracts("vision/train")) != 2 || k.Decision.Transfer.Hourly.String() != "0.8" || k.Spec.Price.Hourly.String() != "1" {
		t.Fatalf("%+v", k.Decision.Transfer)
	}
	wantOnlyKeeps(t, b)
}

// A price that nobody knows is the highest, and none for a budget.
func TestUnknownTransfer(t *testing.T) {
	b := abroad().Intent("vision/train", Wants(1, "H100"), data("north", 0, 1), cheap)
	b.Round()
	if got := places(b, "vision/train"); got != "a" {
		t.Fatal(got)
	}
	b = abroad().Intent("vision/train", Wants(1, "H100"), data("west", 0, 1), AtMost("100"))
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range e.Offers {
		if l.Requirement != "data.transfer" || !strings.HasPrefix(l.Detail, "no price is known for moving data from west to ") {
			t.Fatalf("%+v", l)
		}
	}
	b = abroad().Offer("a/h100", In("", "")).Intent("vision/train", Wants(1, "H100"), data("south", 0, 1), cheap)
	b.Round()
	if got := places(b, "vision/train"); got != "b" {
		t.Fatalf("%s: an unknown region is not the cheapest", got)
	}
}
