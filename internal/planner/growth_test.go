package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// scalesTo is what an autoscaler could make of an offer.
func scalesTo(s string) func(*model.Offer) {
	return Spec(func(f *v1alpha1.FlavorSpec) { f.ScalableTo = Amounts(s) })
}

func TestWhatStandsIsSoldFirst(t *testing.T) {
	// Paris is cheaper, and would have to grow; lyon exists.
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
		Offer("paris/h100", Capacity("gpu=2"), scalesTo("gpu=16")).
		Intent("vision/train", Wants(4, "H100"), cheap)
	p := want(t, b, planner.Place, "")
	if on(b) != "lyon/h100 Reserved" {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}
	if c := b.Contracts("vision/train")[0]; c.Decision.Scaled != nil || len(c.Decision.RunnersUp) != 1 || c.Decision.RunnersUp[0].Flavor != "paris/h100" {
		t.Fatalf("%+v", c.Decision)
	}
	// What fits in what exists is sold as ever.
	b = paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
		Offer("paris/h100", Capacity("gpu=4"), scalesTo("gpu=16")).
		Intent("vision/train", Wants(4, "H100"), cheap)
	if want(t, b, planner.Place, ""); on(b) != "paris/h100 Reserved" || b.Contracts("vision/train")[0].Decision.Scaled != nil {
		t.Fatal(on(b))
	}
}

func TestWhatCouldStandIsSoldAsSuch(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("gpu=2"), scalesTo("gpu=8")).Intent("vision/train", Wants(4, "H100"))
	p := want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	if got := c.Decision.Scaled.Canonical(); len(got) != 1 || got["gpu"] != "2" || c.Decision.Offer.ScalableTo[v1alpha1.GPU].Int64() != 8 {
		t.Fatalf("%v of %+v", got, c.Decision)
	}
	if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "the provider's autoscaler has to add 2 GPUs") {
		t.Fatal(d.Reason)
	}
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil || len(e.Offers) != 1 || e.Offers[0].Detail != "its autoscaler would add 2 GPUs" || !e.Offers[0].Fits {
		t.Fatalf("%+v %v", e.Offers, err)
	}
	// No more than it could become, and what is beyond capacity is no excess.
	b.Tick(time.Minute).Deliver().Intent("vision/more", Wants(4, "H100")).Intent("vision/most", Wants(1, "H100"))
	p = b.Round()
	if Of(p, "vision/more").Action != planner.Place || Of(p, "vision/most").Action != planner.Queued || on(b) != "paris/h100 Active" {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}
	wantOnlyKeeps(t, b)
	// The autoscaler is gone: the youngest is too much.
	b.Tick(time.Minute).Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.ScalableTo = nil }), Capacity("gpu=4")).Round()
	if got := b.Contracts("vision/more")[0].Status.Phase; got != v1alpha1.PhaseDegraded || on(b) != "paris/h100 Active" {
		t.Fatalf("%s, %s", got, on(b))
	}
}

// Which of two flavors is named first does not decide whether an extended resource that
// one of them could grow is there.
func TestWhatCouldGrowAnExtendedResource(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/"+names[0], Cards("nvidia-h100", 8, "80Gi"), Costs("2")).
			Offer("paris/"+names[1], Cards("nvidia-h100", 8, "80Gi"), Costs("3"), scalesTo("rdma/hca=4")).
			Intent("vision/train", Wants(1, "H100"), func(in *model.Intent) { in.Spec.Resources.Named["rdma/hca"] = v1alpha1.AmountOf(1) })
		want(t, b, planner.Place, "")
		if got := on(b); got != "paris/"+names[1]+" Reserved" {
			t.Errorf("with %s: %s", names, got)
		}
	}
}

// TestScaledFromNothing: a flavor of which no node exists sells too.
func TestScaledFromNothing(t *testing.T) {
	b := paris().Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) {
		f.Capacity, f.ScalableTo = Amounts("cpu=0 memory=0"), Amounts("gpu=8 cpu=96 memory=1Ti")
	})).Intent("vision/train", Wants(4, "H100"))
	p := want(t, b, planner.Place, "")
	if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "has to add 4 GPUs, 8 cpu, 64Gi memory") {
		t.Fatal(d.Reason)
	}
}

// TestNothingMovesToWhatDoesNotStand: however cheap it is.
func TestNothingMovesToWhatDoesNotStand(t *testing.T) {
	b := running(t, cheap)
	b.Fleet(consolidating("apply", "0.1", time.Minute))
	b.Offer("lyon/h100", Costs("0.01"), Capacity("gpu=0"), scalesTo("gpu=8")).Round()
	b.Tick(time.Hour).Round()
	if on(b) != "paris/h100 Active" || len(Of(b.Plan(), "vision/train").Proposals) != 0 {
		t.Fatalf("%s\n%s", on(b), describe(b.Plan()))
	}
	b.Offer("lyon/h100", Capacity("gpu=8")).Round()
	b.Tick(time.Hour).Round()
	if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" {
		t.Fatalf("%s\n%s", on(b), describe(b.Plan()))
	}
}
