package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestObservations changes one thing about what a consumer reports of a contract
// that works, for a contract that was just reserved, that is peering and that
// is active.
func TestObservations(t *testing.T) {
	type obs = v1alpha1.ConsumerObservation
	const reserved, peering, active, degraded = v1alpha1.PhaseReserved, v1alpha1.PhasePeering, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded
	for name, c := range map[string]struct {
		change func(*obs)
		// phases that a Reserved, a Peering and an Active contract go to.
		fromReserved, fromPeering, fromActive v1alpha1.Phase
		reason                                string
	}{
		"all is well":           {func(*obs) {}, active, active, active, ""},
		"nobody has looked":     {func(o *obs) { *o = obs{} }, reserved, peering, active, ""},
		"unreachable":           {func(o *obs) { *o = obs{Message: "no route"} }, reserved, peering, active, ""},
		"the slice is unknown":  {func(o *obs) { o.Slice = v1alpha1.Unknown }, reserved, peering, active, ""},
		"no slice":              {func(o *obs) { o.Slice = v1alpha1.Absent }, reserved, peering, degraded, ledger.DegradedSliceMissing},
		"denied":                {func(o *obs) { o.SliceDenied = "no such class" }, degraded, degraded, degraded, ledger.DegradedSliceDenied},
		"nothing granted":       {func(o *obs) { o.Granted = nil }, peering, peering, degraded, ledger.DegradedGrantedLess},
		"less granted":          {func(o *obs) { o.Granted = o.Granted.Sub(Amounts("nvidia.com/gpu=1")) }, peering, peering, degraded, ledger.DegradedGrantedLess},
		"more granted":          {func(o *obs) { o.Granted = o.Granted.Add(Amounts("nvidia.com/gpu=1")) }, peering, peering, active, ""},
		"no virtual node":       {func(o *obs) { o.VirtualNode = v1alpha1.Absent }, peering, peering, degraded, ledger.DegradedSliceMissing},
		"no Node":               {func(o *obs) { o.Node = v1alpha1.Absent }, peering, peering, degraded, ledger.DegradedNodeNotReady},
		"the Node is not ready": {func(o *obs) { o.NodeReady = false }, peering, peering, degraded, ledger.DegradedNodeNotReady},
		"the Node has less":     {func(o *obs) { o.Allocatable = o.Allocatable.Sub(Amounts("cpu=1")) }, peering, peering, degraded, ledger.DegradedNodeNotReady},
		"pods are not taken": {func(o *obs) {
			o.Offloading, o.OffloadingReason, o.OffloadingMessage = false, v1alpha1.ReasonBackOff, "paris does not take pod vision/one"
		}, peering, peering, degraded, ledger.DegradedBackOff},
		"offloading is not ready": {func(o *obs) { o.Offloading, o.OffloadingMessage = false, "vision: SomeFailed" }, peering, peering, degraded, ledger.DegradedOffloading},
	} {
		for from, want := range map[v1alpha1.Phase]v1alpha1.Phase{reserved: c.fromReserved, peering: c.fromPeering, active: c.fromActive} {
			t.Run(name+"/"+string(from), func(t *testing.T) {
				b := inPhase(t, from)
				old := b.Contracts("vision/train")[0]
				o := Ready(old)
				c.change(&o.Consumer)
				p := b.Tick(time.Minute).Observe(old.Metadata.Name, o).Round()
				now := b.Contracts("vision/train")[0]
				if now.Status.Phase != want {
					t.Fatalf("%s, want %s\n%s", now.Status.Phase, want, describe(p))
				}
				if want == degraded && now.Status.Reason != c.reason {
					t.Fatalf("reason %q, want %s", now.Status.Reason, c.reason)
				}
				if len(p.Contracts) == 1 && p.Contracts[0].StatusOnly != (want != active) {
					t.Fatalf("status only: %v", p.Contracts[0].StatusOnly)
				}
				wantOnlyKeeps(t, b)
				if want != degraded {
					return
				}
				b.Tick(time.Minute).Deliver()
				if p = b.Round(); b.Contracts("vision/train")[0].Status.Phase != active || !p.Contracts[0].StatusOnly {
					t.Fatalf("does not recover:\n%s", describe(p))
				}
			})
		}
	}
}

func inPhase(t *testing.T, phase v1alpha1.Phase) *Builder {
	t.Helper()
	b := paris().Intent("vision/train", Wants(4, "H100"))
	b.Round()
	name := b.Contracts("vision/train")[0].Metadata.Name
	switch phase {
	case v1alpha1.PhasePeering:
		b.Tick(time.Second).Observe(name, v1alpha1.Observation{Consumer: v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Present}}).Round()
	case v1alpha1.PhaseActive:
		b.Tick(time.Second).Deliver().Round()
	}
	if got := b.Contracts("vision/train")[0].Status.Phase; got != phase {
		t.Fatalf("%s, want %s", got, phase)
	}
	return b
}

// A provider reports again: the phase is what it was, though the consumer
// reports nothing.
func TestSilenceEndsUnseen(t *testing.T) {
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseReserved, v1alpha1.PhasePeering, v1alpha1.PhaseActive} {
		b := inPhase(t, phase)
		b.W.Observed = planner.Observations{}
		b.Tick(time.Minute).Offer("paris/h100", Heard(model.Silent)).Round()
		if got := b.Contracts("vision/train")[0].Status; got.Phase != v1alpha1.PhaseDegraded || got.Reason != ledger.DegradedProviderSilent {
			t.Fatalf("%+v", got)
		}
		wantOnlyKeeps(t, b)
		b.Tick(time.Minute).Offer("paris/h100", Heard(model.Fresh)).Round()
		if got := b.Contracts("vision/train")[0].Status.Phase; got != phase {
			t.Fatalf("%s, want %s", got, phase)
		}
	}
}

// A daemon that has just started knows nothing of a provider's flavors: what is
// Degraded for missing reports stays so until the provider reports.
func TestSilenceOutlastsARestart(t *testing.T) {
	b := inPhase(t, v1alpha1.PhaseActive)
	name := b.Contracts("vision/train")[0].Metadata.Name
	seen := b.W.Observed.Of(name)
	silent := seen
	silent.ProviderSeen, silent.ProviderHolds = false, nil
	for _, st := range []struct {
		offer model.Freshness
		said  v1alpha1.Observation
		want  v1alpha1.Phase
	}{
		{model.Silent, silent, v1alpha1.PhaseDegraded},
		{model.Withdrawn, silent, v1alpha1.PhaseDegraded},
		{model.Withdrawn, seen, v1alpha1.PhaseActive},
	} {
		b.Tick(time.Minute).Observe(name, st.said).Offer("paris/h100", Heard(st.offer)).Round()
		if got := b.Contracts("vision/train")[0].Status; got.Phase != st.want {
			t.Fatalf("the offer is %s: %s (%s), want %s", st.offer, got.Phase, got.Reason, st.want)
		}
		wantOnlyKeeps(t, b)
	}
}

// What one contract gives back in a round is not another's excess, where no agent
// has to report that it is back.
func TestExcessIsSettledLast(t *testing.T) {
	b := paris().Offer("paris/h100", func(o *model.Offer) { o.Static = true }).Intent("vision/low", Wants(4, "H100")).Intent("vision/train", Wants(4, "H100"), Priority(5))
	b.Round()
	b.Tick(time.Second).Deliver().Round()
	b.Tick(time.Second).Offer("paris/h100", Capacity("gpu=6")).Intent("vision/train", Wants(2, "H100"))
	want(t, b, planner.Resize, lifecycle.CodeChanged)
	if got := b.Contracts("vision/low")[0].Status.Phase; got != v1alpha1.PhaseActive {
		t.Fatal(got)
	}
}

func TestWeights(t *testing.T) {
	near := Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.LatencyMs = Ptr(int64(5)) })
	reliable := Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.Reliability = Money("0.999") })
	world := func() *Builder {
		return New().Consumer("rome").Provider("big", "cheap", "near", "sure").Tenant("vision", "rome").
			Offer("big/f", Cards("nvidia-h100", 64, "80Gi"), Costs("5")).
			Offer("cheap/f", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
			Offer("near/f", Cards("nvidia-h100", 8, "80Gi"), Costs("5"), near).
			Offer("sure/f", Cards("nvidia-h100", 8, "80Gi"), Costs("5"), reliable)
	}
	for want, change := range map[string]func(*v1alpha1.IntentSpec){
		"big":   func(s *v1alpha1.IntentSpec) { s.Weights = &v1alpha1.Weights{Resources: 1} },
		"cheap": func(s *v1alpha1.IntentSpec) { s.Objective = v1alpha1.Cost },
		"near":  func(s *v1alpha1.IntentSpec) { s.Weights = &v1alpha1.Weights{Latency: 2} },
		"sure":  func(s *v1alpha1.IntentSpec) { s.Weights = &v1alpha1.Weights{Reliability: 0.5} },
	} {
		b := world().Intent("vision/train", Wants(4, "H100"), With(change))
		if d := Of(b.Plan(), "vision/train"); d.Contracts[0].Provider != want || d.Contracts[0].RunnerUp == nil {
			t.Errorf("%s: %+v", want, d.Contracts)
		}
	}
	b := world().Fleet(func(f *v1alpha1.FleetSpec) { f.Weights = &v1alpha1.Weights{Cost: 1} }).Intent("vision/train", Wants(4, "H100"))
	if d := Of(b.Plan(), "vision/train"); d.Contracts[0].Provider != "cheap" || d.Contracts[0].Score != 0.8 {
		t.Errorf("%+v", d.Contracts)
	}
	// Nothing distinguishes them: the first by reference.
	b = New().Consumer("rome").Provider("b", "a").Tenant("vision", "rome").
		Offer("b/f", Cards("nvidia-h100", 8, "80Gi")).Offer("a/f", Cards("nvidia-h100", 8, "80Gi")).Intent("vision/train", Wants(4, "H100"))
	if d := Of(b.Plan(), "vision/train"); d.Contracts[0].Provider != "a" {
		t.Errorf("%+v", d.Contracts)
	}
}

// A Tenant that was Drained and is Active again has nothing of the contract, and
// its slice still shows Accepted: not Active before the provider holds it.
func TestNotHeldAfterARefusal(t *testing.T) {
	b := running(t)
	c := b.Contracts("vision/train")[0]
	name := c.Metadata.Name
	b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Refused = map[string]string{name: "the Tenant is Drained"} })).Drop("lyon/h100")
	is := func(phase v1alpha1.Phase, code string) {
		t.Helper()
		p := b.Tick(time.Minute).Round()
		if c := b.Contracts("vision/train")[0]; c.Status.Phase != phase || c.Status.Reason != code {
			t.Fatalf("%s %q, want %s %s: %s", c.Status.Phase, c.Status.Reason, phase, code, describe(p))
		}
	}
	is(v1alpha1.PhaseDegraded, ledger.DegradedRefused)
	b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Refused = nil }))
	o := Ready(c)
	o.ProviderHolds = nil
	b.Observe(name, o)
	is(v1alpha1.PhaseDegraded, ledger.DegradedNotHeld)
	is(v1alpha1.PhaseDegraded, ledger.DegradedNotHeld)
	b.Observe(name, Ready(c))
	is(v1alpha1.PhaseActive, "")
}
