package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// spreads asks for replicas to be spread.
func spreads(by string, maxSkew, minDomains int32) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Placement.Spread = append(slices.Clip(s.Placement.Spread), v1alpha1.Spread{By: by, MaxSkew: maxSkew, MinDomains: minDomains})
	})
}

func together(names ...string) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = names })
}

func apart(names ...string) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Placement.Apart = names })
}

// cities is a fleet of providers with eight cards each, the first the
// cheapest, in regions "north" and "south" by turns.
func cities(names ...string) *Builder {
	b := New().Consumer("rome").Tenant("vision", "rome")
	for i, name := range names {
		b.Provider(name).Offer(name+"/h100", Cards("nvidia-h100", 8, "80Gi"), Costs(fmt.Sprint(i+1)),
			In([]string{"north", "south"}[i%2], fmt.Sprintf("z%d", i)))
	}
	return b
}

// places is where an intent's charged contracts are, as "a a b".
func places(b *Builder, ref string) string {
	var out []string
	for _, c := range b.Contracts(ref) {
		if c.Status.Phase.Charged() {
			out = append(out, c.Spec.Provider)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name      string
		replicas  int32
		spread    func(*model.Intent)
		want      string
		code, say string
	}{
		{"even over providers", 3, spreads("provider", 1, 0), "a b c", "", ""},
		{"two may be more", 4, spreads("provider", 2, 0), "a a b b", "", ""},
		{"no maxSkew is 1", 6, spreads("provider", 0, 0), "a a b b c c", "", ""},
		{"over regions", 4, spreads("region", 1, 0), "a a b b", "", ""},
		{"at least three", 3, spreads("provider", 5, 3), "a b c", "", ""},
		{"fewer replicas than domains", 2, spreads("provider", 5, 3), "a b", "", ""},
		{"more domains than there are", 4, spreads("provider", 1, 4), "", lifecycle.CodeGang,
			"placement.spread: provider a has 1 replica already, and of at least 4 providers (minDomains) only 3 have any"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := cities("a", "b", "c").Intent("vision/train", Wants(2, "H100"), Times(c.replicas), cheap, c.spread)
			p := b.Round()
			d := Of(p, "vision/train")
			if got := places(b, "vision/train"); got != c.want || d.Code != c.code || !strings.Contains(d.Reason, c.say) {
				t.Fatalf("placed on %q, want %q\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// A domain that is full is one still; one with nothing that could ever be used
// is none; and an offer without the key is refused with its reason.
func TestSpreadDomains(t *testing.T) {
	b := cities("a", "b").Provider("c").Offer("c/t4", Cards("nvidia-t4", 8, "16Gi"), Costs("1"), In("west", "z9"))
	b.Intent("vision/train", Wants(4, "H100"), Times(4), cheap, spreads("region", 1, 0))
	b.Round()
	if got := places(b, "vision/train"); got != "a a b b" {
		t.Fatal(got)
	}
	b.Intent("vision/more", Wants(1, "H100"), cheap, spreads("region", 1, 0)).
		Offer("a/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(12) }))
	b.Intent("vision/more", Times(3))
	d := Of(b.Round(), "vision/more")
	if d.Action != planner.Queued || d.Code != lifecycle.CodeGang || d.Rejected["placement.spread"] != 1 || d.Rejected["capacity.gpu"] != 1 {
		t.Fatalf("%+v", d)
	}
	if !slices.Equal(d.Try, []string{"placement.spread: [{by: region, maxSkew: 3}]  # 3.00 EUR/h"}) || len(d.Near) == 0 || !strings.Contains(d.Near[0], "a/h100 would be replica 2 in region north, where others have 0") {
		t.Fatalf("try %q near %q", d.Try, d.Near)
	}
	// Without a zone.
	b = cities("a").Offer("a/h100", In("north", "")).Intent("vision/train", Wants(1, "H100"), spreads("zone", 1, 0))
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil || e.Offers[0].Requirement != "placement.spread" || e.Offers[0].Detail != "it has no zone" {
		t.Fatalf("%v %+v", err, e.Offers)
	}
}

// More and fewer replicas later keep the spread, whatever moved meanwhile.
func TestSpreadScales(t *testing.T) {
	b := cities("a", "b", "c").Intent("vision/train", Wants(2, "H100"), Times(2), cheap, spreads("provider", 1, 0))
	b.Round()
	b.Tick(time.Minute).Deliver().Intent("vision/train", Times(4)).Round()
	if got := places(b, "vision/train"); got != "a a b c" {
		t.Fatal(got)
	}
	// Replica 0 leaves a: 3 and it are the two that a and another hold.
	b.Tick(time.Minute).Deliver().Intent("vision/train", Times(6)).Round()
	if got := places(b, "vision/train"); got != "a a b b c c" {
		t.Fatal(got)
	}
	for n := int32(5); n > 0; n-- {
		b.Tick(time.Minute).Deliver().Intent("vision/train", Times(n)).Round()
		wantOnlyKeeps(t, b)
		count := map[string]int{}
		for _, at := range strings.Fields(places(b, "vision/train")) {
			count[at]++
		}
		most, least := 0, 9
		for _, at := range []string{"a", "b", "c"} {
			most, least = max(most, count[at]), min(least, count[at])
		}
		if most-least > 1 {
			t.Fatalf("%d replicas stand on %s", n, places(b, "vision/train"))
		}
	}
	// Asked for later, it moves what is together.
	b = cities("a", "b", "c").Intent("vision/train", Wants(2, "H100"), Times(3), cheap)
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := places(b, "vision/train"); got != "a a a" {
		t.Fatal(got)
	}
	b.Intent("vision/train", spreads("provider", 1, 3))
	d := Of(b.Round(), "vision/train")
	if got := places(b, "vision/train"); got != "a b c" || d.Action != planner.Move {
		t.Fatalf("%s %+v", got, d)
	}
	wantOnlyKeeps(t, b)
}

func TestTogether(t *testing.T) {
	// Both wait: the one provider that fits both, though a is the cheaper for each.
	b := cities("a", "b").Offer("a/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("gpu=3") }))
	b.Intent("vision/serve", Wants(4, "H100"), cheap).Intent("vision/train", Wants(4, "H100"), cheap, together("serve"))
	b.Round()
	if places(b, "vision/serve") != "b" || places(b, "vision/train") != "b" {
		t.Fatalf("%q %q", places(b, "vision/serve"), places(b, "vision/train"))
	}
	wantOnlyKeeps(t, b)

	// One exists: the other follows, from whichever side it was stated.
	for _, changes := range [][2]func(*model.Intent){{together("train"), together()}, {together(), together("serve")}} {
		b = cities("a", "b").Intent("vision/serve", Wants(4, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{"a"} }))
		b.Round()
		b.Intent("vision/train", Wants(4, "H100"), cheap, changes[1]).Intent("vision/serve", changes[0])
		b.Round()
		if places(b, "vision/train") != "b" {
			t.Fatalf("%q", places(b, "vision/train"))
		}
		b.Intent("vision/train", Wants(6, "H100"))
		d := Of(b.Round(), "vision/train")
		if d.Action != planner.Queued || d.Code != lifecycle.CodeTogether || !strings.Contains(d.Reason, "placement.together") {
			t.Fatalf("%+v", d)
		}
		wantOnlyKeeps(t, b)
	}
}

// Where no provider fits all, those that name nobody are placed.
func TestTogetherWhereNothingFitsAll(t *testing.T) {
	b := cities("a", "b").Intent("vision/serve", Wants(6, "H100"), cheap).Intent("vision/train", Wants(6, "H100"), cheap, together("serve"))
	p := b.Round()
	if places(b, "vision/serve") != "a" || places(b, "vision/train") != "" {
		t.Fatal(describe(p))
	}
	d := Of(p, "vision/train")
	if d.Code != lifecycle.CodeTogether || !strings.Contains(d.Reason, "serve is on a") {
		t.Fatalf("%+v", d)
	}
	wantOnlyKeeps(t, b)
	// Those that name each other wait both, and show where each would fit.
	b = cities("a", "b").Intent("vision/serve", Wants(6, "H100"), cheap, together("train")).Intent("vision/train", Wants(6, "H100"), cheap, together("serve"))
	p = b.Round()
	d = Of(p, "vision/train")
	if d.Code != lifecycle.CodeTogether || d.Reason != "no provider has room for serve and train together: serve fits on a, b; train fits on a, b" {
		t.Fatalf("%+v", d)
	}
	if d.Rejected["placement.together"] != 2 || places(b, "vision/serve") != "" {
		t.Fatalf("%+v", d)
	}
	wantOnlyKeeps(t, b)
	b.Offer("b/h100", Cards("nvidia-h100", 12, "80Gi")).Round()
	if places(b, "vision/serve") != "b" || places(b, "vision/train") != "b" {
		t.Fatal("a bigger provider takes both")
	}
}

func TestApart(t *testing.T) {
	b := cities("a", "b").Intent("vision/noisy", Wants(2, "H100"), cheap).Intent("vision/train", Wants(2, "H100"), cheap, apart("noisy"))
	b.Round()
	if places(b, "vision/noisy") != "a" || places(b, "vision/train") != "b" {
		t.Fatalf("%q %q", places(b, "vision/noisy"), places(b, "vision/train"))
	}
	wantOnlyKeeps(t, b)
	// It holds for the one that states nothing too.
	b = cities("a").Intent("vision/train", Wants(2, "H100"), cheap, apart("noisy"))
	b.Round()
	b.Intent("vision/noisy", Wants(2, "H100"), cheap)
	d := Of(b.Round(), "vision/noisy")
	if d.Code != lifecycle.CodeApart || !strings.Contains(d.Reason, "train is on a") {
		t.Fatalf("%+v", d)
	}
	e, err := planner.Explain(b.W, "vision", "noisy")
	if err != nil || e.Offers[0].Requirement != "placement.apart" || e.Offers[0].Detail != "train is on a" {
		t.Fatalf("%v %+v", err, e.Offers)
	}
	// Another tenant's intent of that name is nobody's neighbour.
	b.Tenant("audio", "rome").Intent("audio/noisy", Wants(2, "H100"), cheap).Round()
	if places(b, "audio/noisy") != "a" {
		t.Fatal(places(b, "audio/noisy"))
	}
	// Asked for later, the one that asks moves.
	b = cities("a", "b").Intent("vision/noisy", Wants(2, "H100"), cheap).Intent("vision/train", Wants(2, "H100"), cheap)
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Intent("vision/train", apart("noisy"))
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Move || places(b, "vision/train") != "b" {
		t.Fatalf("%+v", d)
	}
	wantOnlyKeeps(t, b)
}
