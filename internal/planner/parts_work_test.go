package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// pieceWorld has so many offers of 1 to 13 GPUs, and a tenant that wants replicas of 400 of
// up to 100 parts which cost a little more than it may pay: each number of parts that holds
// them fails at its last part.
func pieceWorld(offers int, alternatives int32) *Builder {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Tenant("nlp", "rome")
	for i := range offers {
		b.Offer(fmt.Sprintf("paris/f%04d", i), Cards("h100", i%13+1, "80Gi"), Capacity(fmt.Sprintf("cpu=%d memory=512Gi pods=400", i%61+20)), Costs("2.80"))
	}
	b.Intent("vision/a", Wants(400), Times(5), AtMost("1090"), splits(100, 1), With(func(s *v1alpha1.IntentSpec) {
		s.Gang, s.Resources.Named = Ptr(false), Amounts("cpu=4")
		for i := range alternatives {
			s.Alternatives = append(s.Alternatives, v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{Count: 401 + i}, Named: Amounts("cpu=4")})
		}
	}))
	return b.Intent("nlp/good", Wants(1))
}

// What is looked for parts counts against limits.work, in looks; who wants more is told so
// and others are served.
func TestWorkOfParts(t *testing.T) {
	const offers = 120
	for _, alternatives := range []int32{0, 31} {
		b := pieceWorld(offers, alternatives)
		p, did := planner.CountWork(b.W)
		if d := Of(p, "nlp/good"); d.Action != planner.Place {
			t.Errorf("the other tenant's intent: %s, %s", d.Action, d.Reason)
		}
		d := Of(p, "vision/a")
		if d.Action != planner.Queued || d.Code != lifecycle.CodeWork || !strings.Contains(d.Reason, "spec.limits.work") || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > time.Minute {
			t.Errorf("%d alternatives: %s %s %s, due %s", alternatives, d.Action, d.Code, d.Reason, p.Due)
		}
		// Of 500 parts at the most each turn may have looked at all offers five times, once
		// limits.work is used up; there are two or three turns.
		turn := int64(5 * offers * 500)
		if most := v1alpha1.DefaultWork + 3*turn; did.Parts > most || did.Parts < v1alpha1.DefaultWork {
			t.Errorf("%d alternatives: %d looks for parts, want at most %d", alternatives, did.Parts, most)
		}
		again, other := planner.CountWork(b.W)
		if got := Of(again, "vision/a"); got.Reason != d.Reason || other.Parts != did.Parts {
			t.Errorf("the same world again: %d looks and %q, were %d and %q", other.Parts, got.Reason, did.Parts, d.Reason)
		}
	}
}

// A replica that finds its parts is placed whatever limits.work is, and replicas that do not
// fit into one round are placed in later ones.
func TestWorkOfParts_EachHasItsTurn(t *testing.T) {
	b := cities("a", "b", "c").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 }).
		Intent("vision/train", Wants(12, "H100"), cheap, splits(4, 1)).Intent("vision/train2", Wants(12, "H100"), cheap, splits(4, 1))
	for range 3 {
		b.Round()
		b.Tick(time.Minute).Deliver()
	}
	if one, two := pieces(b, "vision/train"), pieces(b, "vision/train2"); one == "" || two != "" && strings.Count(two, ",") == 0 {
		t.Fatalf("%q and %q", one, two)
	}
}

// What was decided by the rules of before is decided so again.
func TestWorkOfParts_OlderRules(t *testing.T) {
	b := pieceWorld(80, 0)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 5000 })
	if d := Of(b.Plan(), "vision/a"); d.Code != lifecycle.CodeWork {
		t.Fatalf("%s %s", d.Code, d.Reason)
	}
	b.W.Rules = 16
	if p, did := planner.CountWork(b.W); Of(p, "vision/a").Code == lifecycle.CodeWork || did.Parts != 0 {
		t.Fatalf("by rules 16: %+v, %d looks", Of(p, "vision/a"), did.Parts)
	}
}

// A session, which keeps what it worked out, stops at the same look.
func TestWorkOfParts_InASession(t *testing.T) {
	b := pieceWorld(60, 2)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 30_000 })
	var s planner.Session
	for i := range 3 {
		p, want := s.Decide(b.W), planner.Decide(b.W)
		if got, as := Of(p, "vision/a"), Of(want, "vision/a"); got.Reason != as.Reason || got.Code != as.Code || len(p.Contracts) != len(want.Contracts) {
			t.Fatalf("round %d: %s %q\nwant %s %q", i, got.Code, got.Reason, as.Code, as.Reason)
		}
		b.Apply(p)
		b.Tick(10 * time.Second)
	}
}
