package store_test

import (
	"errors"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
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
	if taken, err := b.store.Observe(t.Context(), "rome", word("7.3", root("b"))); !taken || err != nil {
		t.Fatalf("taken %t: %v", taken, err)
	}
	if taken, err := a.store.Observe(t.Context(), "rome", word("7.2", root("a"))); taken || err != nil {
		t.Fatalf("the older word is taken %t: %v", taken, err)
	}
	r.settle()
	if len(a.seen) != 1 || a.seen[0] != "rome bb" {
		t.Errorf("the replica was told %q, want [rome bb]", a.seen)
	}
}
