package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// An agent's reports reach two replicas at once, and the watch of the one that is late
// lags: it reads the object itself to refuse the older report, and its market has what it
// read, because the watch tells nothing new afterwards.
func TestReread_TellsTheMarket(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.settle()
	r.tick(11)
	must(t, b.report("paris", 7, 3, flavors("paris", 4, 0)))
	var stale *market.StaleEpochError
	if err := a.report("paris", 7, 2, flavors("paris", 2, 0)); !errors.As(err, &stale) || stale.Last.N != 3 {
		t.Fatalf("the older report is answered %v", err)
	}
	must(t, a.store.Newest(t.Context(), []string{"paris"}))
	if got := a.gpus("paris"); got != 4 {
		t.Errorf("after Newest the market has %d GPUs, want 4", got)
	}
	r.settle()
	if got := a.gpus("paris"); got != 4 || a.state("paris") != model.Fresh {
		t.Errorf("after the watch the market has %d GPUs, %s; want 4, %s", got, a.state("paris"), model.Fresh)
	}
}

// Of what is seen in a cluster, too.
func TestReread_TellsWhatIsSeen(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	word := func(generation, root string) wire.Observed {
		return wire.Observed{Generation: generation, Root: root}
	}
	root := func(c string) (out string) {
		for range 40 {
			out += c
		}
		return out
	}
	if err := b.store.Observe(t.Context(), "rome", word("7.3", root("b"))); err != nil {
		t.Fatal(err)
	}
	var stale *market.StaleEpochError
	if err := a.store.Observe(t.Context(), "rome", word("7.2", root("a"))); !errors.As(err, &stale) || stale.Last.N != 3 {
		t.Fatalf("the older word: %v", err)
	}
	r.settle()
	if len(a.seen) != 1 || a.seen[0] != "rome bb" {
		t.Errorf("the replica was told %q, want [rome bb]", a.seen)
	}
}

// raced is an API that does something before the answer to a write comes.
type raced struct {
	store.API
	before func()
}

func (a *raced) PutAdvertisement(ctx context.Context, ad *marketcrd.Advertisement) (*marketcrd.Advertisement, error) {
	out, err := a.API.PutAdvertisement(ctx, ad)
	if before := a.before; before != nil {
		a.before = nil
		before()
	}
	return out, err
}

// An agent that sends two lists under one generation, each to another replica, gives
// both the one that was written last, however late the answer to the first write is.
func TestSameGeneration_LastWriteStandsEverywhere(t *testing.T) {
	r := newReplicas(t, "a", "b")
	b := r.all[1]
	api := r.objects.API()
	late := &raced{API: api}
	c := &replica{name: "c", api: api, market: market.New(market.Options{Now: func() time.Time { return r.now }})}
	c.store = store.NewShared(store.Options{API: late, Market: c.market, Replica: "c", Life: "1", Now: func() time.Time { return r.now }})
	c.store.Follow(t.Context(), api.Follow)
	r.all = append(r.all, c)
	r.tick(2)
	late.before = func() {
		api.Deliver(0)
		r.settle()
		must(t, b.report("paris", 7, 1, flavors("paris", 2, 0)))
		api.Deliver(0)
	}
	must(t, c.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.settle()
	for _, one := range r.all {
		if got := one.gpus("paris"); got != 2 {
			t.Errorf("%s has %d GPUs, want 2", one.name, got)
		}
	}
}
