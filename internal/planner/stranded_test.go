package planner_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// placedAt is which offer the only contract of an intent is of.
func placedAt(t *testing.T, p *planner.Plan, ref string) string {
	t.Helper()
	d := Of(p, ref)
	if len(d.Contracts) != 1 {
		t.Fatalf("%s: %+v", ref, d)
	}
	return d.Contracts[0].Provider + "/" + d.Contracts[0].Flavor
}

// Of offers that cost the same, the one goes first of which less is stranded; by the rules
// before 23 it was the first by name.
func TestShares_FillWhatIsOpen(t *testing.T) {
	for rules, want := range map[int]string{0: "paris/b", 22: "paris/a"} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/b", shared(2, 10, "mps"), Costs("2"))
		b.W.Rules = rules
		b.Intent("vision/first", wantsShare("0.5"), cheapest)
		step(t, b, "one offer", map[string]string{"vision/first": "place"})
		b.Offer("paris/a", shared(2, 10, "mps"), Costs("2"))
		b.Intent("vision/second", wantsShare("0.5"), cheapest)
		if got := placedAt(t, b.Round(), "vision/second"); got != want {
			t.Errorf("rules %d: half a card of %s, want %s", rules, got, want)
		}
	}
}

// A share goes where those that usually come with it fill the rest: 0.8 next to nothing
// leaves room for 0.2, and half a card that is free stays for who asks for half.
func TestShares_LeaveRoomForWhoUsuallyComes(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/a", shared(1, 10, "mps"), Costs("2"))
	b.Intent("vision/half", wantsShare("0.5"))
	step(t, b, "one card", map[string]string{"vision/half": "place"})
	b.Offer("paris/b", shared(1, 10, "mps"), Costs("2"))
	b.Intent("vision/large", wantsShare("0.8"))
	step(t, b, "another", map[string]string{"vision/large": "place"})
	b.Intent("vision/small", wantsShare("0.2"))
	if got := placedAt(t, b.Round(), "vision/small"); got != "paris/b" {
		t.Errorf("a fifth of %s, want of paris/b, which it fills", got)
	}
}
