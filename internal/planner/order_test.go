package planner_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// The order of a batch is the same in each pass: an intent of several replicas has its
// place by all that it waits for, though each of its turns asks for one at a time.
func TestOrder_IsTheSameInEachPass(t *testing.T) {
	loose := func(in *model.Intent) { in.Spec.Gang, in.Spec.MinReplicas = Ptr(false), 1 }
	// x can pay for the expensive offer if it takes one replica, and for the cheap one alone
	// with three; y for the cheap one. Nothing fits before the tenant borrows, one GPU.
	b := paris().Tenant("ada", "rome", quota(0, "gpu=1")).Tenant("zoe", "rome", quota(4, "")).
		Offer("paris/h100", Costs("2")).Offer("paris/other", Cards("nvidia-h100", 8, "80Gi"), Costs("10")).
		Intent("ada/x", Wants(1), Times(3), AtMost("12"), loose).Intent("ada/y", Wants(1), AtMost("3"))
	p := b.Round()
	if got := len(b.Contracts("ada/x")); got != 1 || len(b.Contracts("ada/y")) != 0 {
		t.Errorf("x has %d contracts, y %d; want 1 and 0, as x has more to place\n%s", got, len(b.Contracts("ada/y")), describe(p))
	}
	if !p.Reordered() {
		t.Error("the plan does not note that rules before 11 may have decided otherwise")
	}
}
