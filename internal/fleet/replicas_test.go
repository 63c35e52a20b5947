package fleet

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// More replicas than the fleet allows are a mistake of the intent, with what to
// do; a fleet raises the limit by name.
func TestReplicasBeyondTheFleetsLimit(t *testing.T) {
	ctx := &context{tenantName: "vision", tenant: &v1alpha1.Tenant{}, limits: v1alpha1.Limits{}.Filled()}
	in := &v1alpha1.ResourceIntent{}
	in.Spec.Replicas = v1alpha1.Replicas{Min: 2_000_000_000, Max: 2_000_000_000}
	c := &checker{file: "intents/vision/train.yaml"}
	if !ctx.check(c, in) || !strings.Contains(c.diags[0].Message, "2000000000 is more than the 10000 that an intent may have; write fewer, or raise spec.limits.replicas in fleet.yaml") {
		t.Errorf("%+v", c.diags)
	}
	in.Spec.Replicas = v1alpha1.Replicas{Min: 10_001, Max: 10_001}
	ctx.limits.Replicas = 20_000
	if c = (&checker{}); ctx.check(c, in) {
		t.Errorf("%+v", c.diags)
	}
}
