package daemon

import (
	"math/rand/v2"
	"testing"
)

func TestExcess(t *testing.T) {
	for name, test := range map[string]struct {
		own    int
		others map[string]int
		want   int
	}{
		"alone":                      {1000, nil, 0},
		"fair":                       {100, map[string]int{"b": 100, "c": 90}, 0},
		"a few more":                 {140, map[string]int{"b": 100, "c": 90}, 0},
		"few altogether":             {20, map[string]int{"b": 0, "c": 0}, 0},
		"half as many again, little": {60, map[string]int{"b": 20}, 0},
		"far more":                   {900, map[string]int{"b": 0, "c": 0}, 45},
		"far fewer":                  {0, map[string]int{"b": 900}, 0},
		"one at a time":              {19, map[string]int{"b": 0, "c": 0, "d": 0, "e": 0, "f": 0, "g": 0, "h": 0, "i": 0, "j": 0, "k": 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excess(test.own, test.others); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// By a balancer that sends each connection to any replica all come near their share within
// minutes, nobody gives away a twentieth at a time, and then nothing moves.
func TestExcess_Settles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	have := map[string]int{"a": 9000, "b": 0, "c": 0}
	quiet := 0
	for range 60 { // ten minutes
		given := 0
		for _, name := range []string{"a", "b", "c"} {
			others := map[string]int{}
			for other, n := range have {
				if other != name {
					others[other] = n
				}
			}
			n := excess(have[name], others)
			if n > have[name]/20+1 {
				t.Fatalf("%s gives away %d of %d", name, n, have[name])
			}
			have[name] -= n
			given += n
		}
		for range given {
			have[[]string{"a", "b", "c"}[r.IntN(3)]]++
		}
		if quiet++; given > 0 {
			quiet = 0
		}
	}
	if quiet < 10 || have["a"] > 4600 {
		t.Errorf("after ten minutes %v, nothing moved for %d looks", have, quiet)
	}
}
