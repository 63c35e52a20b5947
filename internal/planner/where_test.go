package planner_test

import (
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// many are more annotations than the worst case of a condition supposes.
func many() map[string]string {
	out := map[string]string{}
	for i := range 1000 {
		out[fmt.Sprint("k", i)] = ""
	}
	return out
}

// TestWhereFailsTheCandidateAndNeverTheRound: real expressions, on two offers of
// which one has what they ask for, and next to an intent without any.
func TestWhereFailsTheCandidateAndNeverTheRound(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		on     string // where the intent ends, "" when nowhere
		failed int    // offers rejected by it, when it waits
	}{
		"true of one":                         {`flavor.gpu.interconnect == "nvlink"`, "paris/h100 Reserved", 0},
		"an absent GPU field is empty":        {`flavor.gpu.interconnect == ""`, "lyon/cpu Reserved", 0},
		"an absent GPU counts nothing":        {`flavor.gpu.count == 0 && flavor.gpu.memoryGi == 0`, "lyon/cpu Reserved", 0},
		"an error on one: a label it lacks":   {`flavor.labels["tier"] == "gold"`, "paris/h100 Reserved", 0},
		"an error on all: a label none has":   {`flavor.labels["nobody"] == "x"`, "", 2},
		"too costly for any":                  {`intent.annotations.all(k, k != "x" && intent.annotations[k] == "")`, "", 2},
		"division by nothing is an error":     {`10 / (flavor.gpu.count - flavor.gpu.count) > 1`, "", 2},
		"the intent's own figures":            {`intent.resources.cpu <= 8.0 && flavor.name == "cpu"`, "lyon/cpu Reserved", 0},
		"quantities by Kubernetes' functions": {`flavor.gpu.memory.isGreaterThan(quantity("40Gi"))`, "paris/h100 Reserved", 0},
	} {
		t.Run(name, func(t *testing.T) {
			where, err := celenv.Compile(c.source)
			if err != nil {
				t.Fatal(err)
			}
			world := func() *Builder {
				return New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
					Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2"), Spec(func(f *v1alpha1.FlavorSpec) {
						f.GPU.Interconnect, f.Labels = "nvlink", map[string]string{"tier": "gold"}
					})).
					Offer("lyon/cpu", Costs("1", "cpu=0.5")).
					Intent("vision/other", Wants(0))
			}
			b := world().Intent("vision/train", Wants(0), func(in *model.Intent) { in.Where, in.Metadata.Annotations = where, many() })
			p := b.Round()
			if got := on(b); got != c.on {
				t.Fatalf("on %q, want %q\n%s", got, c.on, describe(p))
			}
			if d := Of(p, "vision/train"); d.Rejected[match.ReqWhere] != c.failed {
				t.Fatalf("%v\n%s", d.Rejected, describe(p))
			}
			if Of(p, "vision/other").Action != planner.Place {
				t.Fatalf("another intent is not placed:\n%s", describe(p))
			}
			wantOnlyKeeps(t, b)

			// As a policy of the fleet it is named in the refusal.
			b = world().Intent("vision/train", Wants(0), func(in *model.Intent) { in.Metadata.Annotations = many() })
			b.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "house", Match: v1alpha1.PolicyMatch{Tenants: []string{"vision"}}}, Predicate: where}}
			p = b.Round()
			if got := on(b); got != c.on || Of(p, "vision/train").Rejected[match.ReqPolicy+"house"] != c.failed {
				t.Fatalf("by policy on %q\n%s", got, describe(p))
			}
		})
	}
}
