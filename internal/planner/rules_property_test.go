package planner_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// anyLanguage draws what an intent asks of where its replicas are, of its
// data, and of what is good.
func anyLanguage(t *rapid.T, in *model.Intent) {
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "spreads") {
		spreads(rapid.SampledFrom([]string{"provider", "region"}).Draw(t, "by"), int32(rapid.IntRange(0, 2).Draw(t, "maxSkew")), int32(rapid.IntRange(0, 3).Draw(t, "minDomains")))(in)
	}
	if rapid.IntRange(0, 3).Draw(t, "neighbours") == 0 {
		in.Spec.Placement.Together = []string{fmt.Sprintf("i%d", rapid.IntRange(0, 5).Draw(t, "together"))}
	}
	if rapid.IntRange(0, 3).Draw(t, "strangers") == 0 {
		in.Spec.Placement.Apart = []string{fmt.Sprintf("i%d", rapid.IntRange(0, 5).Draw(t, "apart"))}
	}
	if rapid.IntRange(0, 3).Draw(t, "has data") == 0 {
		data(rapid.SampledFrom([]string{"north", "south"}).Draw(t, "data"), rapid.Int64Range(0, 500).Draw(t, "size"), rapid.Int64Range(0, 9).Draw(t, "egress"))(in)
	}
	if rapid.IntRange(0, 2).Draw(t, "splits") == 0 {
		splits(int32(rapid.IntRange(1, 3).Draw(t, "maxParts")), int32(rapid.IntRange(0, 2).Draw(t, "minGPU")))(in)
	}
	if rapid.IntRange(0, 2).Draw(t, "updates") == 0 {
		updates(int32(rapid.IntRange(0, 2).Draw(t, "maxUnavailable")))(in)
	}
	if rapid.IntRange(0, 3).Draw(t, "sla") == 0 {
		in.Spec.SLA = &v1alpha1.SLA{MaxTimeToActive: v1alpha1.Duration{Duration: 30 * time.Minute}}
	}
	in.Spec.Objective = rapid.SampledFrom([]v1alpha1.Objective{"", "", v1alpha1.Cost, v1alpha1.Performance, v1alpha1.Latency, v1alpha1.Energy}).Draw(t, "objective")
}

// checkRules asks of every contract that a plan places whether it is to
// the others as intents ask, by counts of its own.
func checkRules(w planner.World, p *planner.Plan, after *ledger.Ledger, fail func(string, ...any)) {
	intents := map[string]*model.Intent{}
	for i := range w.Intents {
		intents[w.Intents[i].Metadata.Namespace+"/"+w.Intents[i].Metadata.Name] = w.Intents[i]
	}
	charged := func(tenant, name string) (out []*v1alpha1.Contract) {
		for _, c := range after.ByIntent(tenant, name) {
			if c.Status.Phase.Charged() {
				out = append(out, c)
			}
		}
		return out
	}
	lost := func(c *v1alpha1.Contract) bool {
		return slices.ContainsFunc(w.Offers, func(o *model.Offer) bool {
			return o.State == model.Lost && o.Flavor.Ref() == c.Spec.Provider+"/"+c.Spec.Flavor
		})
	}
	released := map[string]bool{}
	for i := range p.Contracts {
		if c := &p.Contracts[i]; c.Before != nil && (c.After == nil || c.Before.Status.Phase.Charged() && !c.After.Status.Phase.Charged()) {
			released[c.Before.Metadata.Namespace+"/"+c.Before.Spec.Intent.Name] = true
		}
	}
	for i := range p.Contracts {
		c := p.Contracts[i].After
		if p.Contracts[i].Before != nil || c == nil {
			continue
		}
		tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
		in := intents[tenant+"/"+name]
		if in == nil {
			continue // the fleet's own warm slices follow no rules
		}
		for _, other := range w.Intents {
			if other.Metadata.Namespace != tenant || other.Metadata.Name == name {
				continue
			}
			list := charged(tenant, other.Metadata.Name)
			on := slices.ContainsFunc(list, func(x *v1alpha1.Contract) bool { return x.Spec.Provider == c.Spec.Provider })
			if on && (slices.Contains(in.Spec.Placement.Apart, other.Metadata.Name) || slices.Contains(other.Spec.Placement.Apart, name)) {
				fail("%s is placed where %s is", c.Metadata.Name, other.Metadata.Name)
			}
			list = slices.DeleteFunc(list, lost)
			// One that moved away in this very round was met when it still existed;
			// one that was placed after it follows it to one of its providers.
			follows := !slices.ContainsFunc(list, func(x *v1alpha1.Contract) bool {
				return w.Ledger.Contract(x.Metadata.Name) != nil || !slices.ContainsFunc(charged(tenant, name), func(y *v1alpha1.Contract) bool { return y.Spec.Provider == x.Spec.Provider })
			})
			if len(list) > 0 && !on && !follows && slices.Contains(in.Spec.Placement.Together, other.Metadata.Name) && !released[tenant+"/"+other.Metadata.Name] {
				fail("%s is placed where %s is not", c.Metadata.Name, other.Metadata.Name)
			}
		}
		if !released[tenant+"/"+name] {
			checkSpread(w, in, c, charged(tenant, name), fail)
		}
	}
}

// checkSpread counts replicas by domain. The domains that count at the least
// are those in which replicas are.
func checkSpread(w planner.World, in *model.Intent, c *v1alpha1.Contract, live []*v1alpha1.Contract, fail func(string, ...any)) {
	for _, sp := range in.Spec.Placement.Spread {
		at := func(x *v1alpha1.Contract) string {
			if sp.By == "provider" {
				return x.Spec.Provider
			}
			for i := range w.Offers {
				if o := w.Offers[i]; o.Flavor.Ref() == x.Spec.Provider+"/"+x.Spec.Flavor {
					return o.Location.Region
				}
			}
			return ""
		}
		count := map[string]map[int32]bool{}
		for _, x := range live {
			d := at(x)
			if count[d] == nil {
				count[d] = map[int32]bool{}
			}
			count[d][x.Spec.Intent.Replica] = true
		}
		delete(count, "")
		least := len(live)
		for _, set := range count {
			least = min(least, len(set))
		}
		n := len(count[at(c)])
		if n-least > int(max(sp.MaxSkew, 1)) {
			fail("%s is placed in %s, which has %d replicas beside %d elsewhere: %+v", c.Metadata.Name, at(c), n, least, sp)
		}
		if n > 1 && len(count) < int(sp.MinDomains) {
			fail("%s is placed in %s a second time with %d domains in use: %+v", c.Metadata.Name, at(c), len(count), sp)
		}
	}
}

// withoutReplaced are an intent's contracts but those that exist until a newer one
// of the same replica works.
func withoutReplaced(in *model.Intent, live []*v1alpha1.Contract) []*v1alpha1.Contract {
	if most, steps := in.Spec.Update.Steps(); !steps || most > 0 || in.Spec.Split != nil {
		return live
	}
	works := func(c *v1alpha1.Contract) bool { // what is only reserved works as such
		return c.Status.Phase == v1alpha1.PhaseActive || c.Spec.Stage == v1alpha1.StageReserve && c.Status.Phase == v1alpha1.PhaseReserved
	}
	return slices.DeleteFunc(slices.Clone(live), func(c *v1alpha1.Contract) bool {
		return works(c) && slices.ContainsFunc(live, func(x *v1alpha1.Contract) bool {
			return x.Spec.Intent.Replica == c.Spec.Intent.Replica && x.Spec.Intent.Ordinal > c.Spec.Intent.Ordinal && !works(x)
		})
	})
}

// checkParts asks that no replica exists twice, and that the parts of one are
// not more than it or than its intent allows.
func checkParts(in *model.Intent, ref string, live []*v1alpha1.Contract, fail func(string, ...any)) {
	type seat struct{ replica, part int32 }
	seen, units, of, whole := map[seat]bool{}, map[int32]int64{}, map[int32]int64{}, map[int32]bool{}
	for _, c := range withoutReplaced(in, live) {
		i := c.Spec.Intent
		if seen[seat{i.Replica, i.Part}] || whole[i.Replica] || (i.Of == 0 && of[i.Replica] > 0) {
			fail("%s: replica %d stands twice", ref, i.Replica)
		}
		seen[seat{i.Replica, i.Part}], whole[i.Replica] = true, i.Of == 0
		if units[i.Replica] += i.Units; i.Of > 0 {
			of[i.Replica] = i.Of
		}
		if i.Of > 0 && (i.Units <= 0 || i.Units >= i.Of || units[i.Replica] > i.Of) {
			fail("%s: part %d of replica %d is %d of %d", ref, i.Part, i.Replica, i.Units, i.Of)
		}
		if split := in.Spec.Split; i.Of > 0 && i.Digest == in.Digest && (split == nil || i.Part >= split.MaxParts) {
			fail("%s: replica %d has part %d, and may have %+v", ref, i.Replica, i.Part, split)
		}
	}
}
