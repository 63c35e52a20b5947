package stranded

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// One kind alone: what ten of it use, and what is left of a card beside them.
func TestOf_OneKind(t *testing.T) {
	quarter := New(4, []Kind{{Cores: 1000, Units: 1, Often: 1}})
	for name, c := range map[string]struct {
		cores int64
		free  []int64
		want  float64
	}{
		"all is used":                    {64_000, []int64{4, 3, 1}, 0},
		"no cores, no use":               {0, []int64{4, 2}, 1.5},
		"less than one needs":            {999, []int64{4}, 1},
		"a card that is overdrawn":       {64_000, []int64{-2, 4}, 0},
		"nothing idle":                   {64_000, []int64{0, 0}, 0},
		"three times its part of 2 is 1": {2000, []int64{1, 4}, 0},
		"a third of it is not":           {1500, []int64{1, 4}, 0.25},
	} {
		if got := quarter.Of(c.cores, c.free); !near(got, c.want) {
			t.Errorf("%s: %v cards, want %v", name, got, c.want)
		}
	}
	third := New(1000, []Kind{{Units: 320, Often: 1}})
	if got := third.Of(0, []int64{1000}); !near(got, 0.04) {
		t.Errorf("three of 0.32 strand %v, want 0.04", got)
	}
	if got := third.Of(0, []int64{310}); !near(got, 0.31) {
		t.Errorf("%v of 0.31 is stranded, want all", got)
	}
}

// Whoever asks for 0.8 leaves more to those who ask for 0.2 where 0.8 is free already.
func TestOf_PrefersWhatFillsCards(t *testing.T) {
	m := New(10, []Kind{{Units: 8, Often: 0.5}, {Units: 2, Often: 0.5}})
	before := m.Of(0, []int64{10, 8})
	onFull, onRest := m.Of(0, []int64{2, 8})-before, m.Of(0, []int64{10, 0})-before
	if onRest >= onFull {
		t.Errorf("0.8 on a whole card strands %v, where 0.8 is free %v", onFull, onRest)
	}
}

// What is stranded is part of what is idle, whatever is asked for, and what was asked before
// changes nothing.
func TestOf_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom([]int64{1, 4, 7, 100, 1000}).Draw(t, "per")
		kinds := make([]Kind, rapid.IntRange(0, 6).Draw(t, "kinds"))
		for i := range kinds {
			kinds[i] = Kind{Cores: int64(1000 * rapid.IntRange(0, 8).Draw(t, "cores")), Units: rapid.Int64Range(1, per).Draw(t, "units"), Often: 1 / float64(len(kinds)+1)}
		}
		m := New(per, kinds)
		free := rapid.SliceOfN(rapid.Int64Range(-1, per), 1, 8).Draw(t, "free")
		cores := rapid.Int64Range(0, 40_000).Draw(t, "free cores")
		idle := 0.0
		for _, n := range free {
			idle += float64(max(n, 0)) / float64(per)
		}
		got := m.Of(cores, free)
		if got < -1e-9 || got > idle+1e-9 {
			t.Fatalf("%v of %v idle cards are stranded", got, idle)
		}
		if again := New(per, kinds).Of(cores, free); again != got {
			t.Fatalf("%v, asked alone %v", got, again)
		}
	})
}

// The table is what drawing requests comes to.
func TestOf_IsTheMeanOfDraws(t *testing.T) {
	kinds := []Kind{{Units: 81, Often: 0.4}, {Units: 47, Often: 0.3}, {Units: 16, Often: 0.2}} // 0.1 ask for other cards
	const draws = 200_000
	r, sum := rand.New(rand.NewPCG(1, 2)), 0.0
	for range draws {
		left := int64(100)
		for range requests {
			x := r.Float64()
			for _, k := range kinds {
				if x < k.Often {
					if k.Units <= left {
						left -= k.Units
					}
					break
				}
				x -= k.Often
			}
		}
		sum += float64(left) / 100
	}
	if got, want := New(100, kinds).Of(0, []int64{100}), sum/draws; math.Abs(got-want) > 0.003 {
		t.Errorf("%v of a card is stranded, drawn %v", got, want)
	}
}
