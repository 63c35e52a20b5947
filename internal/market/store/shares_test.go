package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// largeList is a provider's list of about so many KiB, packed, another one by each seed.
func largeList(provider string, kib int, seed uint64) *wire.FlavorReport {
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := flavors(provider, 8, 0)
	for i := range kib * 1024 / 560 { // 1,000 hexadecimal digits take 500 bytes, and a flavor some more
		f := out.Flavors[0]
		f.Metadata.Name = fmt.Sprintf("f%04d", i)
		f.Spec.Labels = map[string]string{"a": noise(rnd, 500), "b": noise(rnd, 500)}
		out.Flavors = append(out.Flavors, f)
	}
	return out
}

// minutes lets a provider report for so many minutes, each second to the next replica, and
// counts how often a report is taken and how often it has to wait.
func (r *replicas) minutes(n int, report func(one *replica, second int) error) (taken, waited int) {
	r.t.Helper()
	for second := range n * 60 {
		r.tick(1)
		var busy *store.BusyError
		var stale *market.StaleEpochError
		switch err := report(r.all[second%len(r.all)], second); {
		case err == nil:
			taken++
		case errors.As(err, &busy):
			waited++
		case !errors.As(err, &stale):
			r.t.Fatal(err)
		}
	}
	return taken, waited
}

// A provider's budget of writes is one, however many replicas its reports reach, whether
// or not their watches have told it.
func TestBudgets_OfAProviderOverAllReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		gpus func(second int) int64
		most int
	}{
		"it only grows":     {func(second int) int64 { return int64(8 + second) }, 61},
		"it takes back too": {func(second int) int64 { return int64(64 - second%2) }, 126},
	} {
		for to, names := range map[string][]string{"to one": {"a"}, "to one of three": {"a", "b", "c"}, "to each of three": {"a", "b", "c"}} {
			t.Run(name+", "+to, func(t *testing.T) {
				r := newReplicas(t, names...)
				r.tick(21)
				must(t, r.all[0].report("paris", 7, 1, flavors("paris", 8, 0)))
				r.minutes(10, func(one *replica, second int) error {
					n, list := uint64(2+3*second), flavors("paris", test.gpus(second), 0)
					if to == "to each of three" { // at one instant: no watch has told of the others' writes
						_ = r.all[1].report("paris", 7, n, list)
						_ = r.all[2].report("paris", 7, n+1, list)
					}
					return one.report("paris", 7, n+2, list)
				})
				if got := r.objects.Versions("paris"); got > test.most {
					t.Errorf("%d writes in ten minutes, want at most %d", got, test.most)
				}
				for _, one := range r.all {
					if got := one.state("paris"); got == model.Silent || got == model.Lost {
						t.Errorf("to %s paris is %s", one.name, got)
					}
				}
			})
		}
	}
}

// So is a cluster's, for what its agent sees.
func TestBudgets_OfAClusterOverAllReplicas(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	r.tick(21)
	taken, _ := r.minutes(10, func(one *replica, second int) error {
		return one.store.Observe(t.Context(), "rome", wire.Observed{Generation: fmt.Sprintf("5.%d", second+1), Root: fmt.Sprintf("%040x", second)})
	})
	if taken > 127 {
		t.Errorf("%d words are taken in ten minutes, want at most one each 5 s and six", taken)
	}
}

// What one provider's lists add to the store is bounded, with parts of writes that others
// were faster with, over all replicas; one with the largest list, changed each minute, waits
// for nothing.
func TestBudgets_OfBytes(t *testing.T) {
	lists := [2]*wire.FlavorReport{largeList("paris", 900, 1), largeList("paris", 900, 2)}
	lists[1].Flavors[0].Spec.Capacity = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(4), v1alpha1.CPU: v1alpha1.AmountOf(64_000)}
	r := newReplicas(t, "a", "b", "c")
	r.tick(21)
	r.minutes(3, func(one *replica, second int) error {
		if second%10 > 0 { // the port lets not much more through
			return nil
		}
		return one.report("paris", 7, uint64(2+second), lists[second/10%2])
	})
	got := r.objects.Bytes("paris")
	if most := int64(4<<20 + 3*(5<<18) + 1<<20); got > most || r.objects.Made() == 0 {
		t.Errorf("%d KiB in 3 minutes in %d parts, want at most %d KiB", got>>10, r.objects.Made(), most>>10)
	}

	r = newReplicas(t, "a", "b", "c")
	r.tick(21)
	for minute := range 6 {
		if err := r.all[minute%3].report("paris", 7, uint64(1+minute), lists[minute%2]); err != nil {
			t.Errorf("minute %d: %v", minute, err)
		}
		r.tick(60)
	}
	if got := r.objects.Versions("paris"); got != 6 {
		t.Errorf("%d writes of a list that changes each minute, want 6", got)
	}
}

// What is seen in a cluster has a budget of bytes too.
func TestBudgets_OfBytesSeen(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	r.tick(21)
	rnd := rand.New(rand.NewPCG(1, 1))
	r.minutes(3, func(one *replica, second int) error {
		if second%5 > 0 {
			return nil
		}
		o := wire.Observed{Generation: fmt.Sprintf("5.%d", second+1), Root: strings.Repeat("ab", 20), Contracts: map[string]v1alpha1.ConsumerObservation{}}
		for i := range 120 {
			o.Contracts[fmt.Sprintf("c%03d", i)] = v1alpha1.ConsumerObservation{Reachable: true, Message: noise(rnd, 4000)}
		}
		return one.store.Observe(t.Context(), "rome", o)
	})
	if got, most := r.objects.Bytes("rome"), int64(6*256<<10+3<<20+256<<10); got > most || got == 0 {
		t.Errorf("%d KiB in 3 minutes, want at most %d KiB", got>>10, most>>10)
	}
}

// All providers together have a budget of bytes, which replicas share. Where large lists
// have spent it, 10,000 ordinary providers of which a tenth changes each 30 s are not held up.
func TestBudgets_OfBytesOfAll(t *testing.T) {
	r := newReplicas(t, "a", "b")
	r.tick(21)
	of := func(list *wire.FlavorReport, provider string) *wire.FlavorReport {
		list.Flavors = slices.Clone(list.Flavors)
		for k := range list.Flavors {
			list.Flavors[k].Metadata.Namespace = provider
		}
		return list
	}
	list, total, busy := largeList("p", 900, 3), int64(0), 0
	for i := range 42 {
		provider := fmt.Sprintf("large%02d", i)
		var no *store.BusyError
		switch err := r.all[i%2].report(provider, 7, 1, of(list, provider)); {
		case errors.As(err, &no):
			busy++
		case err != nil:
			t.Fatal(err)
		}
		total += r.objects.Bytes(provider)
	}
	if total > 32<<20 || total < 24<<20 || busy == 0 {
		t.Errorf("%d MiB are taken in one instant, want 32 at most and not much less; %d wait", total>>20, busy)
	}
	ordinary := largeList("p", 8, 4)
	for second := range 15 {
		r.tick(1)
		for i := range 34 {
			provider := fmt.Sprintf("p%04d", second*34+i)
			if err := r.all[i%2].report(provider, 7, 1, of(ordinary, provider)); err != nil {
				t.Fatalf("after %d s, %d: %v", second, i, err)
			}
		}
	}
}

// A replica that another one is faster than writes no parts: their head would lose.
func TestParts_NotForAHeadThatIsAnother(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(15)
	must(t, a.report("paris", 7, 3, flavors("paris", 16, 0))) // b is not told
	var stale *market.StaleEpochError
	if err := b.report("paris", 7, 2, largeList("paris", 900, 1)); !errors.As(err, &stale) {
		t.Errorf("got %v, want that a newer list is known", err)
	}
	if n := r.objects.Made(); n != 0 {
		t.Errorf("%d parts were written for it, want none", n)
	}
}

// A write that was not made costs nothing: an agent that reports to several replicas is
// not held to less than one that reports to one.
func TestBudgets_WhoLosesPaysNothing(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	r.tick(21)
	for i := range 18 { // takes something back each ten seconds
		for _, one := range r.all {
			if err := one.report("paris", 7, uint64(1+i), flavors("paris", int64(64-i), 0)); err != nil {
				t.Fatalf("report %d to %s: %v", i, one.name, err)
			}
		}
		r.tick(10)
	}
}

// A part of a report that this replica cannot read is no orphan: another one reads it.
func TestParts_OfAReportThatIsNotReadStay(t *testing.T) {
	r := newReplicas(t, "a")
	part := &marketcrd.AdvertisementPart{Spec: marketcrd.AdvertisementPartSpec{Provider: "oslo", Report: []byte("of a later version")}}
	part.Name = "oslo.later"
	must(t, r.objects.API().PutPart(context.Background(), part))
	head := &marketcrd.Advertisement{Spec: marketcrd.AdvertisementSpec{Generation: "7.1", Replica: "later", Parts: []string{part.Name}}}
	head.Name = "oslo"
	r.objects.Forge(head)
	hours := func() {
		t.Helper()
		for range 130 {
			r.now = r.now.Add(time.Minute)
			r.tick(3) // its Heartbeat comes back, after it stood still
		}
	}
	if hours(); len(r.objects.PartNames()) != 1 {
		t.Error("a part is deleted that an object names")
	}
	if r.all[0].store.Objects()["advertisement oslo"] == "" {
		t.Fatal("the report can be read")
	}
	must(t, r.all[0].report("oslo", 7, 2, flavors("oslo", 8, 0))) // the next report replaces it
	if hours(); len(r.objects.PartNames()) != 0 {
		t.Error("a part is left that no object names")
	}
}

// Parts that are to be deleted count as what the store has, until they are.
func TestParts_CountUntilTheyAreDeleted(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, largeList("paris", 400, 1)))
	large := a.store.Taken()
	r.tick(15)
	must(t, a.report("paris", 7, 2, flavors("paris", 8, 0)))
	if got := a.store.Taken(); got < large {
		t.Errorf("%d bytes are counted and the store has %d", got, large)
	}
	r.tick(130)
	if got := a.store.Taken(); got > 1024 || len(r.objects.PartNames()) > 0 {
		t.Errorf("%d bytes are counted, and %d parts are left", got, len(r.objects.PartNames()))
	}
}
