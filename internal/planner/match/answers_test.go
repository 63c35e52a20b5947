package match_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Offers that have in common what a condition looks at share its answer, and each has the
// one that it would have had by itself.
func TestConditions_AnswerAsForEachOffer(t *testing.T) {
	sources := []string{
		`flavor.gpu.memoryGi >= 80`,
		`flavor.gpu.model == "nvidia-h100" && flavor.price.hourly < 7.0`,
		`has(flavor.gpu) && !has(flavor.price)`,
		`flavor.labels["tier"] == "gold"`,
		`"tier" in flavor.labels || flavor.location.region == "north"`,
		`flavor.properties.latencyMs < 5`,
		`flavor.properties.reliability > 0.9 || cluster.name == "p0"`,
		`cluster.labels.exists(k, k == "x") || flavor.capacity["cpu"].isGreaterThan(quantity("1"))`,
		`flavor.name > "f4"`,
		`[cluster].exists(c, c.name == "p0")`,
		`intent.resources.gpu.count > 0 && flavor.price.hourly * 2.0 > 5.0`,
	}
	rapid.Check(t, func(t *rapid.T) {
		w := New().Consumer("rome").Provider("p0", "p1").Tenant("ada", "rome")
		plain := &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("3"), "cpu": v1alpha1.MustDecimal("0.1")}}
		flat := &v1alpha1.Price{Currency: "EUR", Flat: Money("9")}
		for i := range 20 {
			w.Offer(fmt.Sprintf("p%d/f%d", i%2, i/2), alike(t, []*v1alpha1.Price{nil, plain, flat}))
		}
		policy, err := celenv.CompilePolicy(rapid.SampledFrom(sources).Draw(t, "policy"))
		if err != nil {
			t.Fatal(err)
		}
		w.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "rule"}, Predicate: policy}}
		for i := range 4 {
			w.Intent(fmt.Sprintf("ada/i%d", i), choosy(t))
			where, err := celenv.Compile(rapid.SampledFrom(sources).Draw(t, "where"))
			if err != nil {
				t.Fatal(err)
			}
			in := w.W.Intents[i]
			in.Where, in.Spec.Placement.Where = where, where.Source()
		}
		m := matcherOf(t, w.W)
		for _, in := range w.W.Intents {
			s := m.Class(ask(in, match.NoSpendLimits()))
			m.Refresh(s)
			for _, o := range w.W.Offers {
				view := *o.Flavor
				view.Spec.Price, view.Spec.Location = o.Price, o.Location
				cluster := w.W.Clusters[view.Metadata.Namespace]
				meets := func(p model.Predicate) bool {
					ok, err := p.Eval(in.ResourceIntent, &view, cluster)
					return err == nil && ok
				}
				fails := m.FactOf(s, view.Ref())
				if (fails == match.ReqPolicy+"rule") && meets(policy) || fails == match.ReqWhere && meets(in.Where) {
					t.Fatalf("%s fails %s, which it meets: %s, %s", view.Ref(), fails, in.Where.(*celenv.Program).Source(), policy.Source())
				}
				if fails == "" && (!meets(policy) || !meets(in.Where)) {
					t.Fatalf("%s fails nothing, and does not meet %s, %s", view.Ref(), in.Where.(*celenv.Program).Source(), policy.Source())
				}
			}
		}
	})
}
