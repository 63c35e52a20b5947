package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

const rackKey = "topology.kubernetes.io/rack"

// racks gives an offer's nodes a rack each, "-" for none.
func racks(names ...string) func(*model.Offer) {
	return func(o *model.Offer) {
		for i := range o.Flavor.Spec.Nodes.Groups {
			if names[i] != "-" {
				o.Flavor.Spec.Nodes.Groups[i].Labels = map[string]string{rackKey: names[i]}
			}
		}
	}
}

func inRack(policy v1alpha1.WithinPolicy) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Placement.Within = &v1alpha1.Within{By: "label", Label: rackKey, Policy: policy}
	})
}

// times makes an intent a gang of replicas.
func times(n int32) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Replicas, s.Gang = v1alpha1.Replicas{Min: n, Max: n}, Ptr(true)
	})
}

// racked is a world of one flavor on two racks of two nodes.
func racked() *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", onNodes(8, 8, 8, 8), racks("a", "b", "a", "b"))
}

// rackOf are the racks in which an intent's contracts are.
func rackOf(b *Builder, name string) string {
	racks := map[string]string{}
	for i := range b.W.Offers {
		for _, n := range ledger.NodesOf(b.W.Offers[i].Flavor) {
			racks[b.W.Offers[i].Flavor.Metadata.Namespace+n.Name] = n.Labels[rackKey]
		}
	}
	seen := map[string]bool{}
	for _, c := range b.Contracts(name) {
		for _, n := range c.Spec.Nodes {
			if c.Status.Phase.Charged() {
				seen[racks[c.Spec.Provider+n.Node]] = true
			}
		}
	}
	var out []string
	for rack := range seen {
		out = append(out, rack)
	}
	return strings.Join(out, "+")
}

// The pieces of a gang lie on nodes of one rack, each replica's and those of one that is
// bigger than a node; what no rack holds is not split over two.
func TestPlaces_AGangIsInOneRack(t *testing.T) {
	for name, tt := range map[string]struct {
		replicas, gpus int32
		policy         v1alpha1.WithinPolicy
		want           string // racks; "" queued
	}{
		"replicas":             {3, 4, "Required", "a"},
		"one bigger than node": {1, 16, "Required", "a"},
		"all of a rack":        {4, 4, "Required", "a"},
		"more than a rack":     {5, 4, "Required", ""},
		"one, more than rack":  {1, 20, "Required", ""},
		"preferred":            {5, 4, "Preferred", "any"},
	} {
		b := racked().Intent("vision/train", Wants(tt.gpus), times(tt.replicas), inRack(tt.policy))
		p := b.Round()
		d, got := Of(p, "vision/train"), rackOf(b, "vision/train")
		switch {
		case tt.want == "" && (d.Code != "WithinUnsatisfied" && d.Code != "NothingFits" && d.Code != "GangIncomplete" || got != ""):
			t.Errorf("%s: %s %s in %q\n%s", name, d.Action, d.Code, got, describe(p))
		case tt.want == "any" && len(b.Contracts("vision/train")) != int(tt.replicas), tt.want == "a" && got != "a":
			t.Errorf("%s: in %q, want %q\n%s", name, got, tt.want, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
}

// The rack is chosen by the whole gang: that with the best first node may be too small.
func TestPlaces_ByTheWholeGang(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", onNodes(4, 8, 2, 8), racks("a", "b", "a", "b")).
		Intent("vision/train", Wants(4), times(3), inRack("Required"))
	p := b.Round()
	if got := rackOf(b, "vision/train"); got != "b" {
		t.Errorf("in %q\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
	b.Intent("vision/more", Wants(4), times(2), inRack("Required"))
	p = b.Round()
	if d := Of(p, "vision/more"); rackOf(b, "vision/more") != "" || d.Rejected["placement.within"]+d.Rejected["within"] == 0 && !strings.Contains(d.Reason, "room for") {
		t.Errorf("%q, %v: %s", rackOf(b, "vision/more"), d.Rejected, d.Reason)
	}
}

// A part of a gang on a node that is gone goes to another node of its rack, or waits.
func TestPlaces_RemapsInItsRack(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", onNodes(8, 8, 8, 8, 8), racks("a", "b", "a", "b", "a")).
		Intent("vision/train", Wants(6), times(2), inRack("Required"))
	b = settled(b)
	if got := rackOf(b, "vision/train"); got != "a" {
		t.Fatalf("in %q", got)
	}
	b.Offer("paris/h100", withoutNode).Round()
	b.Tick(5 * time.Minute)
	p := b.Round()
	if got := rackOf(b, "vision/train"); got != "a" || len(b.Contracts("vision/train")) != 2 {
		t.Errorf("in %q\n%s", got, describe(p))
	}
	if got := nodesText(p, "vision/train"); got != "4:6" {
		t.Errorf("the one that moves lies on %q\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
	// No other node of the rack has room: it waits, although the other rack has.
	b = racked().Intent("vision/train", Wants(6), times(2), inRack("Required"))
	b = settled(b)
	b.Offer("paris/h100", withoutNode).Round()
	b.Tick(5 * time.Minute)
	p = b.Round()
	if got := nodesText(p, "vision/train"); got != "" || len(b.Contracts("vision/train")) != 2 {
		t.Errorf("it moves to %q\n%s", got, describe(p))
	}
}

// Bookings know racks of flavors alone: what must be in one of single nodes is not booked.
func TestPlaces_Bookings(t *testing.T) {
	b := racked().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{Book: true} }).
		Intent("vision/now", Wants(4))
	b = settled(b)
	b.Intent("vision/train", Wants(8), times(2), inRack("Required"), With(func(s *v1alpha1.IntentSpec) {
		s.Schedule = v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(Start.Add(24 * time.Hour)), Duration: v1alpha1.Duration{Duration: time.Hour}, Book: true}
	}))
	p := b.Round()
	if d := Of(p, "vision/train"); d.Code != "BookingNotAllowed" || bookedOn(b, "train") != "" {
		t.Errorf("%s %s on %q", d.Action, d.Code, bookedOn(b, "train"))
	}
}

// A gang of which an edit asks for more, and for one rack, is in one rack afterwards: where it
// was if that has room for all, else all of it goes to another, in one commit; where no rack
// holds all of it the edit waits, and says so.
func TestPlaces_AnEditKeepsAGangInOneRack(t *testing.T) {
	for name, tt := range map[string]struct {
		free          []int64 // of a, b, a
		before, after int32   // replicas of two GPUs
		want          string  // racks
		stay, queued  bool
	}{
		"its rack has room":          {[]int64{2, 4, 2}, 1, 2, "a", true, false},
		"only another has":           {[]int64{2, 4, 0}, 1, 2, "b", false, false},
		"none has":                   {[]int64{2, 2, 0}, 1, 2, "a", true, true},
		"it was in two, one has":     {[]int64{2, 4, 0}, 2, 2, "b", false, false},
		"it was in two, neither has": {[]int64{2, 2, 0}, 2, 2, "any", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
				Offer("paris/h100", onNodes(tt.free[:1]...), racks("a")).Intent("vision/train", Wants(2), times(1), perPod(1, ""))
			b = settled(b)
			b.Offer("paris/h100", onNodes(tt.free...), racks("a", "b", "a"))
			if tt.before > 1 {
				b.Offer("paris/h100", onNodes(tt.free[0], 2, 0), racks("a", "b", "a")).Intent("vision/train", Wants(2), times(tt.before), perPod(1, ""))
				b = settled(b)
				b.Offer("paris/h100", onNodes(tt.free...), racks("a", "b", "a"))
			}
			first := b.Contracts("vision/train")[0].Metadata.Name
			if got := len(b.Contracts("vision/train")); got != int(tt.before) {
				t.Fatalf("%d contracts before, want %d", got, tt.before)
			}
			b.Intent("vision/train", Wants(2), times(tt.after), perPod(1, ""), inRack("Required"))
			if name == "only another has" { // what rules 23 decided comes out again
				b.W.Rules = 23
				if d := Of(b.Plan(), "vision/train"); d.Code != lifecycle.CodeInvariant {
					t.Errorf("rules 23: %s %s", d.Action, d.Code)
				}
				b.W.Rules = 0
			}
			p := b.Round()
			d := Of(p, "vision/train")
			if queued := d.Action == planner.Queued; d.Code == lifecycle.CodeInvariant || queued != tt.queued || queued && !strings.Contains(d.Reason, "too little is free") && !strings.Contains(d.Reason, "has too few GPUs") {
				t.Errorf("%s %s %q, want it to wait: %t", d.Action, d.Code, d.Reason, tt.queued)
			}
			if got := rackOf(b, "vision/train"); got != tt.want && tt.want != "any" {
				t.Errorf("in %q, want %q\n%s", got, tt.want, describe(p))
			}
			if c := b.W.Ledger.Contract(first); tt.stay != (c != nil && c.Status.Phase.Charged()) {
				t.Errorf("%s stays: %t, want %t", first, !tt.stay, tt.stay)
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// In any story no gang that must be in one rack is in two.
func TestPlaces_NoGangInTwoRacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New().Consumer("rome").Tenant("vision", "rome")
		for _, provider := range []string{"paris", "lyon"} {
			var free []int64
			var on []string
			for range rapid.IntRange(1, 5).Draw(t, "nodes") {
				free = append(free, rapid.SampledFrom([]int64{0, 2, 4, 8}).Draw(t, "free"))
				on = append(on, rapid.SampledFrom([]string{"a", "b", "c", "-"}).Draw(t, "rack"))
			}
			b.Provider(provider).Offer(provider+"/h100", onNodes(free...), racks(on...))
		}
		intents := rapid.IntRange(1, 4).Draw(t, "intents")
		for i := range intents {
			changes := []func(*model.Intent){Wants(rapid.SampledFrom([]int32{1, 2, 4, 8, 12}).Draw(t, "gpus")), times(rapid.Int32Range(1, 4).Draw(t, "replicas")), inRack("Required")}
			if rapid.Bool().Draw(t, "single pods") {
				changes = append(changes, perPod(1, ""))
			}
			if rapid.Bool().Draw(t, "by cost") {
				changes = append(changes, With(func(s *v1alpha1.IntentSpec) { s.Objective = "cost" }))
			}
			b.Intent(fmt.Sprintf("vision/i%d", i), changes...)
		}
		check := func(when string) {
			p := b.Round()
			for i := range intents {
				name := fmt.Sprintf("vision/i%d", i)
				providers := map[string]bool{}
				for _, c := range b.Contracts(name) {
					providers[c.Spec.Provider] = c.Status.Phase.Charged() || providers[c.Spec.Provider]
				}
				if got := rackOf(b, name); strings.Contains(got, "+") || len(b.Contracts(name)) > 0 && got == "" || len(providers) > 1 {
					t.Fatalf("%s: %s in racks %q of %v\n%s", when, name, got, providers, describe(p))
				}
			}
			if again := b.Plan(); again.Changes() {
				t.Fatalf("%s: planning again changes:\n%s", when, describe(again))
			}
		}
		check("at first")
		b.Tick(time.Minute).Deliver()
		if len(b.W.Offers[0].Flavor.Spec.Nodes.Groups) > 1 {
			b.Offer(b.W.Offers[0].Flavor.Ref(), withoutNode)
		}
		b.Round()
		b.Tick(5 * time.Minute)
		b.Round()
	})
}
