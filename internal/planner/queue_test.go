package planner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func TestQueue(t *testing.T) {
	b := paris().Intent("vision/train", Wants(9, "H100"), With(func(s *v1alpha1.IntentSpec) {
		s.Queue.Timeout = v1alpha1.Duration{Duration: time.Hour}
	}))
	p := want(t, b, planner.Queued, lifecycle.CodeNothingFits)
	d := Of(p, "vision/train")
	if d.Since != Start || !d.GivesUp.Equal(Start.Add(time.Hour)) || d.Position != 1 || !p.Due.Equal(d.GivesUp.Time) {
		t.Fatalf("%+v due %v", d, p.Due)
	}
	b.Tick(59 * time.Minute)
	if p = b.Round(); Of(p, "vision/train").Since != Start || p.Changes() {
		t.Fatal(describe(p))
	}
	b.Tick(time.Minute)
	says(t, want(t, b, planner.Refuse, lifecycle.CodeQueueTimeout), "it waited for spec.queue.timeout (1h), and waits no more: change its specification to try again; the only offer does not fit: it has too few GPUs free")
	// For good, though it would fit by now …
	b.Offer("paris/h100", Capacity("gpu=16"))
	want(t, b, planner.Refuse, lifecycle.CodeQueueTimeout)
	// … until its file changes.
	b.Intent("vision/train", Priority(1))
	want(t, b, planner.Place, "")
}

func TestQueuePolicyFail(t *testing.T) {
	b := paris().Intent("vision/train", Wants(9, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Queue.Policy = "fail" }))
	want(t, b, planner.Refuse, lifecycle.CodeNothingFits)
	b.Offer("paris/h100", Capacity("gpu=16"))
	want(t, b, planner.Refuse, lifecycle.CodeNothingFits)
}

// order plans several intents for eight cards and returns who got them.
func served(b *Builder) (out []string) {
	p := b.Plan()
	for _, d := range p.Intents {
		if d.Action == planner.Place {
			out = append(out, d.Name)
		}
	}
	return out
}

func TestOrder(t *testing.T) {
	one := func(t *testing.T, b *Builder, want string) {
		t.Helper()
		if got := served(b); len(got) != 1 || got[0] != want {
			t.Fatalf("served %v, want %s\n%s", got, want, describe(b.Plan()))
		}
	}
	t.Run("priority", func(t *testing.T) {
		one(t, paris().Intent("vision/a", Wants(5)).Intent("vision/b", Wants(5), Priority(10)), "b")
	})
	t.Run("capped priority", func(t *testing.T) {
		b := paris().Tenant("nlp", "rome", func(s *v1alpha1.TenantSpec) { s.MaxPriority = Ptr(int32(5)) })
		one(t, b.Intent("vision/v", Wants(5), Priority(6)).Intent("nlp/n", Wants(5), Priority(900)), "v")
	})
	t.Run("age", func(t *testing.T) {
		b := paris().Offer("paris/h100", Capacity("gpu=1")).Intent("vision/z", Wants(5))
		b.Round()
		b.Tick(time.Minute).Offer("paris/h100", Capacity("gpu=8")).Intent("vision/a", Wants(5))
		one(t, b, "z")
	})
	t.Run("the least flexible", func(t *testing.T) {
		b := paris().Provider("oslo").Offer("oslo/a100", Cards("nvidia-a100", 4, "80Gi"), Costs("9"))
		b.Intent("vision/any", Wants(4)).Intent("vision/z", Wants(8, "H100"))
		if got := served(b); len(got) != 2 {
			t.Fatalf("served %v", got)
		}
	})
	t.Run("size", func(t *testing.T) { one(t, paris().Intent("vision/a", Wants(5)).Intent("vision/z", Wants(6)), "z") })
	t.Run("name", func(t *testing.T) { one(t, paris().Intent("vision/b", Wants(5)).Intent("vision/a", Wants(5)), "a") })
}

func TestGang(t *testing.T) {
	b := paris().Intent("vision/train", Wants(3, "H100"), Times(3))
	p := want(t, b, planner.Queued, lifecycle.CodeGang)
	if d := Of(p, "vision/train"); len(d.Contracts) != 0 || d.Reason != "2 of 3 replicas fit; the only offer does not fit: it has too few GPUs free" {
		t.Fatal(describe(p))
	}
	loose := func(n int32) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), n })
	}
	b.Intent("vision/train", loose(2))
	want(t, b, planner.Place, "")
	if got := b.Contracts("vision/train"); len(got) != 2 || got[1].Spec.Intent.Replica != 1 {
		t.Fatal(phases(b))
	}
	b = paris().Intent("vision/train", Wants(3, "H100"), Times(3), loose(0))
	p = want(t, b, planner.Queued, lifecycle.CodeNothingFits)
	if len(b.Contracts("vision/train")) != 2 {
		t.Fatal(describe(p))
	}
}

func TestAlternatives(t *testing.T) {
	b := paris().Offer("paris/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("1")).
		Intent("vision/train", Wants(9, "H100"), With(func(s *v1alpha1.IntentSpec) {
			a, _ := v1alpha1.ParseGPU("A100:8:40GB..")
			s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 10}}, {GPU: &a, Named: Amounts("cpu=2")}}
		}))
	p := want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	if Of(p, "vision/train").Alternative != 2 || c.Spec.Flavor != "a100" || c.Spec.Resources.Canonical()["cpu"] != "2" || c.Spec.Resources.Canonical()["memory"] != "64Gi" {
		t.Fatal(describe(p))
	}
	// The first choice coming free moves nobody.
	b.Tick(time.Minute).Deliver().Round()
	b.Offer("paris/h100", Capacity("gpu=16"))
	want(t, b, planner.Keep, "")
	b.Intent("vision/train", Priority(3))
	want(t, b, planner.Keep, "")
}

// A flavor's pool shares cores and memory, not cards.
func TestPool(t *testing.T) {
	pool := Spec(func(s *v1alpha1.FlavorSpec) { s.Pool = "nodes" })
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/a", Cards("nvidia-h100", 4, "80Gi"), Capacity("cpu=12"), pool).
		Offer("paris/b", Cards("nvidia-a100", 4, "80Gi"), Capacity("cpu=12"), pool).
		Intent("vision/one", Wants(1, "H100")).Intent("vision/two", Wants(1, "A100"))
	p := b.Round()
	if s := p.Summary(); s[planner.Place] != 1 || s[planner.Queued] != 1 {
		t.Fatal(describe(p))
	}
}

// An offer without recent reports sells nothing; the clusters' words about contracts
// that nobody asked for change nothing.
func TestUnknownRights(t *testing.T) {
	b := paris().Intent("nobody/train", Wants(1))
	if d := Of(b.Round(), "nobody/train"); d.Action != planner.Refuse || d.Code != lifecycle.CodeUnknownTenant {
		t.Fatalf("%+v", d)
	}
	b = paris().Consumer("milan").Intent("vision/train", Wants(1), With(func(s *v1alpha1.IntentSpec) { s.Consumer = "milan" }))
	want(t, b, planner.Refuse, lifecycle.CodeConsumer)
	b = paris().Intent("vision/train", Wants(1))
	b.W.Clusters["rome"].Spec.Roles = nil
	want(t, b, planner.Refuse, lifecycle.CodeConsumer)
}

// The daemon stops after any round and another goes on with what is committed.
func TestRestart(t *testing.T) {
	through := func(restart bool) string {
		b := paris().Intent("vision/train", Wants(2, "H100"), Times(2))
		out := ""
		for i := range 6 {
			if i == 3 {
				b.Remove("vision/train")
			}
			b.Tick(time.Minute).Deliver()
			if restart {
				b.Plan() // decided, and lost before the commit
				b.W.Market = "market-1"
			}
			p := b.Round()
			out += describe(p)
		}
		return out
	}
	if a, b := through(false), through(true); a != b {
		t.Fatalf("%s\nafter restarts:\n%s", a, b)
	}
}

// An intent that is suspended and holds nothing costs a round as little as one that is
// served: of a large fleet nearly all are one or the other.
func TestSuspendedIsSettled(t *testing.T) {
	suspended := With(func(s *v1alpha1.IntentSpec) { s.Suspend = true })
	b := settled(paris().Intent("vision/train", Wants(1, "H100")))
	b.Intent("vision/train", suspended)
	settledNow := func(what string, want bool) {
		t.Helper()
		p := b.Round()
		d := Of(p, "vision/train")
		if d.Action != planner.Suspend || d.Code != "Suspended" || d.Reason != "spec.suspend is true: it gets no capacity until that is removed" {
			t.Fatalf("%s: %+v", what, d)
		}
		if got := !slices.ContainsFunc(p.Unsettled, func(u *planner.Decision) bool { return u.Name == d.Name }); got != want {
			t.Fatalf("%s: settled %t, want %t", what, got, want)
		}
	}
	settledNow("it is to be released", false)
	b.Tick(time.Minute).Deliver()
	settledNow("seen gone", false)
	settledNow("at rest", true)
	b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Suspend = false }))
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Place {
		t.Fatalf("%+v", d)
	}
}

// What an intent that waits no more still holds ends on its own terms in the round that
// refuses it: planning again finds nothing to do.
func TestRefusedEndsOnItsTerms(t *testing.T) {
	b := settled(paris().Intent("vision/train", Wants(1, "H100"), For(time.Hour)))
	b.Tick(time.Hour).Intent("vision/train", Wants(9, "H100"), For(3*time.Hour), With(func(s *v1alpha1.IntentSpec) { s.Queue.Policy = "fail" }))
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Refuse {
		t.Fatalf("%+v", d)
	}
	if c := b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Reason != lifecycle.CodeTermEnded {
		t.Errorf("%+v", c.Status)
	}
	wantOnlyKeeps(t, b)
}
