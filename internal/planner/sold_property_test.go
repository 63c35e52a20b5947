package planner_test

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// checkSold adds up what is held of the nodes behind a contract.
func checkSold(w planner.World, c *v1alpha1.Contract, after *ledger.Ledger, fail func(string, ...any)) {
	var at *v1alpha1.Flavor
	for i := range w.Offers {
		if w.Offers[i].Flavor.Ref() == c.Spec.Provider+"/"+c.Spec.Flavor {
			at = w.Offers[i].Flavor
			if w.Offers[i].State != model.Fresh {
				fail("%s is sold by a provider that is not heard", c.Metadata.Name)
			}
		}
	}
	if at == nil {
		fail("%s is on no flavor", c.Metadata.Name)
	}
	own, shared, onCard := map[string]int64{}, map[string]int64{}, map[v1alpha1.CardUnits]int64{}
	for x := range after.Contracts() {
		if !x.Status.Phase.Held() || x.Spec.Provider != c.Spec.Provider {
			continue
		}
		var f *v1alpha1.Flavor
		for i := range w.Offers {
			if w.Offers[i].Flavor.Ref() == x.Spec.Provider+"/"+x.Spec.Flavor {
				f = w.Offers[i].Flavor
			}
		}
		for name, n := range x.Spec.Resources {
			if strings.HasSuffix(name, "/gpu") {
				name = v1alpha1.GPU
			}
			if f == at {
				own[name] += n.Int64()
			}
			if f == at && name == v1alpha1.GPU && x.Spec.GPUs != nil {
				for _, u := range x.Spec.GPUs.Cards {
					onCard[v1alpha1.CardUnits{Node: u.Node, Card: u.Card}] += u.Units
				}
			}
			if f != nil && f.Spec.Pool != "" && f.Spec.Pool == at.Spec.Pool {
				shared[name] += n.Int64()
			}
		}
	}
	checkCards(c, at, onCard, fail)
	for name, n := range own {
		limit, listed := at.Spec.Capacity[name]
		if !listed && (name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage) {
			continue
		}
		if could := at.Spec.ScalableTo[name]; limit.Less(could) {
			limit = could
		}
		if n > limit.Int64() {
			fail("%s is oversold: %d of %d %s", at.Ref(), n, limit.Int64(), name)
		}
		if name != v1alpha1.GPU && shared[name] > limit.Int64() {
			fail("the pool of %s is oversold: %d of %d %s", at.Ref(), shared[name], limit.Int64(), name)
		}
	}
}

// checkCards asks whether a contract's units lie on cards that there are, none
// of them overfull, and a share on one.
func checkCards(c *v1alpha1.Contract, at *v1alpha1.Flavor, onCard map[v1alpha1.CardUnits]int64, fail func(string, ...any)) {
	g := c.Spec.GPUs
	if g == nil || g.UnitsPerGPU <= 1 {
		return
	}
	sum := int64(0)
	for _, u := range g.Cards {
		sum += u.Units
		if n := onCard[v1alpha1.CardUnits{Node: u.Node, Card: u.Card}]; n > int64(g.UnitsPerGPU) || int64(u.Card)*int64(g.UnitsPerGPU) >= at.Spec.Capacity[v1alpha1.GPU].Int64() {
			fail("%s: card %d has %d of %d units", at.Ref(), u.Card, n, g.UnitsPerGPU)
		}
	}
	if sum != g.Count {
		fail("%s: %d of %d units lie on cards", c.Metadata.Name, sum, g.Count)
	}
}
