package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// endedByTerms reports whether a contract ended by its own terms or its
// provider's, which hold while its intent cannot be read.
func endedByTerms(reason string) bool {
	switch reason {
	case lifecycle.CodeTermEnded, lifecycle.CodeMaxDuration, lifecycle.CodeBudget, lifecycle.CodeDrain, lifecycle.CodeForced,
		string(v1alpha1.Preempted), string(v1alpha1.Reclaimed), string(v1alpha1.Interrupted):
		return true
	}
	return false
}

// The ways in which a tenant may put its own specification out of force.
var outOfForce = map[string]func(b *Builder){
	"unreadable": func(b *Builder) {
		b.Remove("bio/fold").W.Frozen = []model.Freeze{{Path: "intents/bio/fold.yaml", Why: "line 9: unknown field"}}
	},
	"a wrong reference": func(b *Builder) {
		b.Intent("bio/fold", func(in *model.Intent) { in.Problem, in.ProblemCode = "no such namespace", "NotEntitled" })
	},
	"beyond its quota": func(b *Builder) {
		b.Intent("bio/fold", Times(1000))
	},
	"longer than it may": func(b *Builder) {
		b.Intent("bio/fold", For(1000*time.Hour))
	},
	"no consumer of its own": func(b *Builder) {
		b.Intent("bio/fold", With(func(s *v1alpha1.IntentSpec) { s.Consumer = "nowhere" }))
	},
	"deleted with too many others": func(b *Builder) {
		b.Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(0)) }).Remove("bio/fold")
	},
}

// squatter holds all that there is for an hour, at a low priority.
func squatter(changes ...func(*model.Intent)) *Builder {
	b := paris().Tenant("bio", "rome", func(s *v1alpha1.TenantSpec) {
		s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(16)), MaxDuration: v1alpha1.Duration{Duration: time.Hour}}
	})
	return settled(b.Intent("bio/fold", append([]func(*model.Intent){Wants(8), Priority(1), For(time.Hour)}, changes...)...))
}

func charged(b *Builder, ref string) (n int) {
	for _, c := range b.Contracts(ref) {
		if c.Status.Phase.Charged() {
			n++
		}
	}
	return n
}

// Whatever a tenant does to its file, its contracts end when their term does.
func TestTermsEndWhateverTheFileSays(t *testing.T) {
	for name, spoil := range outOfForce {
		t.Run(name, func(t *testing.T) {
			b := squatter()
			spoil(b)
			b.Tick(30 * time.Minute).Round()
			if charged(b, "bio/fold") != 1 {
				t.Fatal("within its term it stays")
			}
			b.Tick(30 * time.Minute)
			p := b.Round()
			c := b.Contracts("bio/fold")[0]
			if c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Reason != lifecycle.CodeTermEnded {
				t.Fatalf("%s: %s\n%s", c.Status.Phase, c.Status.Reason, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// A higher priority takes what is out of force, by the priority that the
// contract records and after the grace that it records.
func TestPreemptWhateverTheFileSays(t *testing.T) {
	for name, spoil := range outOfForce {
		if name == "deleted with too many others" {
			continue // an operator has to decide first whether they end
		}
		t.Run(name, func(t *testing.T) {
			b := squatter(grace(10 * time.Minute))
			spoil(b)
			b.Intent("vision/train", Wants(8), preempts(900))
			p := step(t, b, "notice", map[string]string{"vision/train": "queue Preempting"})
			d := b.Contracts("bio/fold")[0].Status.Displaced
			if d == nil || d.By != "vision/train" || d.Leaves.Sub(d.Noticed.Time) != 10*time.Minute {
				t.Fatalf("%+v\n%s", d, describe(p))
			}
			b.Tick(10 * time.Minute)
			b.Round()
			b.Tick(time.Minute).Deliver().Round()
			if charged(b, "vision/train") != 1 || charged(b, "bio/fold") != 0 {
				t.Fatal(describe(b.Plan()))
			}
		})
	}
}

// What is not preemptible stays so while its file cannot be read, for a day
// where it has no end; ledgers that do not record it learn it in time.
func TestFrozenWithoutAnEnd(t *testing.T) {
	fixed := With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Preemptible: Ptr(false)} })
	b := settled(paris().Tenant("bio", "rome").Intent("bio/fold", Wants(8), Priority(1), fixed, grace(time.Minute)))
	old := *b.Contracts("bio/fold")[0]
	old.Spec.Preemptible = nil
	b.Apply(&planner.Plan{Contracts: []model.Change{{Before: b.Contracts("bio/fold")[0], After: &old}}})
	b.Round()
	if c := b.Contracts("bio/fold")[0]; c.Spec.Preemptible == nil || *c.Spec.Preemptible {
		t.Fatal("the contract does not record that it is not preemptible")
	}
	b.Remove("bio/fold").W.Frozen = []model.Freeze{{Path: "intents/bio/fold.yaml", Why: "line 9: unknown field"}}
	b.Intent("vision/train", Wants(8), preempts(2))
	since := b.W.Now
	for hours := range 24 {
		b.Round()
		if f := b.W.Ledger.State("bio", "fold").Status.Frozen; f == nil || f.Since != since || f.Told != since {
			t.Fatalf("after %d h: %+v", hours, f)
		}
		if charged(b, "bio/fold") != 1 {
			t.Fatalf("gone after %d h:\n%s", hours, describe(b.Plan()))
		}
		b.Tick(time.Hour)
	}
	p := b.Plan()
	if at := Of(p, "bio/fold").Reason; !strings.Contains(at, "counts as preemptible at priority 0") {
		t.Fatal(at)
	}
	b.Round()
	f := b.W.Ledger.State("bio", "fold").Status.Frozen
	if f.Since != since || !f.Told.Equal(since.Add(24*time.Hour)) || !strings.Contains(f.Reason, "priority 0") {
		t.Fatalf("the tenant is told each day: %+v", f)
	}
	b.Tick(time.Minute).Round()
	b.Tick(time.Minute).Deliver().Round()
	if charged(b, "bio/fold") != 0 || charged(b, "vision/train") != 1 {
		t.Fatal(describe(b.Plan()))
	}
}

// Frozen for a week with nobody who wants its place, it stays; read again, it
// goes on as if nothing had been.
func TestFreezingEndsNothing(t *testing.T) {
	b := settled(paris().Tenant("bio", "rome").Intent("bio/fold", Wants(8), Priority(1)))
	was := *b.W.Ledger.State("bio", "fold")
	b.W.Frozen = []model.Freeze{{Path: "intents/bio/fold.yaml", Why: "line 9: unknown field"}}
	told := map[v1alpha1.Time]bool{}
	for range 7 * 24 {
		b.Round()
		told[b.W.Ledger.State("bio", "fold").Status.Frozen.Told] = true
		b.Tick(time.Hour)
	}
	if charged(b, "bio/fold") != 1 || len(told) != 7 {
		t.Fatalf("told %d times\n%s", len(told), describe(b.Plan()))
	}
	b.W.Frozen = nil
	b.Round()
	if now := b.W.Ledger.State("bio", "fold"); now.Status.Frozen != nil || now.Status.Since != was.Status.Since || charged(b, "bio/fold") != 1 {
		t.Fatalf("%+v", now.Status)
	}
	wantOnlyKeeps(t, b)
}

// A budget at its limit, a drained flavor and a later maxDuration reach frozen
// contracts as others.
func TestPolicyOfNowReachesWhatIsFrozen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *Builder)
		after  time.Duration
		code   string
	}{
		"budget": {func(b *Builder) {
			b.Tenant("bio", "rome", budget(v1alpha1.TenantBudget{Monthly: Money("60"), AtLimit: "end"}))
		}, 5 * time.Hour, lifecycle.CodeBudget},
		"drain": {func(b *Builder) {
			b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Drain = v1alpha1.TimeOf(b.W.Now.Add(time.Hour)) }))
		}, time.Hour, lifecycle.CodeDrain},
		"maxDuration": {func(b *Builder) {
			b.Tenant("bio", "rome", func(s *v1alpha1.TenantSpec) {
				s.Quota = &v1alpha1.TenantQuota{MaxDuration: v1alpha1.Duration{Duration: time.Hour}}
			})
		}, 24 * time.Hour, lifecycle.CodeMaxDuration},
	} {
		t.Run(name, func(t *testing.T) {
			b := settled(paris().Tenant("bio", "rome").Intent("bio/fold", Wants(8)))
			b.Remove("bio/fold").W.Frozen = []model.Freeze{{Path: "intents/bio/fold.yaml", Why: "line 9: unknown field"}}
			b.Round()
			c.change(b)
			b.Tick(c.after - time.Minute).Round()
			if name != "budget" && charged(b, "bio/fold") != 1 {
				t.Fatalf("too early\n%s", describe(b.Plan()))
			}
			b.Tick(time.Minute)
			p := b.Round()
			if now := b.Contracts("bio/fold")[0]; now.Status.Phase.Charged() || now.Status.Reason != c.code {
				t.Fatalf("%s: %s\n%s", now.Status.Phase, now.Status.Reason, describe(p))
			}
		})
	}
}
