package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// choosy is a market in which intents hold H100s that can use nothing else, each those of one
// flavor, and so many flavors of them are left; A100s cost so much.
func choosy(holders, left int, a100 string, rules int) *Builder {
	return choosyAt("2", holders, left, a100, rules)
}

// choosyAt is choosy with another price of an H100.
func choosyAt(h100 string, holders, left int, a100 string, rules int) *Builder {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Offer("lyon/a100", Cards("nvidia-a100", 36, "80Gi"), Costs(a100))
	b.W.Rules = rules
	for i := range holders + left {
		b.Offer(fmt.Sprintf("paris/h100-%02d", i), Cards("nvidia-h100", 4, "80Gi"), Costs(h100))
	}
	for i := range holders {
		b.Intent(fmt.Sprintf("vision/choosy-%d", i), Wants(4, "H100"), cheapest)
	}
	b.Round()
	return b.Tick(time.Minute)
}

// Who may go anywhere leaves the last cheap cards to those who usually come and can use
// nothing else, for up to half of their price more.
func TestScarcity_LeavesTheLastPlace(t *testing.T) {
	for name, c := range map[string]struct {
		holders, left int
		a100          string
		rules         int
		change        func(b *Builder)
		wants         []string
		leaves        bool
	}{
		"the last one":                   {8, 1, "2.5", 0, nil, nil, true},
		"by the rules before":            {8, 1, "2.5", 22, nil, nil, false},
		"too much more":                  {8, 1, "3.1", 0, nil, nil, false},
		"more is allowed":                {8, 1, "3.1", 0, scarcityOf("2"), nil, true},
		"less is allowed":                {8, 1, "2.5", 0, scarcityOf("1.2"), nil, false},
		"nothing is allowed":             {8, 1, "2.01", 0, scarcityOf("1"), nil, false},
		"there is plenty":                {8, 20, "2.5", 0, nil, nil, false},
		"one who can use nothing else":   {8, 1, "2.5", 0, nil, []string{"H100"}, false},
		"beyond its tenant's budget":     {8, 1, "2.5", 0, hourly("9"), nil, false},
		"too few hold anything to learn": {4, 1, "2.5", 0, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := choosy(c.holders, c.left, c.a100, c.rules).Tenant("other", "rome")
			if c.change != nil {
				c.change(b)
			}
			b.Intent("other/flexible", Wants(4, c.wants...), cheapest)
			p := b.Round()
			last := fmt.Sprintf("paris/h100-%02d", c.holders)
			want, left := last, ""
			if c.leaves {
				want, left = "lyon/a100", last
			}
			if got := placedAt(t, p, "other/flexible"); got != want {
				t.Errorf("placed on %s, want %s:\n%s", got, want, describe(p))
			}
			d := Of(p, "other/flexible")
			if d.Contracts[0].Left != left || (left != "") != strings.Contains(d.Reason, "left to others") {
				t.Errorf("it says that it leaves %q: %s", d.Contracts[0].Left, d.Reason)
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// The highest prices that are counted, and the most that may be paid in addition, make no more
// than can be counted.
func TestScarcity_OfTheHighestPrices(t *testing.T) {
	b := choosyAt("3900000", 8, 1, "3950000", 0).Tenant("other", "rome")
	scarcityOf("1000")(b)
	b.Intent("other/flexible", Wants(4), cheapest)
	p := b.Round()
	if got := placedAt(t, p, "other/flexible"); got != "lyon/a100" {
		t.Errorf("placed on %s, want lyon/a100:\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// However many places others need, who may go elsewhere leaves all of them, and explain has
// them in the order by which one was chosen.
func TestScarcity_LeavesEveryScarcePlace(t *testing.T) {
	for left := 1; left <= 6; left++ {
		b := choosy(24, left, "2.2", 0).Tenant("other", "rome").Intent("other/flex", Wants(4), cheapest)
		e, err := planner.Explain(b.W, "other", "flex")
		if err != nil {
			t.Fatal(err)
		}
		p := b.Round()
		if got, first := placedAt(t, p, "other/flex"), e.Offers[0].Flavor.Ref(); got != "lyon/a100" || first != got {
			t.Errorf("with %d left it is placed on %s, and %s is explained first:\n%s", left, got, first, describe(p))
		}
		if next := b.Contracts("other/flex")[0].Decision.RunnersUp; len(next) != min(left, 3) || next[0].Flavor != "paris/h100-24" {
			t.Errorf("with %d left its runners-up are %v", left, next)
		}
		wantOnlyKeeps(t, b)
	}
}

// What an intent takes after all it does not leave to others, and does not state so.
func TestScarcity_LeavesNothingThatItTakes(t *testing.T) {
	b := choosy(8, 1, "2.5", 0).Tenant("other", "rome").Offer("lyon/a100", Cards("nvidia-a100", 4, "80Gi")).
		Intent("other/gang", Wants(4), Times(2), cheapest)
	p := b.Round()
	d := Of(p, "other/gang")
	at := map[string]bool{}
	for _, c := range d.Contracts {
		if at[c.Provider+"/"+c.Flavor] = true; c.Left != "" {
			t.Errorf("it leaves %s", c.Left)
		}
	}
	if !at["lyon/a100"] || !at["paris/h100-08"] || strings.Contains(d.Reason, "left to others") {
		t.Errorf("it is on %v: %s", at, d.Reason)
	}
}

func scarcityOf(times string) func(*Builder) {
	return func(b *Builder) {
		b.Fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money(times) })
	}
}

func hourly(most string) func(*Builder) {
	return func(b *Builder) {
		b.Tenant("other", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: Money(most), Currency: "EUR"} })
	}
}

// Of what came at once the search counts what places are worth to others too: it would move a
// single one back to the cheap place else.
func TestScarcity_InBatches(t *testing.T) {
	b := choosy(8, 1, "2.5", 0)
	b.Intent("vision/one", Wants(2), cheapest).Intent("vision/two", Wants(2), cheapest)
	p := b.Round()
	for _, name := range []string{"vision/one", "vision/two"} {
		if got := placedAt(t, p, name); got != "lyon/a100" {
			t.Errorf("%s is placed on %s:\n%s", name, got, describe(p))
		}
	}
	wantOnlyKeeps(t, b)
}

// Consolidation does not move back to a place that was left to others, and moves there when
// nobody usually comes for it any more.
func TestScarcity_ConsolidationWeighsTheSame(t *testing.T) {
	b := choosy(8, 3, "2.9", 0).Fleet(func(s *v1alpha1.FleetSpec) {
		s.Consolidation = v1alpha1.Consolidation{Mode: "apply", Threshold: Money("0.01"), Hold: v1alpha1.Duration{Duration: time.Minute}}
	})
	b.Intent("vision/flexible", Wants(4), cheapest)
	b.Round()
	b.Deliver()
	for range 4 {
		b.Tick(10 * time.Minute).Round()
	}
	if c := b.Contracts("vision/flexible"); len(c) != 1 || c[0].Spec.Provider != "lyon" {
		t.Fatalf("it was moved to what it left to others: %+v", c)
	}
	b.Fleet(func(s *v1alpha1.FleetSpec) { s.Scarcity = Money("1") })
	for range 4 {
		b.Tick(10 * time.Minute).Round()
		b.Deliver()
	}
	if !moved(b.Contracts("vision/flexible"), "paris") {
		t.Fatal("it was not moved to the cheap place, which nobody is left any more")
	}
}

func moved(list []*v1alpha1.Contract, to string) bool {
	for _, c := range list {
		if c.Spec.Provider == to && c.Status.Phase.Held() {
			return true
		}
	}
	return false
}

// A price window makes the chosen offer the cheapest now, whatever it costs outside: nothing is
// left to anybody.
func TestScarcity_LeavesNothingInAPriceWindow(t *testing.T) {
	always := v1alpha1.Window{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, From: "00:00", To: "24:00", Timezone: "UTC"}
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("3"), price(func(p *v1alpha1.Price) {
			p.Windows = []v1alpha1.PriceWindow{{Window: always, PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("1")}}}
		})).
		Offer("lyon/a100", Cards("nvidia-a100", 4, "80Gi"), Costs("2")).
		Intent("vision/train", Wants(4), cheapest)
	p := b.Round()
	if at, d := placedAt(t, p, "vision/train"), Of(p, "vision/train"); at != "paris/h100" || d.Contracts[0].Left != "" || strings.Contains(d.Reason, "left to") {
		t.Errorf("it is on %s and leaves %q: %s", at, d.Contracts[0].Left, d.Reason)
	}
}
