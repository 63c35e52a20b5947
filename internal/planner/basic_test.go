package planner_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// paris is a world with one tenant, one consumer and one provider of 8 H100.
func paris() *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2.85", "cpu=0.02 memoryGi=0.003"))
}

// wantOnlyKeeps fails unless planning again changes nothing.
func wantOnlyKeeps(t *testing.T, b *Builder) {
	t.Helper()
	p := b.Plan()
	if p.Changes() {
		t.Fatalf("planning again changes:\n%s", describe(p))
	}
}

func TestLife(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "H100"))
	p := b.Round()
	d := Of(p, "vision/train")
	if d.Action != planner.Place || len(d.Contracts) != 1 {
		t.Fatalf("not placed:\n%s", describe(p))
	}
	c := b.Contracts("vision/train")[0]
	if got := c.Spec.Resources.Canonical(); got["nvidia.com/gpu"] != "4" || got["cpu"] != "8" || got["memory"] != "64Gi" || got["pods"] != "20" || got["ephemeral-storage"] != "50Gi" {
		t.Fatalf("resources %v", got)
	}
	// 4 × 2.85 + 8 × 0.02 + 64 × 0.003
	if got := c.Spec.Price.Hourly.String(); got != "11.752" {
		t.Fatalf("hourly %s", got)
	}
	if c.Status.Phase != v1alpha1.PhaseReserved {
		t.Fatalf("phase %s", c.Status.Phase)
	}
	wantOnlyKeeps(t, b)

	b.Tick(10e9).Deliver().Round()
	if c = b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseActive {
		t.Fatalf("phase %s", c.Status.Phase)
	}
	wantOnlyKeeps(t, b)

	p = b.Tick(10e9).Remove("vision/train").Round()
	if Of(p, "vision/train").Action != planner.Release {
		t.Fatalf("not released:\n%s", describe(p))
	}
	if c = b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Target != v1alpha1.PhaseReleased {
		t.Fatalf("%+v", c.Status)
	}
	wantOnlyKeeps(t, b)

	b.Observe(c.Metadata.Name, v1alpha1.Observation{ProviderSeen: true, ProviderHolds: c.Spec.Resources, Consumer: v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}})
	b.Tick(10e9).Round()
	if c = b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Drained.IsZero() {
		t.Fatalf("%+v", c.Status)
	}
	b.Tick(10e9).Deliver().Round()
	if held := b.Contracts("vision/train"); len(held) != 0 {
		t.Fatalf("%+v", held[0].Status)
	}
	b.Deliver()
	wantOnlyKeeps(t, b)

	b.Tick(200 * 3600e9)
	p = b.Round()
	if b.W.Ledger.Len() != 0 || b.W.Ledger.State("vision", "train") != nil || len(p.Spends) != 1 {
		t.Fatalf("not retired:\n%s", describe(p))
	}
	wantOnlyKeeps(t, b)
}
