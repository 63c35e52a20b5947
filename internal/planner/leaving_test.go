package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// stuck is a fleet in which tenant vision fills its quota of four GPUs with an
// intent whose pods do not drain.
func stuck(t *testing.T, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	b := running(t, changes...)
	return b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(4))} })
}

// held are the GPUs that a tenant holds, those that are being released too.
func held(b *Builder, tenant string) int64 {
	var sum ledger.Totals
	for c := range b.W.Ledger.Contracts() {
		if c.Metadata.Namespace == tenant && c.Status.Phase.Held() {
			sum.AddHeld(c)
		}
	}
	return sum.MilliCards().Int64() / 1000
}

// A tenant whose pods never drain does not get its quota again by deleting its
// intent and adding another.
func TestLeaving_DeletingAndAddingHoldsNoMoreThanTheQuota(t *testing.T) {
	b := stuck(t)
	old := b.Contracts("vision/train")[0]
	b.Remove("vision/train")
	for _, next := range []string{"vision/again", "vision/third"} {
		b.Intent(next, Wants(4, "H100"))
		for range 3 {
			p := b.Round()
			if n := held(b, "vision"); n > 4 {
				t.Fatalf("vision holds %d GPUs of a quota of 4:\n%s", n, describe(p))
			}
			if d := Of(p, next); d.Action != planner.Queued || d.Code != lifecycle.CodeQuota ||
				!strings.Contains(d.Reason, "holds 4 of 4 GPUs, 1 contract among them that is being released and not seen gone") {
				t.Fatalf("%s: %s %s %q", next, d.Action, d.Code, d.Reason)
			}
			b.Tick(time.Hour)
		}
		if next == "vision/again" {
			b.Remove(next)
		}
	}
	if c := b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || b.Plan().Contracts != nil {
		t.Fatalf("%s of %s", c.Status.Phase, old.Metadata.Name)
	}
	b.Observe(old.Metadata.Name, Gone())
	if d := Of(b.Round(), "vision/third"); d.Action != planner.Place {
		t.Fatalf("after the drain: %s %q", d.Action, d.Reason)
	}
}

// All ways in which a tenant ends a contract keep its quota charged.
func TestLeaving_TenantCausesCount(t *testing.T) {
	for name, c := range map[string]struct {
		with []func(*model.Intent)
		end  func(*Builder)
		code string
	}{
		"suspended": {nil, func(b *Builder) { b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Suspend = true })) }, lifecycle.CodeSuspended},
		"its term":  {[]func(*model.Intent){For(time.Hour)}, func(b *Builder) { b.Tick(time.Hour) }, lifecycle.CodeTermEnded},
		"stage find": {nil, func(b *Builder) {
			b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind }))
		}, lifecycle.CodeStageFind},
		"fewer": {[]func(*model.Intent){Wants(2, "H100"), Times(2), With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(false) })},
			func(b *Builder) { b.Intent("vision/train", Times(1)) }, lifecycle.CodeFewer},
		"budget": {nil, func(b *Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: Money("100")} })
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
				s.Budget = &v1alpha1.TenantBudget{Hourly: Money("1"), AtLimit: "end"}
			})
		}, lifecycle.CodeBudget},
	} {
		t.Run(name, func(t *testing.T) {
			b := stuck(t, c.with...)
			c.end(b)
			b.Round()
			codes := map[string]bool{}
			for _, k := range b.Contracts("vision/train") {
				if k.Status.Phase == v1alpha1.PhaseReleasing {
					codes[k.Status.Reason] = true
				}
			}
			if len(codes) != 1 || !codes[c.code] {
				t.Fatalf("released as %v, want %s", codes, c.code)
			}
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = nil })
			for range 2 {
				if d := Of(b.Tick(time.Minute).Intent("vision/again", Wants(1, "H100")).Round(), "vision/again"); d.Code != lifecycle.CodeQuota || held(b, "vision") != 4 {
					t.Fatalf("%s %s %q, %d GPUs held", d.Action, d.Code, d.Reason, held(b, "vision"))
				}
			}
		})
	}
}

// What the fleet or a provider ends is not the tenant's: its replacement does
// not wait for the drain.
func TestLeaving_ProviderCausesDoNotCount(t *testing.T) {
	b := stuck(t).Offer("paris/h100", Heard(model.Lost))
	b.W.AllowEnds = true
	want(t, b, planner.Move, lifecycle.CodeProviderLost)
	if n := held(b, "vision"); n != 8 {
		t.Fatalf("%d GPUs held, want the lost ones and those that replace them", n)
	}
	// And what it gave up does not count any more when its provider is lost then.
	b = stuck(t).Remove("vision/train")
	b.Round()
	b.Intent("vision/again", Wants(4, "H100"))
	if d := Of(b.Tick(time.Minute).Round(), "vision/again"); d.Code != lifecycle.CodeQuota {
		t.Fatalf("%s %s", d.Action, d.Code)
	}
	b.Offer("paris/h100", Heard(model.Lost))
	if d := Of(b.Tick(time.Minute).Round(), "vision/again"); d.Action != planner.Place {
		t.Fatalf("%s %s %q", d.Action, d.Code, d.Reason)
	}
}

// A change is made within an exact quota, but the next one waits for the drain.
func TestLeaving_ChangesCountFromTheNextRoundOn(t *testing.T) {
	b := stuck(t).Offer("lyon/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("1")).Offer("paris/b200", Cards("nvidia-b200", 8, "180Gi"), Costs("1"))
	b.Intent("vision/train", Wants(4, "A100"))
	want(t, b, planner.Move, lifecycle.CodeChanged)
	b.Tick(time.Minute).Intent("vision/train", Wants(4, "B200"))
	b.Round()
	if n := held(b, "vision"); n != 8 {
		t.Fatalf("%d GPUs held by two changes, want 8", n)
	}
	for _, c := range b.Contracts("vision/train") {
		if c.Status.Phase == v1alpha1.PhaseReleasing {
			b.Observe(c.Metadata.Name, Gone())
		}
	}
	b.Tick(time.Minute)
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Move {
		t.Fatalf("%s %s %q", d.Action, d.Code, d.Reason)
	}
}

// A tenant's own intents that make each other give way count, those of others do not.
func TestLeaving_GivingWayToItsOwnTenantCounts(t *testing.T) {
	for by, counts := range map[string]bool{"vision": true, "bio": false} {
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("bio", "rome").
			Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(8))} }).
			Offer("paris/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("3")).
			Intent("vision/train", Wants(4, "H100"))
		b.Round()
		b.Tick(time.Minute).Deliver().Round()
		old := b.Contracts("vision/train")[0].Metadata.Name
		b.Tick(time.Minute).Intent(by+"/urgent", Wants(4, "H100"), preempts(50)).Round()
		b.Tick(time.Hour).Round()
		if c := b.W.Ledger.Contract(old); c.Status.Phase != v1alpha1.PhaseReleasing {
			t.Fatalf("%s: %s is %s", by, old, c.Status.Phase)
		}
		b.Remove("vision/train").Remove(by+"/urgent").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).Intent("vision/again", Wants(8, "H100"))
		d := Of(b.Tick(time.Minute).Round(), "vision/again")
		if waits := d.Code == lifecycle.CodeQuota; waits != counts {
			t.Errorf("gave way to %s: %s %s %q", by, d.Action, d.Code, d.Reason)
		}
	}
}

// What earlier rules decided is decided again as it was.
func TestLeaving_EarlierRulesDecideAsTheyDid(t *testing.T) {
	b := stuck(t).Remove("vision/train").Intent("vision/again", Wants(4, "H100"))
	b.W.Rules = 1
	if d := Of(b.Plan(), "vision/again"); d.Action != planner.Place {
		t.Fatalf("rules 1: %s %s %q", d.Action, d.Code, d.Reason)
	}
	b.W.Rules = planner.Rules
	if d := Of(b.Plan(), "vision/again"); d.Code != lifecycle.CodeQuota {
		t.Fatalf("rules %d: %s %s %q", planner.Rules, d.Action, d.Code, d.Reason)
	}
}
