package planner_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// newSharing is a story in which, half of the time, intents state which domain their
// replicas share.
func newSharing(t *rapid.T) *story {
	s := newStory(t)
	if s.shares = rapid.Bool().Draw(t, "shares"); !s.shares {
		return s
	}
	for i := range s.W.Offers {
		o := *s.W.Offers[i]
		anyDomains(t, &o)
		s.W.Offers[i] = &o
	}
	if rapid.IntRange(0, 2).Draw(t, "fleet default") == 0 {
		s.Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.Within = drawWithin(t) })
	}
	if rapid.Bool().Draw(t, "gangs move whole") {
		s.Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.MoveAfter = v1alpha1.Duration{Duration: time.Hour} })
	}
	return s
}

// No plan of a story in which intents share domains places one outside of its domain, or
// breaks what else plans promise, whatever the order of the world's lists; and none is
// followed by another that changes something.
func TestSharedStories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		seed := rapid.Int64().Draw(t, "shuffle")
		for range rapid.IntRange(1, 12).Draw(t, "length") {
			said := s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600, 200 * 3600}).Draw(t, "seconds")) * time.Second)
			before := s.W
			p := s.Plan()
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("after %q: %s\n%s", said, fmt.Sprintf(format, args...), describe(p))
			}
			if other := planner.Decide(shuffled(before, seed)); !reflect.DeepEqual(p, other) {
				fail("another order gives another plan:\n%s", describe(other))
			}
			s.Apply(p)
			checkPlan(before, p, s.W.Ledger, fail)
			if again := s.planAgain(p); again.Changes() {
				fail("planning again changes:\n%s", describe(again))
			}
		}
	})
}

// anyDomains places an offer in domains, now and then in none.
func anyDomains(t *rapid.T, o *model.Offer) {
	o.Location.Zone = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "zone")
	o.Location.Network = rapid.SampledFrom([]string{"", "ib", "roce"}).Draw(t, "network")
	f := *o.Flavor
	if f.Spec.Labels = nil; rapid.Bool().Draw(t, "in a rack") {
		f.Spec.Labels = map[string]string{"rack": rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")}
	}
	o.Flavor = &f
}

func drawWithin(t *rapid.T) *v1alpha1.Within {
	w := &v1alpha1.Within{
		By:     rapid.SampledFrom(v1alpha1.Domains).Draw(t, "within.by"),
		Policy: rapid.SampledFrom([]v1alpha1.WithinPolicy{"", v1alpha1.WithinRequired, v1alpha1.WithinPreferred, v1alpha1.WithinNone}).Draw(t, "policy"),
	}
	if w.By == "label" {
		w.Label = rapid.SampledFrom([]string{"rack", "disk"}).Draw(t, "label")
	}
	return w
}

// anyWithin draws the domain that an intent's replicas share. What contradicts it is
// taken out, as readers of files refuse it.
func anyWithin(t *rapid.T, in *model.Intent) {
	if rapid.IntRange(0, 2).Draw(t, "gang written") == 0 {
		in.Spec.Gang, in.Spec.MinReplicas = Ptr(true), 0
	}
	if rapid.Bool().Draw(t, "within") {
		w := drawWithin(t)
		in.Spec.Placement.Within = w
		in.Spec.Placement.Spread = slices.DeleteFunc(in.Spec.Placement.Spread, func(s v1alpha1.Spread) bool {
			return w.Policy != v1alpha1.WithinNone && s.Contradicts(w.By, w.Label)
		})
	}
}

// mustShare is what an intent's replicas must share, as the documents state it.
func mustShare(f *v1alpha1.FleetSpec, s *v1alpha1.IntentSpec) (by, label string, must bool) {
	w := s.Placement.Within
	if w == nil {
		if s.Gang == nil || !*s.Gang || len(s.Placement.Spread) > 0 || s.Split != nil {
			return "", "", false
		}
		if w = f.Defaults.Within; w == nil {
			w = &v1alpha1.Within{By: "provider"}
		}
	}
	return w.By, w.Label, w.Policy == "" || w.Policy == v1alpha1.WithinRequired
}

// checkWithin asks of every contract that a plan places, for an intent whose replicas
// must share a domain, whether it is where the others are.
func checkWithin(w planner.World, p *planner.Plan, after *ledger.Ledger, fail func(string, ...any)) {
	at := func(c *v1alpha1.Contract, by, label string) string {
		location, labels := v1alpha1.Location{}, map[string]string(nil)
		cluster := w.Clusters[c.Spec.Provider]
		if cluster != nil {
			location = cluster.Spec.Location
		}
		for _, o := range w.Offers {
			if o.Flavor.Ref() == c.Spec.Provider+"/"+c.Spec.Flavor {
				location, labels = o.Location, o.Flavor.Spec.Labels
			}
		}
		switch by {
		case "provider":
			return c.Spec.Provider
		case "region":
			return location.Region
		case "zone":
			if location.Zone == "" {
				return ""
			}
			return location.Region + "/" + location.Zone
		case "network":
			return location.Network
		}
		if v, ok := labels[label]; ok {
			return "rack " + v + " of " + c.Spec.Provider
		}
		if cluster == nil {
			return ""
		}
		return cluster.Spec.Labels[label]
	}
	for _, in := range w.Intents {
		by, label, must := mustShare(w.Fleet, &in.Spec)
		if !must {
			continue
		}
		before, all := map[string]bool{}, map[string]bool{}
		var placed []*v1alpha1.Contract
		list := after.ByIntent(in.Metadata.Namespace, in.Metadata.Name)
		goes := func(c *v1alpha1.Contract) bool { // once the new one of its replica works
			return slices.ContainsFunc(list, func(n *v1alpha1.Contract) bool {
				return w.Ledger.Contract(n.Metadata.Name) == nil && n.Spec.Intent.Replica == c.Spec.Intent.Replica && n.Spec.Intent.Part == c.Spec.Intent.Part && n != c
			})
		}
		for _, c := range list {
			if !c.Status.Phase.Charged() || goes(c) {
				continue
			}
			d := at(c, by, label)
			if all[d] = true; w.Ledger.Contract(c.Metadata.Name) == nil {
				placed = append(placed, c)
				if d == "" {
					fail("%s is placed outside of any %s", c.Metadata.Name, by)
				}
			} else {
				before[d] = true
			}
		}
		delete(before, "") // what was outside of all counts for none
		delete(all, "")
		if len(placed) == 0 || len(all) <= 1 {
			continue
		}
		for _, c := range placed {
			if len(before) <= 1 || !before[at(c, by, label)] {
				fail("%s is placed in %s %s, and its intent is in %s", c.Metadata.Name, by, at(c, by, label), fmt.Sprint(slices.Sorted(maps.Keys(all))))
			}
		}
	}
}
