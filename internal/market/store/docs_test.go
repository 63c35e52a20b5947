package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The pages of limits and scale, and the quota of the base, have the budgets that are kept.
func TestBudgets_AreThoseOfTheDocs(t *testing.T) {
	mib := func(n float64) string { return fmt.Sprintf("%.4g MiB", n/(1<<20)) }
	list := fmt.Sprintf("%s a minute, %s at once", mib(listBytesPerMinute), mib(listBytesAtOnce))
	observed := fmt.Sprintf("%s a minute, %s at once", mib(seenBytesPerMinute), mib(seenBytesAtOnce))
	all := fmt.Sprintf("%d a second, %d at once", writesPerSecond, writesAtOnce)
	bytes := fmt.Sprintf("%s a second, %s at once", mib(bytesPerSecond), mib(bytesAtOnce))
	const parts = maxStored / maxObject * 5 / 4
	dots := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for file, want := range map[string][]string{
		"docs/limits.md":             {list, observed, all, bytes, mib(maxStored), dots(parts)},
		"docs/scale.md":              {list, observed, all, bytes, mib(maxStored), dots(parts) + " parts"},
		"install/broker/market.yaml": {fmt.Sprintf("advertisementparts.market.fleetbroker.io: %q", fmt.Sprint(parts))},
	} {
		text, err := os.ReadFile("../../../fleet-repo-template/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, figure := range want {
			if !strings.Contains(string(text), figure) {
				t.Errorf("%s does not say %q", file, figure)
			}
		}
	}
}

// What the budgets let etcd hold, as base64 and with ten minutes of what was replaced, leaves
// a quarter of its usual 2 GiB for all else.
func TestBudgets_LeaveRoomInEtcd(t *testing.T) {
	const etcd, history = 2 << 30, 10 * 60
	if held := (maxStored + history*bytesPerSecond + bytesAtOnce) / 3 * 4; held > etcd*3/4 {
		t.Errorf("%d MiB of %d may be held", held>>20, etcd>>20)
	}
	for bytes, want := range map[int]time.Duration{0: soonest, 1000: soonest, 134 << 10: 1046875 * time.Microsecond, 32 << 20: beatEvery} {
		if got := gapAfter(bytes); got != want {
			t.Errorf("after a beat of %d bytes the next one with news comes after %s, want %s", bytes, got, want)
		}
	}
	if listBytesAtOnce < maxPacked || seenBytesAtOnce < maxSeen || listBytesPerMinute < maxPacked*int(time.Minute/smallPace) {
		t.Error("the largest list, changed each minute, or the largest word does not fit")
	}
}

// A store that has more than it may, by writes of several replicas at once, takes what makes it
// no more, so that it can shrink and sells nothing that was taken back.
func TestBudgets_AStoreThatIsFullShrinks(t *testing.T) {
	p, now := newPaces(), time.Unix(1_800_000_000, 0)
	over := int64(maxStored + 1<<20)
	for adds, want := range map[int64]bool{-100: true, 0: true, 1: false} {
		if _, err := p.admitSeen("rome", cost{objects: 1, bytes: 1000, stored: over + adds, adds: adds}, now); (err == nil) != want {
			t.Errorf("what adds %d bytes is answered with %v", adds, err)
		}
	}
	if _, err := p.admitSeen("oslo", cost{objects: 1, bytes: 1000, stored: maxStored, adds: 1000}, now); err != nil {
		t.Errorf("what fits is answered with %v", err)
	}
}
