package planner_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Preempts makes an intent displace others of lower priority.
func preempts(priority int32) func(*model.Intent) {
	return func(in *model.Intent) {
		in.Spec.Priority, in.Spec.Preemption = priority, &v1alpha1.Preemption{Preempts: "lower"}
	}
}

func grace(d time.Duration) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		p := v1alpha1.Preemption{}
		if s.Preemption != nil {
			p = *s.Preemption
		}
		p.Grace = v1alpha1.Duration{Duration: d}
		s.Preemption = &p
	})
}

// settled is a world after its commits were delivered, a minute later.
func settled(b *Builder) *Builder {
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	return b.Tick(time.Minute)
}

func step(t *testing.T, b *Builder, what string, says map[string]string) *planner.Plan {
	t.Helper()
	p := b.Round()
	for ref, want := range says {
		d := Of(p, ref)
		if got := strings.TrimSpace(string(d.Action) + " " + d.Code); got != want {
			t.Fatalf("%s: %s is %q, want %q\n%s", what, ref, got, want, describe(p))
		}
	}
	wantOnlyKeeps(t, b)
	return p
}

func TestPreempt(t *testing.T) {
	b := settled(paris().Tenant("bio", "rome").Intent("bio/fold", Wants(6), Priority(10), grace(10*time.Minute)))
	victim := b.Contracts("bio/fold")[0].Metadata.Name
	b.Intent("vision/train", Wants(4, "H100"), preempts(100))
	p := step(t, b, "notice", map[string]string{"vision/train": "queue Preempting", "bio/fold": "preempt Preempted"})
	if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "preempts bio/fold, by 2026-11-20T12:12:00Z") {
		t.Fatal(d.Reason)
	}
	if d := Of(p, "bio/fold"); !strings.HasPrefix(d.Reason, "priority 10 < 100 of vision/train; it leaves 2026-11-20T12:12:00Z") {
		t.Fatal(d.Reason)
	}
	c := b.W.Ledger.Contract(victim)
	if d := c.Status.Displaced; c.Status.Phase != v1alpha1.PhaseActive || d == nil || d.By != "vision/train" || d.Cause != v1alpha1.Preempted || !p.Due.Equal(d.Leaves.Time) {
		t.Fatalf("%+v due %v", c.Status, p.Due)
	}
	b.Tick(9 * time.Minute)
	step(t, b, "within its grace", map[string]string{"vision/train": "queue Preempting", "bio/fold": "keep Preempted"})
	b.Tick(time.Minute)
	p = step(t, b, "leaves", map[string]string{"vision/train": "queue Preempting", "bio/fold": "preempt NothingFits"})
	if c = b.W.Ledger.Contract(victim); c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Why() != "Preempted: priority 10 < 100 of vision/train" {
		t.Fatalf("%+v\n%s", c.Status, describe(p))
	}
	b.Tick(time.Minute)
	step(t, b, "held means held", map[string]string{"vision/train": "queue Preempting", "bio/fold": "queue NothingFits"})
	b.Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place", "bio/fold": "queue NothingFits"})
	if c = b.W.Ledger.Contract(victim); c.Status.Phase != v1alpha1.PhasePreempted {
		t.Fatal(c.Status.Phase)
	}
	if got := b.Contracts("vision/train")[0].Decision.Displaced; !slices.Equal(got, []string{victim}) {
		t.Fatalf("%q", got)
	}
	if s := b.W.Ledger.State("bio", "fold"); s.Status.Displaced.IsZero() {
		t.Fatalf("%+v", s.Status)
	}
	b.Tick(time.Minute).Remove("vision/train").Round()
	b.Tick(time.Minute).Deliver()
	step(t, b, "its turn again", map[string]string{"bio/fold": "place"})
	if s := b.W.Ledger.State("bio", "fold"); !s.Status.Displaced.IsZero() {
		t.Fatalf("%+v", s.Status)
	}
}

// Who asks for no grace is drained at once.
func TestPreemptAtOnce(t *testing.T) {
	b := settled(paris().Intent("vision/low", Wants(6)))
	b.Intent("vision/train", Wants(4, "H100"), preempts(1))
	step(t, b, "at once", map[string]string{"vision/train": "queue Preempting", "vision/low": "preempt NothingFits"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place", "vision/low": "queue NothingFits"})
}

func TestWhoIsPreempted(t *testing.T) {
	// Six worlds of eight cards; the intent asks for four.
	fixed := With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Preemptible: Ptr(false)} })
	later := func(b *Builder) *Builder { b.Round(); return b.Tick(time.Minute) }
	for name, c := range map[string]struct {
		made func() *Builder
		want []string
	}{
		"equals stay":     {func() *Builder { return paris().Intent("vision/a", Wants(8), Priority(100)) }, nil},
		"not preemptible": {func() *Builder { return paris().Intent("vision/a", Wants(8), fixed) }, nil},
		"the lowest priority": {func() *Builder {
			return paris().Intent("vision/a", Wants(4), Priority(5)).Intent("vision/b", Wants(4), Priority(4))
		}, []string{"b"}},
		"the youngest": {func() *Builder { return later(paris().Intent("vision/b", Wants(4))).Intent("vision/a", Wants(4)) }, []string{"a"}},
		"fewest before lowest": {func() *Builder {
			return paris().Intent("vision/a", Wants(2)).Intent("vision/b", Wants(2)).Intent("vision/c", Wants(4), Priority(9))
		}, []string{"c"}},
		"the least overshoot": {func() *Builder {
			return paris().Offer("paris/h100", Capacity("gpu=12")).Intent("vision/a", Wants(8)).Intent("vision/b", Wants(4))
		}, []string{"b"}},
		"what is free counts":   {func() *Builder { return paris().Intent("vision/a", Wants(2)).Intent("vision/b", Wants(4), Priority(9)) }, []string{"a"}},
		"a gang goes whole":     {func() *Builder { return paris().Intent("vision/a", Wants(2), Times(4)) }, []string{"a", "a", "a", "a"}},
		"one of loose replicas": {func() *Builder { return paris().Intent("vision/a", Wants(4), Times(2), loose) }, []string{"a"}},
		"several where need be": {func() *Builder { return paris().Intent("vision/a", Wants(1), Times(8), loose) }, []string{"a", "a", "a", "a"}},
		"the capped is low": {func() *Builder {
			return paris().Tenant("nlp", "rome", func(s *v1alpha1.TenantSpec) { s.MaxPriority = Ptr(int32(3)) }).Intent("nlp/a", Wants(8), Priority(900))
		}, []string{"a"}},
		"what is unreadable": {func() *Builder {
			b := paris().Intent("vision/a", Wants(8))
			b.Round()
			b.W.Frozen = []model.Freeze{{Path: "intents/vision/a.yaml", Why: "bad"}}
			return b
		}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.made()
			b.Round()
			b.Tick(time.Minute).Deliver().Round()
			b.Tick(time.Minute).Intent("vision/train", Wants(4, "H100"), preempts(100))
			p := b.Round()
			var got []string
			for x := range b.W.Ledger.Contracts() {
				if x.Status.Displaced != nil {
					got = append(got, x.Spec.Intent.Name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("%q had to give way, want %q\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

var loose = With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 1 })

// A victim that finds another place moves there, new first.
// Nobody gives way for what the same round releases anyway: by a removal, or by
// a move that comes before the claimant's turn.
func TestRoundReleasesEnough(t *testing.T) {
	made := func() *Builder {
		return settled(paris().Intent("vision/old", Wants(4)).Intent("vision/low", Wants(4)))
	}
	waits := func(t *testing.T, b *Builder, old string) {
		t.Helper()
		says := map[string]string{"vision/train": "queue NothingFits", "vision/low": "keep", "vision/old": old}
		p := step(t, b, "waits", says)
		if d := Of(p, "vision/train"); !strings.HasPrefix(d.Reason, "waits for capacity that is being released; ") {
			t.Fatal(d.Reason)
		}
		if c := b.Contracts("vision/low")[0]; c.Status.Displaced != nil || c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("%+v", c.Status)
		}
		b.Tick(time.Minute).Deliver()
		step(t, b, "served", map[string]string{"vision/train": "place", "vision/low": "keep"})
	}
	t.Run("removed", func(t *testing.T) {
		waits(t, made().Remove("vision/old").Intent("vision/train", Wants(4, "H100"), preempts(100)), "release IntentRemoved")
	})
	t.Run("moved", func(t *testing.T) {
		b := made().Provider("lyon").Offer("lyon/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("9"))
		b.Intent("vision/old", Wants(4, "A100"), preempts(200)).Intent("vision/train", Wants(4, "H100"), preempts(100))
		waits(t, b, "move IntentChanged")
	})
}

func TestVictimMoves(t *testing.T) {
	b := settled(paris().Provider("lyon").Offer("lyon/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("9")).
		Intent("vision/low", Wants(8), cheap, grace(time.Hour)))
	b.Intent("vision/train", Wants(8, "H100"), preempts(100))
	step(t, b, "moves", map[string]string{"vision/train": "queue Preempting", "vision/low": "move Preempted"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place", "vision/low": "keep"})
	if s := b.W.Ledger.State("vision", "low"); !s.Status.Displaced.IsZero() {
		t.Fatalf("%+v", s.Status)
	}
}

// Notice is taken back when nobody needs it any more.
// A gang gives way whole. Where one of it finds another place in that very
// round, and that is enough, the others never had notice.
func TestNoticeWithoutConsequence(t *testing.T) {
	b := settled(paris().Provider("lyon").Offer("lyon/a100", Cards("nvidia-a100", 1, "40Gi"), Costs("20")).
		Intent("vision/rest", Wants(7, "H100"), Priority(200)).Intent("vision/low", Wants(1), Times(2), grace(time.Hour)))
	b.Provider("oslo").Offer("oslo/a100", Cards("nvidia-a100", 1, "40Gi"), Costs("9")).Intent("vision/train", Wants(1, "H100"), preempts(100))
	p := step(t, b, "one moves", map[string]string{"vision/train": "queue Preempting"})
	for _, c := range p.Contracts {
		if c.Before != nil && reflect.DeepEqual(c.Before, c.After) {
			t.Errorf("%s does not change", c.After.Metadata.Name)
		}
	}
	if len(p.Contracts) != 2 {
		t.Errorf("want one released and one placed\n%s", describe(p))
	}
}

func TestNoticeTakenBack(t *testing.T) {
	made := func() *Builder {
		b := settled(paris().Intent("vision/low", Wants(8), grace(time.Hour)))
		b.Intent("vision/train", Wants(8, "H100"), preempts(100))
		step(t, b, "notice", map[string]string{"vision/train": "queue Preempting", "vision/low": "preempt Preempted"})
		b.Tick(time.Minute)
		return b
	}
	free := func(t *testing.T, b *Builder) {
		t.Helper()
		if c := b.Contracts("vision/low")[0]; c.Status.Displaced != nil || c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("%+v", c.Status)
		}
	}
	t.Run("the claimant is gone", func(t *testing.T) {
		b := made().Remove("vision/train")
		step(t, b, "back", map[string]string{"vision/low": "keep"})
		free(t, b)
	})
	t.Run("the claimant is placed elsewhere", func(t *testing.T) {
		b := made().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
		// The claimant goes first: a victim does not take what frees it from its notice.
		step(t, b, "back", map[string]string{"vision/low": "keep", "vision/train": "place"})
		free(t, b)
	})
	t.Run("the victim has risen", func(t *testing.T) {
		b := made().Intent("vision/low", Priority(100))
		step(t, b, "back", map[string]string{"vision/low": "keep", "vision/train": "queue NothingFits"})
		free(t, b)
	})
	t.Run("the claimant cannot be read", func(t *testing.T) {
		b := made()
		b.W.Frozen = []model.Freeze{{Path: "intents/vision/train.yaml", Why: "bad"}}
		b.Tick(3 * time.Hour)
		step(t, b, "stands", map[string]string{"vision/low": "keep Preempted", "vision/train": "frozen Frozen"})
		if c := b.Contracts("vision/low")[0]; c.Status.Displaced == nil || c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("%+v", c.Status)
		}
	})
	t.Run("a deaf round", func(t *testing.T) {
		b := made()
		b.W.Deaf = true
		b.Tick(3 * time.Hour)
		if p := b.Round(); p.Changes() {
			t.Fatal(describe(p))
		}
	})
}

// What one victim leaves is kept for the claimant while it waits for the next.
func TestPartsAreKept(t *testing.T) {
	b := settled(paris().Intent("vision/a", Wants(4)).Intent("vision/b", Wants(4), grace(time.Hour)))
	b.Intent("vision/train", Wants(8, "H100"), preempts(100))
	step(t, b, "notice", map[string]string{"vision/train": "queue Preempting", "vision/a": "preempt NothingFits", "vision/b": "preempt Preempted"})
	b.Tick(time.Minute).Deliver().Intent("vision/c", Wants(2))
	p := step(t, b, "half is free", map[string]string{"vision/train": "queue Preempting", "vision/a": "queue NothingFits", "vision/c": "queue NothingFits"})
	if d := Of(p, "vision/c"); d.Rejected["capacity.gpu"] != 1 {
		t.Fatal(describe(p))
	}
	b.Tick(time.Hour)
	step(t, b, "the other leaves", map[string]string{"vision/train": "queue Preempting", "vision/b": "preempt NothingFits"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place"})
}

// A victim preempts nobody until it was served again.
func TestNoCascade(t *testing.T) {
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9"))
	only := func(p string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{p} })
	}
	b.Intent("vision/lowest", Wants(8), only("lyon")).Intent("vision/mid", Wants(8), preempts(50))
	settled(b)
	if b.Contracts("vision/mid")[0].Spec.Provider != "paris" {
		t.Fatal("mid was to be in paris")
	}
	b.Intent("vision/train", Wants(8), preempts(100), only("paris"))
	step(t, b, "one", map[string]string{"vision/train": "queue Preempting", "vision/mid": "preempt NothingFits", "vision/lowest": "keep"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "two", map[string]string{"vision/train": "place", "vision/mid": "queue NothingFits", "vision/lowest": "keep"})
	// Its file changes: it asks again.
	b.Tick(time.Minute).Intent("vision/mid", Priority(51))
	step(t, b, "asks anew", map[string]string{"vision/mid": "queue Preempting", "vision/lowest": "preempt NothingFits"})
}

func TestGangPreempts(t *testing.T) {
	b := settled(paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
		Intent("vision/a", Wants(8)).Intent("vision/b", Wants(8)))
	b.Intent("vision/train", Wants(8, "H100"), Times(3), preempts(100))
	step(t, b, "too many", map[string]string{"vision/train": "queue NothingFits", "vision/a": "keep", "vision/b": "keep"})
	b.Intent("vision/train", Times(2))
	step(t, b, "both", map[string]string{"vision/train": "queue Preempting", "vision/a": "preempt NothingFits", "vision/b": "preempt NothingFits"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place"})
	if n := len(b.Contracts("vision/train")); n != 2 {
		t.Fatal(n)
	}
}

// Preemption is within the limits of its tenant, and may be for an alternative.
func TestPreemptWithinLimits(t *testing.T) {
	b := settled(paris().Tenant("bio", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(2))} }).
		Intent("vision/a", Wants(8)))
	b.Intent("bio/big", Wants(2), Times(2), preempts(9), loose)
	step(t, b, "one of two", map[string]string{"bio/big": "queue Preempting"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "one", map[string]string{"bio/big": "place"})
	b = settled(paris().Intent("vision/a", Wants(8)))
	b.Intent("vision/train", Wants(9), preempts(9), With(func(s *v1alpha1.IntentSpec) {
		s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 4}}}
	}))
	step(t, b, "the alternative", map[string]string{"vision/train": "queue Preempting", "vision/a": "preempt NothingFits"})
	b.Tick(time.Minute).Deliver()
	if p := step(t, b, "served", map[string]string{"vision/train": "place"}); Of(p, "vision/train").Alternative != 1 {
		t.Fatal(describe(p))
	}
}

// A victim that was refused the rest of what it wants, and asks for nothing any
// more, still leaves when its notice is over: the plan comes due then.
func TestNoticeOfARefusedVictimComesDue(t *testing.T) {
	b := settled(paris().Tenant("bio", "rome").Intent("bio/fold", Wants(6), Priority(10), grace(10*time.Minute), With(func(s *v1alpha1.IntentSpec) {
		s.Replicas, s.Gang, s.Queue.Policy = v1alpha1.Replicas{Min: 2, Max: 2}, Ptr(false), "fail"
	})))
	if n := len(b.Contracts("bio/fold")); n != 1 {
		t.Fatalf("%d replicas are placed, want 1", n)
	}
	b.Intent("vision/train", Wants(4, "H100"), preempts(100)).Round()
	p := b.Tick(time.Second).Round()
	d := b.Contracts("bio/fold")[0].Status.Displaced
	if d == nil || !p.Due.Equal(d.Leaves.Time) {
		t.Fatalf("notice %+v, the plan comes due %v\n%s", d, p.Due, describe(p))
	}
}

// What others give way for an intent is kept of its tenant's budget too: a victim of the
// same tenant would spend elsewhere what its leaving makes room for, and the two would
// take turns permanently.
func TestPreemptKeepsMoney(t *testing.T) {
	b := settled(New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome", budget(v1alpha1.TenantBudget{Hourly: Money("12")})).
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).Offer("lyon/h100", Cards("nvidia-h100", 4, "80Gi"), Costs("3")).
		Intent("vision/small", Wants(2, "H100"), Priority(10), grace(0)))
	b.Intent("vision/train", Wants(8, "H100"), preempts(100))
	step(t, b, "released", map[string]string{"vision/train": "queue Preempting", "vision/small": "preempt BudgetExceeded"})
	b.Tick(time.Minute)
	p := step(t, b, "held means held", map[string]string{"vision/train": "queue Preempting", "vision/small": "queue BudgetExceeded"})
	if d := Of(p, "vision/small"); !strings.Contains(d.Reason, "tenant vision spends 0.00 of 12.00 EUR/h, and 8.00 is kept for an intent that others give way to") {
		t.Error(d.Reason)
	}
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/train": "place", "vision/small": "queue BudgetExceeded"})
	b.Tick(time.Minute).Deliver().Round()
	for range 3 {
		b.Tick(time.Hour)
		step(t, b, "at rest", map[string]string{"vision/train": "keep", "vision/small": "queue BudgetExceeded"})
	}
}
