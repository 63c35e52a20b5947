package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Worlds that random stories have found, in which a plan that was applied was
// followed by another that changed something.

// twoFlavors are two flavors with as many cards each.
func twoFlavors(cards int) *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Tenant("bio", "rome").
		Offer("paris/a", Cards("nvidia-h100", cards, "80Gi"), Costs("1")).
		Offer("paris/b", Cards("nvidia-h100", cards, "80Gi"), Costs("1"))
}

// Who gives up waiting in a round keeps nothing from others in it.
func TestWhoGivesUpKeepsNothing(t *testing.T) {
	b := settled(twoFlavors(4).
		Intent("bio/x", Wants(4), Priority(10), grace(2*time.Hour)).
		Intent("bio/y", Wants(4), Priority(10), grace(2*time.Hour)))
	b.Intent("vision/pair", Wants(4), Times(2), preempts(100), With(func(s *v1alpha1.IntentSpec) {
		s.Queue.Timeout.Duration = 10 * time.Minute
	}))
	step(t, b, "notice", map[string]string{"vision/pair": "queue Preempting"})
	b.Tick(time.Minute).Remove("bio/y").Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Intent("vision/late", Wants(4))
	step(t, b, "what is free is kept", map[string]string{"vision/pair": "queue Preempting", "vision/late": "queue NothingFits"})
	b.Tick(10 * time.Minute)
	step(t, b, "given up", map[string]string{"vision/pair": "refuse QueueTimeout", "vision/late": "place", "bio/x": "keep"})
}

// What a claim of lower priority keeps is not in the way of those before it.
func TestClaimsBindThoseAfterThem(t *testing.T) {
	b := settled(twoFlavors(4).Drop("paris/b").
		Tenant("bio", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(2))} }).
		Intent("bio/one", Wants(2), Priority(500)).
		Intent("vision/victim", Wants(1), Priority(1)))
	b.Intent("bio/two", Wants(1), Priority(10)).Intent("vision/claimant", Wants(2), preempts(5))
	step(t, b, "a claim", map[string]string{"vision/claimant": "queue Preempting", "bio/two": "queue QuotaExceeded"})
}

// An intent that moves one replica and has to give way with another writes the
// same of itself in every round.
func TestDrainedAndDisplaced(t *testing.T) {
	alone := With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 1 })
	b := settled(twoFlavors(2).Intent("bio/x", Wants(2), Times(2), alone, grace(time.Hour)))
	drained := b.Contracts("bio/x")[1].Spec.Flavor
	b.Offer("paris/"+drained, Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(b.W.Now.Add(2 * time.Hour)) }))
	b.Intent("vision/hi", Wants(2), preempts(10))
	step(t, b, "both at once", map[string]string{"vision/hi": "queue Preempting", "bio/x": "preempt Preempted"})
}

// A warm slice that grows is claimed when it is seen to have grown.
func TestWarmSliceIsClaimedAsSeen(t *testing.T) {
	pool := func(cpu string) func(*v1alpha1.FleetSpec) {
		return func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{
				GPU: &v1alpha1.GPURequest{Count: 2}, Named: Amounts("memory=8Gi cpu=" + cpu),
			}}}
		}
	}
	b := settled(twoFlavors(2).Drop("paris/b").Fleet(pool("4")))
	b.Fleet(pool("6")).Intent("vision/x", Wants(2), func(in *model.Intent) { in.Spec.Resources.Named = Amounts("cpu=5 memory=4Gi") })
	step(t, b, "it grows", map[string]string{"vision/x": "queue NothingFits", "fleetbroker/warm": "resize IntentChanged"})
	b.Tick(time.Second)
	step(t, b, "not seen yet", map[string]string{"vision/x": "queue NothingFits"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "claimed", map[string]string{"vision/x": "place"})
}

// A flavor that holds more than it has left sells nothing, the warm slices that
// it holds neither.
func TestWarmSliceOfShrunkenFlavor(t *testing.T) {
	b := settled(twoFlavors(4).Drop("paris/b").Fleet(func(f *v1alpha1.FleetSpec) {
		f.WarmPools = []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 2, Resources: v1alpha1.ResourceRequest{
			GPU: &v1alpha1.GPURequest{Count: 1}, Named: Amounts("memory=8Gi cpu=4 pods=110"),
		}}}
	}))
	b.Offer("paris/a", Capacity("pods=150")).Intent("vision/x", Wants(1), func(in *model.Intent) { in.Spec.Resources.Named = Amounts("cpu=4 memory=4Gi") })
	step(t, b, "110 of 150 pods each", map[string]string{"vision/x": "queue NothingFits"})
}

// Who does not wait keeps nothing of what comes free by itself.
func TestWhoFailsKeepsNothing(t *testing.T) {
	b := settled(twoFlavors(3).Drop("paris/b").Intent("vision/pair", Wants(1), Times(2), preempts(10), With(func(s *v1alpha1.IntentSpec) {
		s.Queue.Policy = "fail"
	})))
	gone := b.Contracts("vision/pair")
	b.W.ForceRelease = map[string]bool{gone[0].Metadata.Name: true, gone[1].Metadata.Name: true}
	b.Intent("bio/pair", Wants(1), Times(2))
	step(t, b, "an operator", map[string]string{"vision/pair": "refuse GangIncomplete", "bio/pair": "queue GangIncomplete"})
}
