package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// corner is a fleet of two providers, of which only a is in both regions: a replica
// on its cheap offer in the south leaves no place for another by region and provider.
func corner() *Builder {
	h100 := Cards("nvidia-h100", 8, "80Gi")
	return New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b").
		Offer("a/north", h100, Costs("3"), In("north", "n")).
		Offer("a/south", h100, Costs("1"), In("south", "s")).
		Offer("b/south", h100, Costs("2"), In("south", "s"))
}

// A gang that fits only if its first replica does not take the best place fits.
func TestGangSpreadByTwoKeys(t *testing.T) {
	b := corner().Intent("vision/train", Wants(8), Times(2), cheap, spreads("region", 1, 2), spreads("provider", 1, 2))
	p := b.Round()
	d := Of(p, "vision/train")
	if places(b, "vision/train") != "a b" || !strings.Contains(d.Reason, "chosen so that all replicas find a place within placement.spread") {
		t.Fatalf("%s\n%s", places(b, "vision/train"), describe(p))
	}
	for _, c := range b.Contracts("vision/train") {
		if c.Spec.Provider == "a" && c.Spec.Flavor != "north" {
			t.Fatalf("%s stands on %s", c.Metadata.Name, c.Spec.Flavor)
		}
	}
	wantOnlyKeeps(t, b)
}

// One for which there is no such place is shown the first that was tried.
func TestGangSpreadNowhere(t *testing.T) {
	b := corner().Drop("b/south").Intent("vision/train", Wants(8), Times(2), cheap, spreads("region", 1, 2), spreads("provider", 1, 2))
	d := Of(b.Round(), "vision/train")
	if d.Code != lifecycle.CodeGang || !strings.Contains(d.Reason, "1 of 2 replicas fit") || len(b.Contracts("vision/train")) > 0 {
		t.Fatalf("%+v", d)
	}
	wantOnlyKeeps(t, b)
}

// Flavors that are cut from the same nodes have room for fewer together than each
// of them has: then others are looked for.
func TestGangSpreadOverPools(t *testing.T) {
	pooled := Spec(func(f *v1alpha1.FlavorSpec) {
		f.Pool = "nodes"
		f.Capacity = Amounts("gpu=8 cpu=8 memory=64Gi pods=20 ephemeral-storage=50Gi")
	})
	h100 := Cards("nvidia-h100", 8, "80Gi")
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b", "c").
		Offer("a/north", h100, Costs("2"), In("north", "n"), pooled).
		Offer("a/south", h100, Costs("1"), In("south", "s"), pooled).
		Offer("b/south", h100, Costs("4"), In("south", "s")).
		Offer("c/west", h100, Costs("9"), In("west", "w"), Capacity("gpu=7"))
	b.Intent("vision/train", Wants(8), Times(2), cheap, spreads("region", 1, 2), spreads("provider", 2, 0))
	p := b.Round()
	if places(b, "vision/train") != "a b" {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
}

// grid is how many replicas fit in each region of each provider.
type grid [][]int

// holds reports whether n replicas find places one after the other, tried out in
// every order.
func (g grid) holds(n int, rules [2]v1alpha1.Spread) bool {
	var rows, columns []int
	offered := [2]map[int]bool{{}, {}}
	for i := range g {
		rows = append(rows, 0)
		for k := range g[i] {
			if i == 0 {
				columns = append(columns, 0)
			}
			if g[i][k] > 0 {
				offered[0][i], offered[1][k] = true, true
			}
		}
	}
	allows := func(rule v1alpha1.Spread, used []int, offered map[int]bool, at int) bool {
		least, inUse := n, 0
		for d := range offered {
			least = min(least, used[d])
			if used[d] > 0 {
				inUse++
			}
		}
		if inUse < int(rule.MinDomains) && used[at] > 0 {
			return false
		}
		return used[at]+1-least <= int(rule.MaxSkew)
	}
	dead := map[string]bool{}
	var place func(left int) bool
	place = func(left int) bool {
		state := fmt.Sprint(g)
		if left == 0 || dead[state] {
			return left == 0
		}
		for i := range g {
			for k := range g[i] {
				if g[i][k] == 0 || !allows(rules[0], rows, offered[0], i) || !allows(rules[1], columns, offered[1], k) {
					continue
				}
				g[i][k], rows[i], columns[k] = g[i][k]-1, rows[i]+1, columns[k]+1
				found := place(left - 1)
				g[i][k], rows[i], columns[k] = g[i][k]+1, rows[i]-1, columns[k]-1
				if found {
					return true
				}
			}
		}
		dead[state] = true
		return false
	}
	return place(n)
}

// TestGangIsSeatedIfItCan: on every small grid of providers and regions a gang is
// placed exactly if there is an order in which its replicas fit.
func TestGangIsSeatedIfItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := make(grid, rapid.IntRange(1, 4).Draw(t, "providers"))
		regions, n := rapid.IntRange(1, 4).Draw(t, "regions"), rapid.IntRange(1, 6).Draw(t, "replicas")
		b := New().Consumer("rome").Tenant("vision", "rome").Provider("none").Offer("none/t4", Cards("nvidia-t4", 8, "16Gi"))
		for i := range g {
			g[i] = make([]int, regions)
			b.Provider(fmt.Sprint("p", i))
			for k := range g[i] {
				if g[i][k] = rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5}).Draw(t, "room"); g[i][k] > 0 {
					b.Offer(fmt.Sprintf("p%d/f%d", i, k), Cards("nvidia-h100", 2*g[i][k]+1, "80Gi"), Capacity("cpu=900 memory=9000Gi"),
						Costs(fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "price"))), In(fmt.Sprint("r", k), ""))
				}
			}
		}
		var rules [2]v1alpha1.Spread
		for i, by := range []string{"provider", "region"} {
			rules[i] = v1alpha1.Spread{By: by, MaxSkew: int32(rapid.IntRange(1, 2).Draw(t, "maxSkew")), MinDomains: int32(rapid.IntRange(0, 3).Draw(t, "minDomains"))}
		}
		b.Intent("vision/train", Wants(2, "H100"), Times(int32(n)), cheap, With(func(s *v1alpha1.IntentSpec) { s.Placement.Spread = rules[:] }))
		p := b.Round()
		if got, want := len(b.Contracts("vision/train")) == n, g.holds(n, rules); got != want {
			t.Fatalf("%d replicas on %v by %+v: placed %v, want %v\n%s", n, g, rules, got, want, describe(p))
		}
		if again := b.Plan(); again.Changes() {
			t.Fatalf("planning again changes:\n%s", describe(again))
		}
	})
}
