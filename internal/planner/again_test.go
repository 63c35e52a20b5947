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

// booksAt is an intent that books ahead, or has booked, for a term that begins so much later
// than the worlds of tests do.
func booksAt(after, duration time.Duration) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Schedule = v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(Start.Add(after)), Duration: v1alpha1.Duration{Duration: duration}, Book: true}
	})
}

// mayBookAhead lets a tenant book, with a quota of GPUs (0: none).
func mayBookAhead(gpus int64) func(*v1alpha1.TenantSpec) {
	return func(t *v1alpha1.TenantSpec) {
		if t.Quota = (&v1alpha1.TenantQuota{Book: true}); gpus > 0 {
			t.Quota.GPU = &gpus
		}
	}
}

// denyAll has all of an intent's contracts denied by their providers.
func denyAll(b *Builder, ref string) {
	for _, c := range b.Contracts(ref) {
		o := Ready(c)
		o.Consumer.Granted, o.Consumer.SliceDenied = nil, "no"
		b.Observe(c.Metadata.Name, o)
	}
}

// What was denied, and gives way to another intent before it has left for that, is not
// placed again where it was denied.
func TestDeniedAndDisplaced_StaysAway(t *testing.T) {
	b := settled(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Tenant("bio", "rome").
		Offer("paris/a", Cards("nvidia-h100", 1, "80Gi"), Costs("1")).
		Offer("paris/b", Cards("nvidia-a100", 1, "80Gi"), Costs("1")).
		Intent("bio/x", Wants(1), Times(2)))
	b.Offer("paris/a", Cards("nvidia-h100", 4, "80Gi")).Offer("paris/b", Cards("nvidia-a100", 4, "80Gi"))
	denyAll(b, "bio/x")
	step(t, b, "denied", map[string]string{"bio/x": "keep"})
	b.Tick(10*time.Second).Intent("vision/hi", Wants(4, "H100"), preempts(100))
	step(t, b, "gives way", map[string]string{"vision/hi": "queue Preempting", "bio/x": "preempt NothingFits"})
	b.Tick(time.Second)
	step(t, b, "a second later", map[string]string{"bio/x": "queue NothingFits"})
}

// An intent that may not start yet and loses all that it still held waits for its start at
// once; one that books has it booked at once.
func TestLosesAllBeforeItsStart(t *testing.T) {
	later := With(func(s *v1alpha1.IntentSpec) { s.Schedule.NotBefore = v1alpha1.TimeOf(Start.Add(48 * time.Hour)) })
	for name, c := range map[string]struct {
		change      func(*model.Intent)
		first, then string
	}{
		"waits": {later, "queue NotBefore", "queue NotBefore"},
		"books": {booksAt(48*time.Hour, 24*time.Hour), "place", "keep"},
	} {
		t.Run(name, func(t *testing.T) {
			b := settled(twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).Intent("bio/x", Wants(4)))
			b.Intent("bio/x", Wants(4), c.change)
			step(t, b, "its start is moved", map[string]string{"bio/x": "keep"})
			b.Tick(time.Minute).Intent("vision/hi", Wants(4), preempts(100), For(time.Hour))
			step(t, b, "gives way", map[string]string{"vision/hi": "queue Preempting", "bio/x": c.first})
			b.Tick(time.Second)
			step(t, b, "a second later", map[string]string{"bio/x": c.then})
		})
	}
}

// What an operator gives up of bookings does not begin first.
func TestForcedBooking(t *testing.T) {
	b := twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).Intent("bio/x", Wants(4), booksAt(time.Hour, 2*time.Hour))
	step(t, b, "booked", map[string]string{"bio/x": "place"})
	given := b.W.Ledger.ByIntent("bio", "x")[0]
	b.W.ForceRelease = map[string]bool{given.Metadata.Name: true}
	b.Tick(time.Hour)
	step(t, b, "its start", map[string]string{"bio/x": "place"})
	if c := b.W.Ledger.Contract(given.Metadata.Name); c.Status.Phase != v1alpha1.PhaseFailed || c.Status.Reason != "ForcedByOperator" {
		t.Fatalf("%s is %s (%s)", c.Metadata.Name, c.Status.Phase, c.Status.Why())
	}
}

// An intent that waited too long for the rest of its bookings is refused and stays so: it
// keeps what is booked, and books no more.
func TestRefusedKeepsItsBookings(t *testing.T) {
	b := twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).
		Intent("bio/x", Wants(4), Times(2), booksAt(time.Hour, 2*time.Hour), With(func(s *v1alpha1.IntentSpec) {
			s.Gang, s.MinReplicas = Ptr(false), 1
			s.Queue.Timeout.Duration = 10 * time.Minute
		}))
	step(t, b, "one of two", map[string]string{"bio/x": "queue NothingFits"})
	b.Tick(20 * time.Minute)
	step(t, b, "too long", map[string]string{"bio/x": "refuse QueueTimeout"})
	b.Tick(time.Minute).Offer("paris/b", Cards("nvidia-h100", 4, "80Gi"), Costs("1"))
	step(t, b, "no more of it is booked", map[string]string{"bio/x": "refuse QueueTimeout"})
	b.Offer("paris/a", Cards("nvidia-h100", 2, "80Gi"))
	step(t, b, "it may be back in a moment", map[string]string{"bio/x": "refuse QueueTimeout"})
	b.Tick(5 * time.Minute)
	p := step(t, b, "what is booked moves where it must", map[string]string{"bio/x": "refuse QueueTimeout"})
	var on []string
	for _, c := range b.W.Ledger.Bookings() {
		on = append(on, c.Spec.Flavor)
	}
	if len(on) != 1 || on[0] != "b" {
		t.Fatalf("booked on %v\n%s", on, describe(p))
	}
	b.Tick(time.Hour)
	step(t, b, "its start", map[string]string{"bio/x": "refuse QueueTimeout"})
	if list := b.Contracts("bio/x"); len(list) != 1 || list[0].Status.Phase != v1alpha1.PhaseReserved {
		t.Fatalf("%d contracts", len(list))
	}
}

// Stage find books nothing.
func TestFindBooksNothing(t *testing.T) {
	b := twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).Intent("bio/x", Wants(4), booksAt(time.Hour, 2*time.Hour))
	step(t, b, "booked", map[string]string{"bio/x": "place"})
	find := With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind })
	b.Intent("bio/x", Wants(4), booksAt(time.Hour, 2*time.Hour), find)
	step(t, b, "given back", map[string]string{"bio/x": "queue NotBefore"})
	if n := b.W.Ledger.Booked(); n != 0 {
		t.Fatalf("%d are booked", n)
	}
	b.Tick(2 * time.Hour)
	step(t, b, "its start", map[string]string{"bio/x": "find StageFind"})
	// What runs ends, too, before the start of one that only wants to know.
	b = settled(twoFlavors(4).Drop("paris/b").Intent("bio/x", Wants(4)))
	b.Intent("bio/x", Wants(4), booksAt(time.Hour, 2*time.Hour), find)
	step(t, b, "released", map[string]string{"bio/x": "queue NotBefore"})
}

// Quota is not borrowed from a tenant while one of its intents takes it back from others.
func TestNobodyBorrowsWhatIsTakenBack(t *testing.T) {
	lends := func(own, more string) func(*v1alpha1.TenantSpec) {
		return func(s *v1alpha1.TenantSpec) {
			s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(Amounts("gpu=" + own)[v1alpha1.GPU].Int64())}
			if more != "" {
				s.Quota.MaxBorrow = Amounts("gpu=" + more)
			}
		}
	}
	b := settled(New().Consumer("rome").Provider("paris").Tenant("bio", "rome", lends("5", "")).Tenant("vision", "rome", lends("0", "5")).
		Offer("paris/a", Cards("nvidia-h100", 5, "80Gi"), Costs("1")).
		Intent("vision/borrower", Wants(4)))
	b.Intent("bio/owner", Wants(5))
	step(t, b, "taken back", map[string]string{"bio/owner": "queue Reclaiming", "vision/borrower": "preempt NothingFits"})
	b.Tick(time.Minute).Intent("vision/hi", Wants(1), preempts(500))
	step(t, b, "nothing is left to borrow", map[string]string{"bio/owner": "queue Reclaiming", "vision/hi": "queue NothingFits"})
}

// A warm contract that its pool changes in the same round belongs to who took it over.
func TestTakenOverWhileItsPoolChanges(t *testing.T) {
	pool := func(memory string) func(*v1alpha1.FleetSpec) {
		return func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{
				GPU: &v1alpha1.GPURequest{Count: 2}, Named: Amounts("cpu=4 memory=" + memory),
			}}}
		}
	}
	b := settled(twoFlavors(2).Drop("paris/b").Fleet(pool("16Gi")))
	b.Fleet(pool("8Gi")).Intent("vision/x", Wants(2), func(in *model.Intent) { in.Spec.Resources.Named = Amounts("cpu=4 memory=4Gi") })
	step(t, b, "taken over", map[string]string{"vision/x": "place"})
	if c := b.Contracts("vision/x"); len(c) != 1 || c[0].Decision.Claimed != "warm" {
		t.Fatalf("%d contracts", len(c))
	}
}

// One that books is not waited for as if it were to be placed now.
func TestTogetherWithOneThatBooks(t *testing.T) {
	alone := With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 1 })
	b := twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).
		Intent("bio/waits", Wants(1, "A100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"books"} })).
		Intent("bio/books", Wants(4), Times(2), booksAt(time.Hour, 2*time.Hour), alone)
	step(t, b, "half is booked", map[string]string{"bio/waits": "queue NothingFits", "bio/books": "queue NothingFits"})
}

// Why an intent waits whose change has replaced what it had is told by what the next round
// counts against the quota, too: what is being released.
func TestReplacedCountsForWhoWaits(t *testing.T) {
	b := settled(twoFlavors(4).Consumer("turin").Tenant("bio", "rome", func(s *v1alpha1.TenantSpec) {
		s.Consumers = []string{"rome", "turin"}
		s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(2)), MaxBorrow: Amounts("gpu=3")}
	}).Intent("bio/x", Wants(1)))
	b.Intent("bio/x", Wants(1), Times(3), With(func(s *v1alpha1.IntentSpec) { s.Consumer = "turin" }))
	step(t, b, "moves", map[string]string{"bio/x": "queue QuotaExceeded"})
}

// What a contract was made smaller by may be booked for later, though its provider still
// reports the old size: the ledger then adds up with what is sold.
func TestBookedBesideOneMadeSmaller(t *testing.T) {
	b := settled(twoFlavors(4).Drop("paris/b").Tenant("bio", "rome", mayBookAhead(0)).Intent("vision/x", Wants(4)))
	was := b.Contracts("vision/x")[0]
	b.Intent("vision/x", Wants(1))
	step(t, b, "smaller", map[string]string{"vision/x": "resize IntentChanged"})
	b.Offer("paris/a", Spec(func(f *v1alpha1.FlavorSpec) {
		f.Held = map[string]v1alpha1.Resources{was.Spec.Slice: {v1alpha1.GPU: v1alpha1.AmountOf(4)}}
	}))
	b.Intent("bio/y", Wants(3), booksAt(time.Hour, 2*time.Hour)).Intent("bio/z", Wants(3))
	step(t, b, "booked for later", map[string]string{"bio/y": "place", "bio/z": "queue NothingFits"})
	if held := b.W.Ledger.Bookings()[0].Decision.Offer.Held[v1alpha1.GPU]; held.Int64() != 1 {
		t.Errorf("the booking's figures hold %d cards", held.Int64())
	}
}

// The only replica of an intent whose replicas share a domain may go to another one step by
// step: what it had there is no rest of the gang that it would leave.
func TestOnlyReplicaMovesBesideItsOld(t *testing.T) {
	stepwise := With(func(s *v1alpha1.IntentSpec) {
		s.Gang, s.Update = Ptr(true), &v1alpha1.Update{MaxUnavailable: Ptr(int32(0))}
	})
	b := settled(New().Consumer("rome").Provider("oslo", "paris").Tenant("vision", "rome").
		Offer("oslo/h100", Cards("nvidia-h100", 1, "80Gi"), Costs("1")).
		Offer("paris/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("2")).
		Intent("vision/train", Wants(1), stepwise, cheap))
	b.Intent("vision/train", Wants(2), stepwise, cheap)
	step(t, b, "beside", map[string]string{"vision/train": "move IntentChanged"})
	b.Tick(time.Minute).Deliver()
	b.Round()
	if got := phases(b); len(got) != 2 {
		t.Fatalf("%v", got)
	}
}

// What a provider denied hours ago counts from then, not once more from when the contract
// leaves for it: else each move would keep the provider out of the market, to which it moves.
func TestDeniedLongAgo_Moves(t *testing.T) {
	b := settled(twoFlavors(8).Drop("paris/b").Intent("bio/x", Wants(4)).Intent("vision/y", Wants(4)))
	denyAll(b, "bio/x")
	denyAll(b, "vision/y")
	step(t, b, "denied", map[string]string{"bio/x": "keep", "vision/y": "keep"})
	b.Tick(2 * time.Hour)
	step(t, b, "nothing else fits", map[string]string{"bio/x": "keep SliceDenied", "vision/y": "keep SliceDenied"})
	b.Offer("paris/b", Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
	step(t, b, "another flavor", map[string]string{"bio/x": "move SliceDenied", "vision/y": "move SliceDenied"})
}
