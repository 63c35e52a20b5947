package match_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// One entry in the table of requirements is all that a new one needs: offers that fail
// it are refused and explained, intents that ask it have classes of their own, and time
// that may meet it is waited for, in plans from nothing and in those of a Session alike.
func TestRequirement_IsOneEntry(t *testing.T) {
	match.MakeUpRequirements(t)
	asks := func(annotations map[string]string) func(*model.Intent) {
		return func(in *model.Intent) { in.Metadata.Annotations = annotations }
	}
	silver := Spec(func(s *v1alpha1.FlavorSpec) { s.Labels = map[string]string{"tier": "silver"} })
	busy := Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("cpu=8") })
	idle := Spec(func(s *v1alpha1.FlavorSpec) { s.Used = nil })
	for name, c := range map[string]struct {
		asks         map[string]string
		offer        func(*model.Offer)
		want         string // the requirement
		words, shown string
		due          v1alpha1.Time
		later        func(*Builder)
	}{
		"a label by weekday": {
			map[string]string{"on/Friday": "gold", "on/Saturday": "silver"}, silver,
			"test.weekday", "the only offer does not fit: it has another tier than is wanted on this weekday", "its tier is silver on Friday",
			Time("2026-11-21T00:00:00Z"), func(b *Builder) { b.Tick(12 * time.Hour) },
		},
		"no use": {
			map[string]string{"unused": "yes"}, busy,
			"test.unused", "the only offer does not fit: it is in use", "8 of its cores are in use",
			v1alpha1.Time{}, func(b *Builder) { b.Offer("paris/h100", idle) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
				Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2.85"), c.offer).
				Intent("vision/plain", Wants(1, "H100")).Intent("vision/train", Wants(1, "H100"), asks(c.asks))
			var session planner.Session
			session.Fault = func(why string) { t.Fatal(why) }
			decide := func() *planner.Plan {
				p := session.Decide(b.W)
				if want := b.Plan(); !reflect.DeepEqual(p, want) {
					t.Fatalf("a Session planned %+v, want %+v", Of(p, "vision/train"), Of(want, "vision/train"))
				}
				b.Apply(p)
				return p
			}
			p := decide()
			if d := Of(p, "vision/plain"); d.Action != planner.Place {
				t.Errorf("an intent that does not ask for it: %s %s", d.Action, d.Reason)
			}
			d := Of(p, "vision/train")
			if d.Action != planner.Queued || d.Rejected[c.want] != 1 || !strings.Contains(d.Reason, c.words) {
				t.Fatalf("got %s %v %q, want queue, one %s, %q", d.Action, d.Rejected, d.Reason, c.want, c.words)
			}
			if !p.Due.Equal(c.due.Time) {
				t.Errorf("plan.Due is %s, want %s", p.Due, c.due)
			}
			e, err := planner.Explain(b.W, "vision", "train")
			if err != nil {
				t.Fatal(err)
			}
			if o := e.Offers[0]; o.Fits || o.Requirement != c.want || o.Detail != c.shown {
				t.Errorf("explained by %s: %q, want %s: %q", o.Requirement, o.Detail, c.want, c.shown)
			}
			if match.Tier(c.want) != 1 {
				t.Errorf("%s is of tier %d, want 1", c.want, match.Tier(c.want))
			}
			c.later(b)
			if d := Of(decide(), "vision/train"); d.Action != planner.Place {
				t.Errorf("later: %s %s", d.Action, d.Reason)
			}
			if session.Scratch() != 1 {
				t.Errorf("%d plans were made from nothing, want 1", session.Scratch())
			}
		})
	}
}
