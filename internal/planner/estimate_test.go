package planner_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func TestEstimate(t *testing.T) {
	hours := func(n int) v1alpha1.Time { return v1alpha1.TimeOf(Start.Add(time.Duration(n) * time.Hour)) }
	window := With(func(s *v1alpha1.IntentSpec) {
		s.Schedule.Windows = []v1alpha1.Window{{From: "20:00", To: "23:00"}}
	})
	for name, c := range map[string]struct {
		made func() *Builder
		want v1alpha1.Time
		says string
	}{
		"when a term ends": {func() *Builder { return paris().Intent("vision/a", Wants(8), For(3*time.Hour), Priority(1)) }, hours(3), "expected 2026-11-20T15:00:00Z, when vision/a ends"},
		"when enough have ended": {func() *Builder {
			return paris().Intent("vision/a", Wants(3), For(time.Hour), Priority(1)).Intent("vision/b", Wants(3), For(5*time.Hour), Priority(1)).Intent("vision/c", Wants(2), For(9*time.Hour), Priority(1))
		}, hours(5), "when vision/b ends"},
		"behind those before it": {func() *Builder {
			return paris().Intent("vision/a", Wants(8), For(3*time.Hour), Priority(2)).Intent("vision/first", Wants(8), Priority(1), For(time.Hour))
		}, hours(4), "when vision/first ends"},
		"never": {func() *Builder { return paris().Intent("vision/a", Wants(8), Priority(1)) }, v1alpha1.Time{}, ""},
		"a window closes": {func() *Builder {
			b := paris().Intent("vision/a", Wants(8), window, Priority(1))
			return b.Tick(8 * time.Hour)
		}, hours(11), "when vision/a ends"},
		"a victim leaves": {func() *Builder {
			b := settled(paris().Intent("vision/low", Wants(8), grace(2*time.Hour)))
			return b.Intent("vision/train", preempts(5))
		}, v1alpha1.TimeOf(Start.Add(2*time.Hour + 2*time.Minute)), "when vision/low gives way"},
		"the quota comes free too": {func() *Builder {
			return paris().Tenant("vision", "rome", quota(4, "")).Intent("vision/a", Wants(4), For(time.Hour), Priority(1))
		}, hours(1), "when vision/a ends"},
		"it gives up before": {func() *Builder {
			return paris().Intent("vision/a", Wants(8), For(3*time.Hour), Priority(1)).Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Queue.Timeout.Duration = time.Hour }))
		}, v1alpha1.Time{}, ""},
		"it would end too late then": {func() *Builder {
			return paris().Intent("vision/a", Wants(8), For(3*time.Hour), Priority(1)).Intent("vision/train", For(2*time.Hour), With(func(s *v1alpha1.IntentSpec) { s.Schedule.Deadline = hours(4) }))
		}, v1alpha1.Time{}, ""},
		"the month turns": {func() *Builder {
			return paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Monthly: Money("3100")} }).
				Intent("vision/a", Wants(4), For(280*time.Hour), Priority(1)).Intent("vision/train", For(24*time.Hour))
		}, Time("2026-12-01T00:00:00Z"), "when the month turns"},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.made()
			b.Intent("vision/train", func(in *model.Intent) {
				spec := in.Spec
				Wants(4, "H100")(in)
				if spec.Preemption != nil || !spec.Schedule.Deadline.IsZero() || spec.Queue.Timeout.Duration > 0 || spec.Schedule.Duration.Duration > 0 {
					spec.Resources = in.Spec.Resources
					in.Spec = spec
				}
			})
			p := b.Round()
			d := Of(p, "vision/train")
			if d.Action != planner.Queued || !d.Estimated || d.Expected != c.want || !strings.HasSuffix(d.Reason, c.says) {
				t.Fatalf("expected %v, want %v %q\n%s", d.Expected, c.want, c.says, describe(p))
			}
			wantOnlyKeeps(t, b)
			if c.want.IsZero() {
				return
			}
			// What was foretold comes true.
			for b.W.Now.Before(c.want.Time) {
				b.Tick(min(time.Hour, c.want.Sub(b.W.Now.Time))).Deliver().Round()
				b.Tick(2 * time.Second).Deliver().Round()
			}
			for range 8 {
				b.Tick(30 * time.Second).Deliver().Round()
			}
			if len(b.Contracts("vision/train")) != 1 {
				t.Fatal(describe(b.Plan()))
			}
		})
	}
}

// An estimate decides nothing: with and without it a plan writes the same
// contracts. While nothing else happens, what is foretold of the intents of one
// tenant comes true, but for what releasing takes. (Several tenants take turns by their shares,
// which the estimate does not foresee.)
func TestEstimatesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New().Consumer("rome").Provider("paris").Tenant("ada", "rome").
			Offer("paris/h100", Cards("nvidia-h100", rapid.IntRange(3, 6).Draw(t, "cards"), "80Gi"), Static)
		for i := range rapid.IntRange(2, 8).Draw(t, "intents") {
			b.Intent(fmt.Sprintf("%s/i%d", "ada", i),
				Wants(int32(rapid.IntRange(1, 3).Draw(t, "gpus"))), For(time.Duration(rapid.IntRange(1, 6).Draw(t, "hours"))*time.Hour),
				With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve }))
		}
		w := b.W
		w.Brief = true
		brief, p := planner.Decide(w), b.Round()
		if !reflect.DeepEqual(brief.Contracts, p.Contracts) || brief.Due != p.Due {
			t.Fatalf("the estimate changes what is done:\n%s\n%s", describe(brief), describe(p))
		}
		foretold := map[string]v1alpha1.Time{}
		for _, d := range p.Intents {
			if d.Action == planner.Queued && !d.Expected.IsZero() {
				foretold[d.Tenant+"/"+d.Name] = d.Expected
			} else if d.Action == planner.Queued {
				t.Fatalf("everything ends, and yet it is unknown when %s is served\n%s", d.Name, describe(p))
			}
		}
		for range 60 {
			b.Tick(30 * time.Minute).Round()
			b.Tick(2 * time.Second).Round()
			for ref, at := range foretold {
				if list := b.Contracts(ref); len(list) > 0 && list[0].Spec.Term.Start.Sub(at.Time).Abs() > 5*time.Minute {
					t.Fatalf("%s was expected at %s and is served at %s", ref, at, list[0].Spec.Term.Start)
				}
			}
		}
	})
}
