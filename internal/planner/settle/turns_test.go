package settle

import (
	"testing"
	"time"
)

var turnsBegan = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC).Unix()

// longest is for how many minutes one of n waits at the most, of those that first says.
func longest(n, minutes int, first func(minute int64) int) (most int) {
	last := make([]int, n)
	for k := 1; k < minutes; k++ {
		at := first(turnsBegan + int64(60*k))
		most = max(most, k-last[at])
		last[at] = k
	}
	for _, at := range last {
		most = max(most, minutes-at)
	}
	return most
}

// Each of n has its turn in a time that grows with n, whenever one begins to wait.
func TestFirstOf_IsEachInABoundedTime(t *testing.T) {
	for n := 1; n <= 300; n += 1 + n/20 {
		for _, step := range []uint64{golden, silver} {
			if most := longest(n, 20*n, func(minute int64) int { return firstOf(minute, n, step) }); 10*most > 22*n+10 {
				t.Errorf("of %d one waits for %d minutes", n, most)
			}
		}
	}
}

// So has each of n intents of each of some tenants, of which one is the first of all.
func TestFirstOf_IsEachOfEachTenant(t *testing.T) {
	for tenants := 1; tenants <= 12; tenants++ {
		for n := 1; n <= 40; n++ {
			most := longest(tenants*n, 40*tenants*n, func(minute int64) int { return firstOf(minute, tenants, golden)*n + firstOf(minute, n, silver) })
			if most > 5*tenants*n {
				t.Errorf("of %d of each of %d tenants one waits for %d minutes", n, tenants, most)
			}
		}
	}
}
