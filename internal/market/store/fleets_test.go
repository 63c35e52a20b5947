package store_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// of starts a replica of a fleet.
func (r *replicas) of(fleet, name string) *replica {
	one := &replica{name: name, api: r.objects.API(), market: market.New(market.Options{Now: clockOf(r)})}
	one.store = store.NewShared(store.Options{API: one.api, Market: one.market, Replica: name, Life: "1", Fleet: fleet, Now: clockOf(r)})
	one.store.Follow(r.t.Context(), one.api.Follow)
	r.all = append(r.all, one)
	return one
}

// Daemons of two fleets in one namespace say so, both, and decide by nothing of it; what a
// fleet that is no more there had left behind troubles nobody.
func TestTwoFleetsInOneNamespace(t *testing.T) {
	r := newReplicas(t)
	a := r.of("aaaaaaaaaa", "a-0")
	r.tick(21)
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	b := r.of("bbbbbbbbbb", "b-0")
	r.tick(40)
	for one, other := range map[*replica]string{a: "replica b-0 of fleet bbbbbbbbbb", b: "replica a-0 of fleet aaaaaaaaaa"} {
		if got := one.store.Status().Cut; !strings.Contains(got, other) || !strings.Contains(got, "namespace of their own") {
			t.Errorf("%s says %q", one.name, got)
		}
		if live, _ := one.store.Live(); len(live) != 1 {
			t.Errorf("live to %s are %v", one.name, live)
		}
	}
	r.all = r.all[:1] // b is taken away; its Heartbeat stays
	r.tick(60)
	if got := a.store.Status().Cut; got != "" {
		t.Errorf("after the other has gone: %s", got)
	}
	c := r.of("cccccccccc", "c-0") // sees b's old Heartbeat, and a's new ones
	r.all = []*replica{c}
	r.tick(60)
	if got := c.store.Status().Cut; got != "" {
		t.Errorf("old Heartbeats trouble a new fleet: %s", got)
	}
}
