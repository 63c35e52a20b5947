package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// serving is an intent of 1 to 4 replicas of 2 cards, of which the first works
// and has for an hour.
func serving(changes ...func(*model.Intent)) *Builder {
	b := paris().Intent("vision/serve", append([]func(*model.Intent){Wants(2, "H100"), Follows(1, 4)}, changes...)...)
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	return b.Tick(time.Hour)
}

// live are an intent's charged contracts.
func live(b *Builder, ref string) (out []*v1alpha1.Contract) {
	for _, c := range b.Contracts(ref) {
		if c.Status.Phase.Charged() {
			out = append(out, c)
		}
	}
	return out
}

// wantReplicas plans a round and returns how many replicas exist after it.
func wantReplicas(t *testing.T, b *Builder, want int) *planner.Plan {
	t.Helper()
	p := b.Round()
	if got := len(live(b, "vision/serve")); got != want {
		t.Fatalf("%d replicas; want %d\n%s", got, want, describe(p))
	}
	wantOnlyKeeps(t, b)
	return p
}

const twoCards = "cpu=2 memory=4Gi pods=1 nvidia.com/gpu=2"

func TestReplicasFollowPendingPods(t *testing.T) {
	b := serving()
	for _, c := range live(b, "vision/serve") {
		b.Uses(c, 1)
	}
	// Two pods of two cards fill two replicas.
	p := wantReplicas(t, b.Waits("rome", "vision/serve", 2, twoCards), 3)
	if d := Of(p, "vision/serve"); d.Action != planner.Place || !strings.Contains(d.Reason, "pods wait for room in rome: 3 replicas instead of 1") {
		t.Fatal(describe(p))
	}
	// The same pods still wait while those replicas are on their way, and for a
	// moment after they have come.
	wantReplicas(t, b.Tick(time.Minute), 3)
	wantReplicas(t, b.Tick(10*time.Second).Deliver(), 3)
	wantReplicas(t, b.Tick(30*time.Second), 3)
	// One still does: the others are taken by another intent's.
	wantReplicas(t, b.Tick(time.Minute).Waits("rome", "vision/serve", 1, twoCards), 4)
	b.Tick(10 * time.Second).Deliver().Round()
	// More than max is never had.
	wantReplicas(t, b.Tick(time.Hour).Waits("rome", "vision/serve", 50, twoCards), 4)
}

func TestReplicasGoOnlyOnceTheirPodsAreGone(t *testing.T) {
	b := serving()
	wantReplicas(t, b.Waits("rome", "vision/serve", 3, twoCards), 4)
	b.Tick(10 * time.Second).Deliver().Round()
	for _, c := range live(b, "vision/serve") {
		b.Uses(c, 1)
	}
	b.Waits("rome", "vision/serve", 0, "")
	wantReplicas(t, b.Tick(24*time.Hour), 4) // pods are on all of them
	second := live(b, "vision/serve")[1]
	b.Uses(second, 0)
	wantReplicas(t, b.Tick(9*time.Minute+59*time.Second), 4)
	if due := b.Plan().Due; !due.Equal(b.W.Now.Add(time.Second)) {
		t.Fatalf("the planner looks again at %s, it is %s", due, b.W.Now)
	}
	p := wantReplicas(t, b.Tick(time.Second), 3)
	for _, c := range live(b, "vision/serve") {
		if c == second {
			t.Fatal("a replica went that has pods")
		}
	}
	if d := Of(p, "vision/serve"); d.Action != planner.Release || d.Code != lifecycle.CodeFewer || d.Reason != "no pod has used it for ten minutes" {
		t.Fatal(describe(p))
	}
	// A pod that comes back starts the time again.
	third := live(b, "vision/serve")[2]
	b.Tick(time.Second).Uses(third, 0)
	b.Tick(9*time.Minute).Uses(third, 1)
	b.Tick(time.Second).Uses(third, 0)
	wantReplicas(t, b.Tick(9*time.Minute), 3)
	wantReplicas(t, b.Tick(time.Minute), 2)
	// Never fewer than min, however long nobody comes.
	for _, c := range live(b, "vision/serve") {
		b.Uses(c, 0)
	}
	wantReplicas(t, b.Tick(24*time.Hour), 1)
	wantReplicas(t, b.Tick(24*time.Hour), 1)
}

func TestReplicasStayWhere(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Builder)
		want   int
	}{
		"no agent tells of pods": {func(b *Builder) { b.W.Demand = nil }, 1},
		"another cluster's pods": {func(b *Builder) { b.W.Demand = nil; b.Waits("turin", "vision/serve", 9, twoCards) }, 1},
		"another intent's pods":  {func(b *Builder) { b.W.Demand = nil; b.Waits("rome", "vision/train", 9, twoCards) }, 1},
		"pods too big for any":   {func(b *Builder) { b.Waits("rome", "vision/serve", 9, "nvidia.com/gpu=3") }, 1},
		"a deaf daemon":          {func(b *Builder) { b.W.Deaf = true }, 1},
		"they want what fits":    {func(*Builder) {}, 4},
		"small pods share":       {func(b *Builder) { b.Waits("rome", "vision/serve", 4, "nvidia.com/gpu=1") }, 3},
		"one has no room": {func(b *Builder) {
			b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("gpu=4") }))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := serving()
			b.Waits("rome", "vision/serve", 9, twoCards)
			c.change(b)
			p := wantReplicas(t, b, c.want)
			if name == "one has no room" {
				if d := Of(p, "vision/serve"); !strings.Contains(d.Reason, "2 of 4 replicas fit") || b.W.Ledger.State("vision", "serve").Status.State != v1alpha1.IntentPlaced {
					t.Fatal(describe(p))
				}
			}
			if name == "no agent tells of pods" && !strings.Contains(Of(p, "vision/serve").Reason, "stays at 1 replica (1 to 4 are allowed), because no agent of rome") {
				t.Fatal(describe(p))
			}
		})
	}
}

// TestTheLeastIsAGangAndTheRestIsNot: all of min or nothing, and from there as
// many as there are.
func TestTheLeastIsAGangAndTheRestIsNot(t *testing.T) {
	b := paris().Intent("vision/serve", Wants(4, "H100"), Follows(3, 6))
	if d := Of(b.Round(), "vision/serve"); d.Action != planner.Queued || d.Code != lifecycle.CodeGang {
		t.Fatalf("%+v", d)
	}
	if n := len(live(b, "vision/serve")); n != 0 {
		t.Fatalf("%d replicas of a gang of 3", n)
	}
	b.Offer("paris/h100", Capacity("gpu=12"))
	wantReplicas(t, b, 3)
}

// TestAPodCountsOnce: pods that may use two intents make the first by priority
// grow, and the second by what is left.
func TestAPodCountsOnce(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("gpu=64")).
		Intent("vision/a", Wants(2, "H100"), Follows(1, 3)).
		Intent("vision/b", Wants(2, "H100"), Follows(1, 9), Priority(10))
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	b.Tick(time.Hour).Waits("rome", "vision/a", 0, "")
	b.W.Demand["rome"].Pending = []v1alpha1.PendingPods{{Namespace: "vision", Intents: []string{"vision.a", "vision.b"}, Requests: Amounts(twoCards), Pods: 9}}
	b.Round()
	if a, c := len(live(b, "vision/a")), len(live(b, "vision/b")); a != 2 || c != 9 {
		t.Fatalf("a has %d, b has %d; want 2 and 9\n%s", a, c, describe(b.Plan()))
	}
	wantOnlyKeeps(t, b)
}

// TestFollowingNeverFlaps: whatever pods come and go, the replicas stay between
// min and max, one that has pods never goes, and within ten minutes of growing
// none goes.
func TestFollowingNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Int32Range(1, 3).Draw(t, "min")
		most := least + rapid.Int32Range(0, 3).Draw(t, "more")
		b := paris().Offer("paris/h100", Capacity(fmt.Sprintf("gpu=%d", rapid.IntRange(6, 16).Draw(t, "cards")))).
			Intent("vision/serve", Wants(2, "H100"), Follows(least, most))
		b.Round()
		grown := b.W.Now
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			b.Tick(time.Duration(rapid.SampledFrom([]int{1, 30, 60, 300, 600, 3600}).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				b.Deliver()
			case 1:
				b.Waits("rome", "vision/serve", rapid.Int64Range(0, 12).Draw(t, "pods"), rapid.SampledFrom([]string{twoCards, "nvidia.com/gpu=1 pods=1", "nvidia.com/gpu=3"}).Draw(t, "of"))
			default:
				for _, c := range live(b, "vision/serve") {
					b.Uses(c, rapid.Int64Range(0, 1).Draw(t, "on it"))
				}
			}
			was := live(b, "vision/serve")
			p := b.Round()
			now := live(b, "vision/serve")
			stays := map[string]bool{}
			for _, c := range now {
				stays[c.Metadata.Name] = true
			}
			if len(now) > int(most) || len(now) < int(least) {
				t.Fatalf("%d replicas of %d to %d\n%s", len(now), least, most, describe(p))
			}
			for _, c := range was {
				if stays[c.Metadata.Name] {
					continue
				}
				if use := b.W.Demand["rome"].Nodes[c.Spec.Slice]; use.Pods > 0 || b.W.Now.Sub(use.IdleSince.Time) < 10*time.Minute {
					t.Fatalf("%s went, its node has %d pods, idle since %s\n%s", c.Metadata.Name, use.Pods, use.IdleSince, describe(p))
				}
				if b.W.Now.Sub(grown.Time) < 10*time.Minute {
					t.Fatalf("%s went %s after the intent grew", c.Metadata.Name, b.W.Now.Sub(grown.Time))
				}
			}
			if len(now) > len(was) {
				grown = b.W.Now
			}
			if again := b.Plan(); again.Changes() {
				t.Fatalf("planning again changes:\n%s", describe(again))
			}
		}
	})
}
