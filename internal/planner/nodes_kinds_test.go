package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// bookedOn is on which nodes an intent's bookings lie.
func bookedOn(b *Builder, name string) string {
	var out []string
	for _, c := range b.W.Ledger.ByIntent("vision", name) {
		for _, n := range c.Spec.Nodes {
			if c.Status.Phase == v1alpha1.PhaseBooked {
				out = append(out, strings.TrimLeft(n.Node[1:], "0")+":"+n.Resources["nvidia.com/gpu"].Canonical("gpu"))
			}
		}
	}
	return strings.Join(out, " ")
}

// A booking takes the nodes that are free during all of it, and others have these with a
// term that ends before alone.
func TestNodes_Bookings(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").
		Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{Book: true} }).
		Offer("paris/h100", onNodes(8, 8)).Intent("vision/a0", Wants(4))
	b = settled(b)
	in := func(name string, gpus int32, from, duration time.Duration) {
		b.Intent("vision/"+name, Wants(gpus), With(func(s *v1alpha1.IntentSpec) {
			s.Schedule.Duration = v1alpha1.Duration{Duration: duration}
			if from > 0 {
				s.Schedule.NotBefore, s.Schedule.Book = v1alpha1.TimeOf(Start.Add(from)), true
			}
		}))
	}
	in("booked", 8, 24*time.Hour, 2*time.Hour)
	p := b.Round()
	if got := bookedOn(b, "booked"); got != "1:8" {
		t.Fatalf("booked on %q\n%s", got, describe(p))
	}
	in("long", 8, 0, 30*time.Hour)
	in("short", 8, 0, 10*time.Hour)
	in("small", 4, 0, 30*time.Hour)
	p = b.Round()
	for name, want := range map[string]string{"long": "", "short": "1:8", "small": ":4"} {
		if got := nodesText(p, "vision/"+name); got != want {
			t.Errorf("%s lies on %q, want %q\n%s", name, got, want, describe(p))
		}
	}
	wantOnlyKeeps(t, b)
	in("second", 8, 25*time.Hour, 2*time.Hour)
	in("later", 8, 26*time.Hour, 2*time.Hour)
	p = b.Round()
	if second, later := bookedOn(b, "second"), bookedOn(b, "later"); second != "" || later != "1:8" {
		t.Errorf("during the first %q, after it %q\n%s", second, later, describe(p))
	}
	// At its start it lies on the nodes that it booked.
	b.Remove("vision/short").Round()
	b.Tick(24 * time.Hour).Deliver().Round()
	p = b.Round()
	for _, c := range b.Contracts("vision/booked") {
		if c.Status.Phase == v1alpha1.PhaseBooked || len(c.Spec.Nodes) != 1 || !strings.HasSuffix(c.Spec.Nodes[0].Node, "1") {
			t.Errorf("it is %s on %v\n%s", c.Status.Phase, c.Spec.Nodes, describe(p))
		}
	}
	if len(b.Contracts("vision/booked")) != 1 {
		t.Errorf("it holds nothing\n%s", describe(p))
	}
}

// What an autoscaler has to add names no node yet, and what a node that is there has for a
// pod names that.
func TestNodes_Growth(t *testing.T) {
	world := func() *Builder {
		return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", onNodes(2), scalesTo("gpu=16 cpu=192 memory=2Ti"))
	}
	for gpus, want := range map[int32]string{2: ":2", 4: ""} {
		b := world().Intent("vision/a0", Wants(gpus))
		p := b.Round()
		if d := Of(p, "vision/a0"); d.Action != draft.Place || nodesText(p, "vision/a0") != want {
			t.Errorf("%d GPUs: %s on %q, want %q\n%s", gpus, d.Action, nodesText(p, "vision/a0"), want, describe(p))
		}
		if scaled := b.Contracts("vision/a0")[0].Decision.Scaled; (scaled == nil) != (want != "") {
			t.Errorf("%d GPUs: to add are %v", gpus, scaled)
		}
		wantOnlyKeeps(t, b)
	}
	b := world().Intent("vision/a0", Wants(9))
	if p := b.Round(); nodesText(p, "vision/a0") != "" {
		t.Errorf("nine GPUs, of nodes of eight: %q\n%s", nodesText(p, "vision/a0"), describe(p))
	}
}

// Elastic replicas are as many as the nodes hold, one by one, not as the flavor's sum would.
func TestNodes_ElasticReplicas(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(3, 3)).
		Intent("vision/serve", Wants(2, "H100"), Follows(1, 4))
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	b.Tick(time.Hour)
	for _, c := range live(b, "vision/serve") {
		b.Uses(c, 1)
	}
	p := wantReplicas(t, b.Waits("rome", "vision/serve", 3, twoCards), 2)
	if got := nodesText(p, "vision/serve"); got != "1:2" && got != ":2" {
		t.Errorf("the second lies on %q\n%s", got, describe(p))
	}
	on := map[string]bool{}
	for _, c := range live(b, "vision/serve") {
		on[c.Spec.Nodes[0].Node] = true
	}
	if len(on) != 2 {
		t.Errorf("both lie on %v", on)
	}
}

// Warm slices lie on nodes as contracts do, and who claims one lies where it did.
func TestNodes_WarmPool(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(4, 4)).
		Fleet(func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{{Name: "h100-warm", Consumer: "rome", Count: 2, Resources: v1alpha1.ResourceRequest{
				GPU: &v1alpha1.GPURequest{Count: 3, Models: []string{"H100"}}, Named: Amounts("cpu=16 memory=128Gi pods=50 ephemeral-storage=200Gi"),
			}}}
		})
	p := b.Round()
	if got := nodesText(p, pool); got != ":3 1:3" && got != "1:3 :3" {
		t.Fatalf("warm on %q\n%s", got, describe(p))
	}
	deliverBySlice(b.Tick(10 * time.Second)).Round()
	b.Tick(10*time.Second).Intent("vision/train", Wants(3, "H100"))
	p = b.Round()
	c := b.Contracts("vision/train")[0]
	old := b.W.Ledger.Contract(c.Spec.Slice)
	if c.Decision.Claimed != "h100-warm" || len(c.Spec.Nodes) != 1 || c.Spec.Nodes[0].Node != old.Spec.Nodes[0].Node || len(c.Decision.Offer.Nodes) != 1 {
		t.Errorf("claimed %q on %v, the slice on %v\n%s", c.Decision.Claimed, c.Spec.Nodes, old.Spec.Nodes, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// Contracts without accelerators stay with the pool, and what they have is taken off nodes
// where it lies best: accelerators are sold next to it by what a node then has at least.
func TestNodes_WithoutAccelerators(t *testing.T) {
	cores := func(n int64) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(n * 1000) }
	}
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8)).
		Intent("vision/web", Wants(0), With(cores(80)))
	b = settled(b)
	if c := b.Contracts("vision/web"); len(c) != 1 || len(c[0].Spec.Nodes) > 0 || c[0].Spec.NodeSelector[v1alpha1.LabelNode] != "" {
		t.Fatalf("%d contracts without accelerators, on %v", len(c), c)
	}
	for i := range 2 {
		b.Intent(fmt.Sprintf("vision/a%d", i), Wants(8), With(cores(60)))
	}
	p := b.Round()
	a, other := nodesText(p, "vision/a0"), nodesText(p, "vision/a1")
	if (a == "") == (other == "") {
		t.Errorf("60 of 112 cores are left on one node: on %q and %q\n%s", a, other, describe(p))
	}
	wantOnlyKeeps(t, b)
	// What is lacking later makes somebody Degraded, whoever lies on no node too.
	b.Offer("paris/h100", withoutNode).Round()
	if got := fmt.Sprint(b.Contracts("vision/web")[0].Status.Reason, b.Contracts("vision/a0"), b.Contracts("vision/a1")); !strings.Contains(got, ledger.DegradedShrunk) && !strings.Contains(got, ledger.DegradedNode) {
		t.Errorf("a node is gone: %s", got)
	}
	wantOnlyKeeps(t, b)
}
