package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// A provider that takes something back more often than it may sells nothing meanwhile,
// to any replica, and is not silent.
func TestTakenBackBeyondTheBudgetIsNotSold(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	n, left := uint64(1), int64(64)
	must(t, a.report("paris", 7, n, flavors("paris", left, 0)))
	r.tick(12)
	var busy *store.BusyError
	for !errors.As(a.report("paris", 7, n+1, flavors("paris", left-1, 0)), &busy) {
		if n, left = n+1, left-1; left == 0 {
			t.Fatal("nothing is limited")
		}
		r.tick(1)
	}
	for second := range 60 {
		r.tick(1)
		n++
		err := a.report("paris", 7, n, flavors("paris", 0, 0))
		if err == nil {
			r.tick(2)
			if got := b.gpus("paris"); got != 0 || second == 0 {
				t.Errorf("taken after %d s, and b sells %d", second, got)
			}
			return
		}
		for _, one := range r.all {
			if got := one.state("paris"); got == model.Fresh && (one == a || second > 12) || got == model.Silent || got == model.Lost {
				t.Errorf("second %d: to %s paris, which takes back %d GPUs, is %s", second, one.name, left, got)
			}
		}
	}
	t.Error("it is not taken within a minute")
}

// before is an API whose next write of a list is preceded by something.
type before struct {
	store.API
	run func()
}

func (a *before) PutAdvertisement(ctx context.Context, ad *marketcrd.Advertisement) (*marketcrd.Advertisement, error) {
	if run := a.run; run != nil {
		a.run = nil
		run()
	}
	return a.API.PutAdvertisement(ctx, ad)
}

// Parts of a list that another replica was faster with are deleted, as those of a replica
// that died in between are.
func TestPartsThatNoObjectNamesAreDeleted(t *testing.T) {
	r := newReplicas(t, "a", "b")
	b := r.all[1]
	api := r.objects.API()
	late := &before{API: api}
	c := &replica{name: "c", api: api, market: market.New(market.Options{Now: clockOf(r)})}
	c.store = store.NewShared(store.Options{API: late, Market: c.market, Replica: "c", Life: "1", Now: clockOf(r)})
	c.store.Follow(t.Context(), api.Follow)
	r.all = append(r.all, c)
	r.tick(2)
	must(t, b.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(61)
	rnd := rand.New(rand.NewPCG(1, 1))
	n := uint64(1)
	for i := range 10 {
		n += 2
		late.run = func() { must(t, b.report("paris", 7, n, flavors("paris", int64(10+i), 0))) }
		large := flavors("paris", 8, 0)
		for k := range 1500 {
			f := large.Flavors[0]
			f.Metadata.Name = fmt.Sprintf("f%04d", k)
			f.Spec.Labels = map[string]string{"noise": noise(rnd, 600)}
			large.Flavors = append(large.Flavors, f)
		}
		if err := c.report("paris", 7, n-1, large); err == nil {
			t.Fatal("what came too late is taken")
		}
		r.tick(11)
	}
	orphan := &marketcrd.AdvertisementPart{}
	orphan.Name = "paris.orphan"
	must(t, r.objects.API().PutPart(t.Context(), orphan)) // of one that died
	if len(r.objects.PartNames()) < 2 {
		t.Fatal("there are no parts")
	}
	for range 80 {
		r.now = r.now.Add(time.Minute)
		r.tick(1)
		for _, one := range r.all {
			one.store.Tend(t.Context())
		}
	}
	if left := r.objects.PartNames(); len(left) > 0 {
		t.Errorf("%d parts are left: %.200q", len(left), left)
	}
}

// What is seen in clusters and what providers offer have one budget of writes, which
// replicas share, and one of bytes.
func TestObservationsCount(t *testing.T) {
	r := newReplicas(t, "a", "b")
	r.tick(21)
	rnd := rand.New(rand.NewPCG(1, 1))
	taken := 0
	for i := range 600 {
		one := r.all[i%2]
		o := wire.Observed{
			Generation: wire.Generation{Epoch: uint64(r.now.UnixNano()), N: 1}.String(), Root: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			Contracts: map[string]v1alpha1.ConsumerObservation{"c": {Reachable: true, Message: noise(rnd, 400)}},
		}
		var busy *store.BusyError
		switch err := one.store.Observe(t.Context(), fmt.Sprintf("c%04d", i), o); {
		case err == nil:
			taken++
		case !errors.As(err, &busy):
			t.Fatal(err)
		}
	}
	if taken != 200 {
		t.Errorf("%d words are taken in one instant; want 200", taken)
	}
	var busy *store.BusyError
	if err := r.all[0].report("paris", 7, 1, flavors("paris", 8, 0)); !errors.As(err, &busy) {
		t.Errorf("a list beyond that: %v", err)
	}
}
