package planner_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func TestWithin_PooledIsInNoRackOfNodes(t *testing.T) {
	world := func() *Builder {
		return New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8), Costs("1", "cpu=0.01"), racks("r0", "r1"))
	}
	for replicas := range int32(2) {
		b := world().Intent("vision/cpu", Wants(0), Times(replicas+1), inRack(""))
		p := b.Round()
		if d := Of(p, "vision/cpu"); d.Action != planner.Queued || d.Code == lifecycle.CodeInvariant || !strings.Contains(d.Reason, "only its nodes have label "+rackKey+", and what asks for no accelerator is not kept to nodes") {
			t.Errorf("%d replicas: got %s", replicas+1, describe(p))
		}
		wantOnlyKeeps(t, b)
		// A flavor that is in one rack whole does.
		b.Offer("lyon/cpu", Costs("1", "cpu=0.02"), Spec(func(s *v1alpha1.FlavorSpec) { s.Labels = map[string]string{rackKey: "r7"} }))
		p = b.Round()
		if d := Of(p, "vision/cpu"); d.Action != planner.Place || b.Contracts("vision/cpu")[0].Spec.Provider != "lyon" {
			t.Errorf("%d replicas: got %s", replicas+1, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
	// One that prefers a rack does without.
	b := world().Intent("vision/cpu", Wants(0), Times(2), inRack(v1alpha1.WithinPreferred))
	if p := b.Round(); Of(p, "vision/cpu").Action != planner.Place {
		t.Errorf("preferred: got %s", describe(p))
	}
	wantOnlyKeeps(t, b)
	// Who asks for GPUs has a rack of nodes.
	b = world().Intent("vision/gpu", Wants(4), Times(2), inRack(""))
	if p := b.Round(); Of(p, "vision/gpu").Action != planner.Place {
		t.Errorf("with GPUs: got %s", describe(p))
	}
}
