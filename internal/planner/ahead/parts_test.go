package ahead_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// parts makes an offer sell so many units of cards, of which per make one.
func parts(sharing string, units, per int64) func(*model.Offer) {
	return func(o *model.Offer) {
		s := &o.Flavor.Spec
		gpu := *s.GPU
		s.GPU = &gpu
		s.GPU.Sharing, s.GPU.UnitsPerGPU = sharing, int32(per)
		if sharing == "mig" {
			s.GPU.Profile = "1g.10gb"
		}
		s.Capacity = s.Capacity.Clone()
		s.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(units)
	}
}

// instances asks for MIG instances.
func instances(n int32) func(*model.Intent) {
	return plantest.With(func(s *v1alpha1.IntentSpec) {
		s.Resources.GPU = &v1alpha1.GPURequest{Count: n, Profile: "1g.10gb"}
	})
}

// TestBooking_Instances: instances of MIG are booked by their number, nobody is sold them
// beyond the start, and from the begin on they lie on cards.
func TestBooking_Instances(t *testing.T) {
	t.Parallel()
	b := bookable().Offer("paris/h100", parts("mig", 14, 7))
	b.Intent("speech/open", instances(6))
	atRest(t, b)
	b.Intent("vision/train", instances(8), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	c := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	if c.Spec.GPUs.Count != 8 || c.Spec.GPUs.Cards != nil {
		t.Errorf("booked %+v", c.Spec.GPUs)
	}
	b.Intent("vision/second", instances(1), books(30*time.Hour, time.Hour)).
		Intent("speech/long", instances(1)).
		Intent("speech/short", instances(8), plantest.For(20*time.Hour))
	p := atRest(t, b)
	only(t, b, "speech/short", v1alpha1.PhaseActive)
	for _, ref := range []string{"vision/second", "speech/long"} {
		if d := plantest.Of(p, ref); d.Action != planner.Queued || len(contractsOf(b, ref)) != 0 {
			t.Errorf("%s: %s, %s", ref, d.Action, d.Reason)
		}
	}
	if d := plantest.Of(p, "vision/second"); len(d.Near) == 0 || !strings.Contains(d.Near[0], "paris/h100 has 0 of 1 gpu free at 2026-11-21T18:00:00Z") || len(d.Try) == 0 {
		t.Errorf("near %q, try %q", d.Near, d.Try)
	}
	b.Tick(21 * time.Hour)
	atRest(t, b)
	b.Tick(2*time.Hour + 50*time.Minute)
	b.Round()
	c = only(t, b, "vision/train", v1alpha1.PhaseReserved)
	units := map[int32]int64{}
	for _, name := range []string{"vision/train", "speech/open"} {
		for _, u := range only(t, b, name, contractsOf(b, name)[0].Status.Phase).Spec.GPUs.Cards {
			units[u.Card] += u.Units
		}
	}
	if len(units) != 2 || units[0] != 7 || units[1] != 7 {
		t.Errorf("on cards %v: %+v", units, c.Spec.GPUs)
	}
	b.Deliver()
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseActive)
}

// TestBooking_Units: one unit of a card that is shared is booked, also where the others are
// taken in pieces all over the cards, and lies on a card from its begin on.
func TestBooking_Units(t *testing.T) {
	t.Parallel()
	share := func(of string) func(*model.Intent) {
		return plantest.With(func(s *v1alpha1.IntentSpec) {
			s.Resources.GPU = &v1alpha1.GPURequest{Share: plantest.Money(of)}
		})
	}
	b := bookable().Offer("paris/h100", parts("time-slicing", 8, 4))
	b.Intent("speech/a", share("0.75"))
	atRest(t, b)
	b.Intent("speech/b", share("0.75"))
	atRest(t, b)
	b.Intent("vision/train", share("0.25"), plantest.Times(2), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.Intent("vision/third", share("0.25"), books(30*time.Hour, time.Hour)).
		Intent("speech/long", share("0.25")).
		Intent("speech/short", share("0.25"), plantest.For(20*time.Hour))
	p := atRest(t, b)
	if n := len(contractsOf(b, "vision/train")); n != 2 {
		t.Fatalf("%d units are booked: %s", n, plantest.Of(p, "vision/train").Reason)
	}
	only(t, b, "speech/short", v1alpha1.PhaseActive)
	for _, ref := range []string{"vision/third", "speech/long"} {
		if d := plantest.Of(p, ref); d.Action != planner.Queued || len(contractsOf(b, ref)) != 0 {
			t.Errorf("%s: %s, %s", ref, d.Action, d.Reason)
		}
	}
	b.Tick(21 * time.Hour)
	atRest(t, b)
	b.Tick(2*time.Hour + 50*time.Minute)
	b.Round()
	units := map[int32]int64{}
	for _, ref := range []string{"vision/train", "speech/a", "speech/b"} {
		for _, c := range contractsOf(b, ref) {
			for _, u := range c.Spec.GPUs.Cards {
				units[u.Card] += u.Units
			}
		}
	}
	if len(units) != 2 || units[0] != 4 || units[1] != 4 {
		t.Errorf("on cards %v", units)
	}
}

// TestBooking_SharesAreRefused: a share of several units lies on one card, which bookings do
// not know: it is said so, as older rules say of instances and of every share.
func TestBooking_SharesAreRefused(t *testing.T) {
	t.Parallel()
	share := func(of string) func(*model.Intent) {
		return plantest.With(func(s *v1alpha1.IntentSpec) {
			s.Resources.GPU = &v1alpha1.GPURequest{Share: plantest.Money(of)}
		})
	}
	const older = "shares of cards, which are not booked ahead"
	for name, c := range map[string]struct {
		sharing string
		ask     func(*model.Intent)
		rules   int
		says    string
	}{
		"a share":                  {"time-slicing", share("0.5"), 0, "books no more than one unit of a card ahead"},
		"a unit by older rules":    {"time-slicing", share("0.25"), draft.RulesUnitsBooked - 1, older},
		"instances by older rules": {"mig", instances(2), draft.RulesInstancesBooked - 1, older},
	} {
		b := bookable().Offer("paris/h100", parts(c.sharing, 16, 4))
		b.W.Rules = c.rules
		b.Intent("vision/train", c.ask, books(24*time.Hour, time.Hour))
		p := b.Round()
		if d := plantest.Of(p, "vision/train"); d.Action != planner.Queued || !strings.Contains(d.Reason, c.says) || len(contractsOf(b, "vision/train")) != 0 {
			t.Errorf("%s: %s, %s, near %q", name, d.Action, d.Reason, d.Near)
		}
	}
}
