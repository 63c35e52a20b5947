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

func reliable(ratio string) func(*model.Offer) {
	return Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.Reliability = Money(ratio) })
}

func TestAvailability(t *testing.T) {
	b := cities("a", "b", "c").Offer("a/h100", reliable("0.99")).Offer("b/h100", reliable("0.995")).
		Intent("vision/train", Wants(2, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) { s.SLA = &v1alpha1.SLA{Availability: Money("99.5")} }))
	b.Round()
	if got := places(b, "vision/train"); got != "b" {
		t.Fatal(got)
	}
	wantOnlyKeeps(t, b)
	b.Drop("b/h100").Intent("vision/more", Wants(2, "H100"), With(func(s *v1alpha1.IntentSpec) { s.SLA = &v1alpha1.SLA{Availability: Money("99.5")} }))
	e, err := planner.Explain(b.W, "vision", "more")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range e.Offers {
		if want := map[string]string{"a": "99% < 99.5%", "c": "its reliability is unknown"}[l.Flavor.Metadata.Namespace]; l.Requirement != "sla.availability" || l.Detail != want {
			t.Errorf("%s %s %s", l.Flavor.Ref(), l.Requirement, l.Detail)
		}
	}
	if d := e.Decision; len(d.Try) != 1 || d.Try[0] != `sla.availability: "99"  # 2.00 EUR/h` {
		t.Errorf("try %q", d.Try)
	}
}

func TestMaxTimeToActive(t *testing.T) {
	b := cities("a", "b").Intent("vision/train", Wants(2, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) {
		s.SLA = &v1alpha1.SLA{MaxTimeToActive: v1alpha1.Duration{Duration: 10 * time.Minute}}
	}))
	b.Round()
	old := b.Contracts("vision/train")[0]
	seen := func(state v1alpha1.Presence) {
		b.Observe(old.Metadata.Name, v1alpha1.Observation{Consumer: v1alpha1.ConsumerObservation{Reachable: true, Slice: state, VirtualNode: state, Node: v1alpha1.Absent}})
	}
	// A consumer that reports nothing proves nothing.
	b.Tick(time.Hour).Round()
	if got := places(b, "vision/train"); got != "a" {
		t.Fatal(got)
	}
	b.W.Now = v1alpha1.TimeOf(old.Spec.Term.Start.Add(9 * time.Minute))
	seen(v1alpha1.Present)
	p := b.Round()
	if got := places(b, "vision/train"); got != "a" || !p.Due.Equal(old.Spec.Term.Start.Add(10*time.Minute)) {
		t.Fatalf("%s, due %v", got, p.Due)
	}
	b.Tick(time.Minute)
	p = b.Round()
	c := b.W.Ledger.Contract(old.Metadata.Name)
	if got := places(b, "vision/train"); got != "b" || c.Status.Reason != lifecycle.CodeSLA || c.Status.Target != v1alpha1.PhaseFailed {
		t.Fatalf("%s %+v\n%s", got, c.Status, describe(p))
	}
	wantOnlyKeeps(t, b)
	// What is usable in time stays.
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(time.Hour).Round()
	if got := places(b, "vision/train"); got != "b" {
		t.Fatal(got)
	}
	// With nowhere else to go it is kept.
	b = cities("a").Intent("vision/train", Wants(2, "H100"), With(func(s *v1alpha1.IntentSpec) {
		s.SLA = &v1alpha1.SLA{MaxTimeToActive: v1alpha1.Duration{Duration: 10 * time.Minute}}
	}))
	b.Round()
	old = b.Contracts("vision/train")[0]
	seen(v1alpha1.Present)
	b.Tick(time.Hour)
	d := Of(b.Round(), "vision/train")
	if got := places(b, "vision/train"); got != "a" || !strings.Contains(d.Reason, "it was not usable within the 10m of sla.maxTimeToActive; it is kept") {
		t.Fatalf("%s %+v", got, d)
	}
	wantOnlyKeeps(t, b)
}

func TestFlavorTypes(t *testing.T) {
	typed := func(s string) func(*model.Offer) {
		return Spec(func(f *v1alpha1.FlavorSpec) { f.Type, f.Capacity = s, Amounts("example.org/camera=3") })
	}
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a").Offer("a/cameras", typed("Sensor"), Costs("0")).Offer("a/nodes", Costs("0")).
		Intent("vision/eyes", func(in *model.Intent) {
			in.Spec.FlavorType = "Sensor"
			in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("example.org/camera=2")}
		})
	b.Round()
	list := b.Contracts("vision/eyes")
	if len(list) != 1 || list[0].Spec.Flavor != "cameras" || list[0].Spec.Stage != v1alpha1.StageReserve || list[0].Status.Phase != v1alpha1.PhaseReserved ||
		list[0].Status.Why() != "NotDelivered: a Sensor does not become a slice; it is reserved, and its provider delivers it" {
		t.Fatalf("%+v", list)
	}
	wantOnlyKeeps(t, b)
	b.Tick(time.Hour).Round()
	wantOnlyKeeps(t, b)
	b.Intent("vision/more", func(in *model.Intent) {
		in.Spec.FlavorType = "Sensor"
		in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("example.org/camera=2")}
	})
	if d := Of(b.Round(), "vision/more"); d.Action != planner.Queued || d.Rejected["flavorType"] != 1 || d.Rejected["capacity.example.org/camera"] != 1 {
		t.Fatalf("%+v", d)
	}
	b.Remove("vision/eyes").Round()
	b.Tick(time.Minute).Round()
	if d := Of(b.Tick(time.Minute).Round(), "vision/more"); len(b.Contracts("vision/eyes")) != 0 || len(d.Contracts) != 1 {
		t.Fatalf("%+v", d)
	}
}
