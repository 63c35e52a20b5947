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

// refuse has paris report that it does not honour the newest contract.
func refuse(b *Builder, why string) {
	list := b.Contracts("vision/train")
	b.Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) {
		f.Refused = map[string]string{list[len(list)-1].Metadata.Name: why}
	}))
}

// A provider whose own workloads came first refuses what it was just given: the
// contract fails with its words, and the intent is planned again elsewhere.
func TestRefusedIsPlannedElsewhereAtOnce(t *testing.T) {
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4")).
		Intent("vision/train", Wants(4, "H100"), cheap)
	b.Round()
	b.Tick(time.Second)
	refuse(b, "its own workloads came first")
	p := want(t, b, planner.Move, lifecycle.CodeRefused)
	if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}
	old := b.Contracts("vision/train")[0]
	if old.Status.Target != v1alpha1.PhaseFailed || !strings.HasPrefix(old.Status.Why(), "ProviderRefused: paris/h100 refuses it: its own workloads came first") {
		t.Fatalf("%+v", old.Status)
	}
	// It keeps away from the flavor for a while, also when the refusal is gone.
	b.Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Refused = nil }))
	b.Tick(time.Second).Deliver().Round()
	b.Offer("lyon/h100", Heard(model.Lost))
	if p := b.Round(); on(b) == "" || !strings.Contains(Of(p, "vision/train").Reason, "denied it a slice") {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}
}

// What nobody else can take waits in the queue, and holds nothing.
func TestRefusedWithoutAnotherOfferWaits(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "H100"), cheap)
	b.Round()
	b.Tick(time.Second)
	refuse(b, "its own workloads came first")
	p := b.Round()
	if d := Of(p, "vision/train"); d.Action != planner.Queued || on(b) != "paris/h100 Releasing" {
		t.Fatalf("%s %s\n%s", d.Action, on(b), describe(p))
	}
}

// What runs already is moved before it is given up, and kept when it cannot be.
func TestRefusedInUseIsMovedFirst(t *testing.T) {
	b := threePlaces(t)
	refuse(b, "maintenance")
	want(t, b, planner.Move, lifecycle.CodeRefused)
	if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" {
		t.Fatal(on(b))
	}
	b = threePlaces(t)
	b.Drop("lyon/h100").Drop("oslo/h100")
	refuse(b, "maintenance")
	want(t, b, planner.Keep, lifecycle.CodeRefused)
	if on(b) != "paris/h100 Degraded" {
		t.Fatal(on(b))
	}
	b.Offer("paris/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Refused = nil })).Tick(time.Second).Round()
	if on(b) != "paris/h100 Active" {
		t.Fatal(on(b))
	}
}

// A daemon without enough reports acts on nothing.
func TestRefusedWhileDeafWaits(t *testing.T) {
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4")).Intent("vision/train", Wants(4, "H100"), cheap)
	b.Round()
	b.Tick(time.Second)
	refuse(b, "its own workloads came first")
	b.W.Deaf = true
	b.Round()
	if strings.Contains(on(b), "Releasing") {
		t.Fatal(on(b))
	}
}
