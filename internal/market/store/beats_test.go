package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// stop ends a replica as planned: it says so.
func (r *replicas) stop(name string) {
	r.t.Helper()
	at := slices.IndexFunc(r.all, func(one *replica) bool { return one.name == name })
	r.all[at].store.Withdraw(r.t.Context())
	r.all = slices.Delete(r.all, at, at+1)
}

// live checks whom a replica takes for live.
func (r *replicas) live(of *replica, want ...string) {
	r.t.Helper()
	if got, cut := of.store.Live(); cut || !slices.Equal(got, want) {
		r.t.Errorf("to %s live are %v, cut off %t; want %v", of.name, got, cut, want)
	}
}

// A replica that stops as planned is gone for the others within a second, and what it
// heard last is not lost.
func TestWithdraw(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	a, b := r.all[0], r.all[1]
	must(t, b.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(25)
	r.live(a, "a", "b", "c")
	must(t, b.report("paris", 7, 1, nil)) // the next beat would tell
	heard := r.now
	r.stop("b")
	r.tick(1)
	r.live(a, "a", "c")
	if a.store.Beats("b") {
		t.Error("who has withdrawn beats")
	}
	if got := a.market.Heard("paris"); got.Before(heard.Add(-45 * time.Second)) {
		t.Errorf("paris was heard at %s; b heard it at %s", got, heard)
	}
	if got := a.state("paris"); got != model.Fresh {
		t.Errorf("paris is %s", got)
	}
	// It comes back under its name.
	r.start("b", "2")
	r.tick(25)
	r.live(a, "a", "b", "c")
}

// A replica that cannot say that it stops keeps nobody waiting: it stops.
func TestWithdraw_WithoutTheStore(t *testing.T) {
	r := newReplicas(t, "a", "b")
	r.tick(25)
	r.all[1].api.Out(true)
	r.stop("b")
	r.tick(12)
	r.live(r.all[0], "a")
}

// One that misses a beat is got ready to be replaced, and is back with its next beat;
// it counts as gone (heartbeats of 30 s) only later.
func TestBeats(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	r.tick(30)
	for range 30 { // the gap between two beats is none
		r.tick(1)
		r.live(a, "a", "b")
	}
	b.api.Fault = func(string) (fails, made bool) { return true, false }
	missed := 0
	for range 29 {
		r.tick(1)
		if !a.store.Beats("b") {
			missed++
		}
	}
	if missed < 15 || missed > 28 {
		t.Errorf("it was missed for %d of 29 seconds without a beat", missed)
	}
	r.live(a, "a")
	if got := a.store.Status().Replicas; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("replicas that live are %v", got)
	}
	b.api.Fault = nil
	r.tick(2)
	r.live(a, "a", "b")
}

// Who cannot listen misses nobody, and after it could not the others have time for a
// beat.
func TestBeats_AfterAnOutage(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a := r.all[0]
	r.tick(30)
	a.api.Out(true)
	for range 9 {
		r.tick(1)
		r.live(a, "a", "b")
	}
	a.api.Out(false)
	a.api.Skip() // what was written meanwhile is not told: the next beat is
	for range 12 {
		r.tick(1)
		r.live(a, "a", "b")
	}
}

// Pushes that one replica sends and that the ledger does not show are counted by the
// others once each, also over its restart, and none of what was before they knew it.
func TestPushesOfOthersAreCounted(t *testing.T) {
	r := newReplicas(t)
	sent, counted := int64(3), 0
	start := func(name, life string) {
		api := r.objects.API()
		one := &replica{name: name, api: api, market: market.New(market.Options{Now: func() time.Time { return r.now }})}
		one.store = store.NewShared(store.Options{
			API: api, Market: one.market, Replica: name, Life: life, Now: func() time.Time { return r.now },
			Pushes: func() int64 {
				if name == "b" {
					return sent
				}
				return 0
			},
			Pushed: func(n int) { counted += n * map[string]int{"a": 1}[name] },
		})
		one.store.Follow(t.Context(), api.Follow)
		r.all = append(r.all, one)
	}
	start("b", "1")
	r.tick(12)
	start("a", "1")
	r.tick(25)
	if counted != 0 {
		t.Errorf("%d pushes of before are counted", counted)
	}
	sent += 2
	r.tick(25)
	if counted != 2 {
		t.Errorf("2 pushes are counted as %d", counted)
	}
	r.all = r.all[1:]
	sent = 1 // of another life
	start("b", "2")
	r.tick(25)
	if counted != 3 {
		t.Errorf("after a restart with one push more %d are counted; want 3", counted)
	}
}

// What the fleet repo's server asks of one replica the others hear with its next beat: for as
// long as it says then, and no replica for longer after a start. What one only heard it does
// not say itself.
func TestForgeLimitsAreHeard(t *testing.T) {
	r := newReplicas(t)
	until := map[string]time.Time{} // by replica: what it was told by the server
	heard := map[string]time.Time{} // until when others are held
	left := func(at time.Time) time.Duration { return max(at.Sub(r.now), 0) }
	start := func(name, life string) {
		api := r.objects.API()
		one := &replica{name: name, api: api, market: market.New(market.Options{Now: func() time.Time { return r.now }})}
		one.store = store.NewShared(store.Options{
			API: api, Market: one.market, Replica: name, Life: life, Now: func() time.Time { return r.now },
			Holds: func() (reads, pushes time.Duration) { return left(until[name]), left(until[name+" pushes"]) },
			Held: func(reads, pushes time.Duration) {
				for key, d := range map[string]time.Duration{name: reads, name + " pushes": pushes} {
					if at := r.now.Add(d); d > 0 && at.After(heard[key]) {
						heard[key] = at
					}
				}
			},
		})
		one.store.Follow(t.Context(), api.Follow)
		r.all = append(r.all, one)
	}
	start("a", "1")
	start("b", "1")
	r.tick(25)
	if len(heard) > 0 {
		t.Fatalf("held by nobody: %v", heard)
	}
	told := r.now.Add(5 * time.Minute)
	until["a"], until["a pushes"] = told, told.Add(-time.Minute)
	r.tick(60)
	near := func(who string, want time.Time) {
		t.Helper()
		if off := heard[who].Sub(want); off < 0 || off > 3*time.Second {
			t.Errorf("%s is held for %s too long, want none and at most 3s", who, off)
		}
	}
	near("b", told)
	near("b pushes", told.Add(-time.Minute))
	if _, echoed := heard["a"]; echoed {
		t.Errorf("a hears its own limit of b: %v", heard)
	}

	// One that starts hears it too, and one that starts again of itself; both by its age.
	r.all = nil
	until = map[string]time.Time{}
	r.now = r.now.Add(time.Minute)
	start("c", "1")
	start("a", "2")
	r.tick(25)
	near("c", told)
	near("a", told)
	near("a pushes", told.Add(-time.Minute))
	r.all = nil
	clear(heard)
	r.now = r.now.Add(time.Hour)
	start("d", "1")
	r.tick(25)
	if len(heard) > 0 {
		t.Errorf("held by what was over an hour ago: %v", heard)
	}
}
