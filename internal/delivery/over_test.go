package delivery

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

// A cluster that never sends the end of a list is named after minutes: until then there is
// nothing to say.
func TestSynced_WhatIsNeverReadWhole(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	c := &conn{clock: clock, informers: map[kind]cache.SharedIndexInformer{kindNode: cache.NewSharedIndexInformer(nil, nil, 0, nil)}}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, stillReading}, {2 * time.Minute, stillReading}, {2 * time.Minute, "not sent all that is there since 2026-11-20T12:00:00Z"}} {
		clock.SetTime(clock.Now().Add(step.after))
		if ok, why := c.synced(); ok || !strings.Contains(why, step.want) {
			t.Errorf("at %s: synced %t, %q, want %q", clock.Now(), ok, why, step.want)
		}
	}
}

// A cluster of which an object was not kept is not served: it would count as gone.
func TestSynced_WhatIsNotKept(t *testing.T) {
	c := &conn{informers: map[kind]cache.SharedIndexInformer{}}
	if ok, why := c.synced(); !ok {
		t.Fatal(why)
	}
	c.bounds.Objects = 1
	_ = c.bounds.Keep("Node /a", map[string]any{})
	if ok, why := c.synced(); ok || !strings.Contains(why, "keep Node /a") {
		t.Errorf("synced %t, %q", ok, why)
	}
}
