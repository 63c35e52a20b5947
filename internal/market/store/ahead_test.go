package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

func epochAt(at time.Time) uint64 { return uint64(at.UnixNano()) } //nolint:gosec // after 1970

func observed(g wire.Generation, root string) wire.Observed {
	return wire.Observed{Generation: g.String(), Root: strings.Repeat(root, 40)}
}

// A word whose epoch is ahead, by a clock or forged, is named to who tells the true one,
// which is then taken at once; by every replica.
func TestObservations_EpochAhead(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	ahead := wire.Generation{Epoch: epochAt(r.now.Add(300 * 24 * time.Hour)), N: 9}
	r.objects.ForgeSeen("rome", ahead, wire.Observed{Root: strings.Repeat("f", 40)})
	r.tick(1)
	var stale *market.StaleEpochError
	if err := a.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: epochAt(r.now), N: 1}, "a")); !errors.As(err, &stale) || stale.Last != ahead {
		t.Fatalf("the true word is answered with %v", err)
	}
	b.seen = nil
	must(t, a.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: stale.Last.Epoch + 1, N: 1}, "a")))
	r.tick(1)
	if got := strings.Join(b.seen, ","); got != "rome aa" {
		t.Errorf("b is told %q", got)
	}
}

// An epoch that no clock can have made is no word, whoever wrote it: nobody could go above it.
func TestObservations_EpochOfNoClock(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	r.objects.ForgeSeen("rome", wire.Generation{Epoch: 1<<63 - 1, N: 1<<63 - 1}, wire.Observed{Root: strings.Repeat("f", 40)})
	r.tick(1)
	must(t, a.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: epochAt(r.now), N: 1}, "a")))
	r.tick(1)
	if got := strings.Join(b.seen, ","); got != "rome aa" {
		t.Errorf("b is told %q", got)
	}
}

// What was seen of a cluster whose object was deleted is forgotten: the next word is
// written, whatever its generation and also if it says the same, and every replica has it.
func TestObservations_Deleted(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: 9, N: 9}, "a")))
	r.tick(1)
	o, err := a.api.Observation(t.Context(), "rome")
	must(t, err)
	must(t, a.api.DeleteObservation(t.Context(), "rome", o.ResourceVersion))
	r.tick(1)
	if got := strings.Join(a.unseen, ",") + "|" + strings.Join(b.unseen, ","); got != "rome|rome" {
		t.Errorf("told as forgotten: %s", got)
	}
	b.seen = nil
	must(t, a.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: 7, N: 1}, "a")))
	r.tick(1)
	if _, err := a.api.Observation(t.Context(), "rome"); err != nil {
		t.Errorf("the word is not in the store: %v", err)
	}
	if got := strings.Join(b.seen, ","); got != "rome aa" {
		t.Errorf("b is told %q", got)
	}
}

// A word that says again what a replica has, while its watch has yet to tell it that
// another one was told something else meanwhile, is not lost: all believe the newest word.
func TestObservations_SaidAgainBehindTheWatch(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	say := func(one *replica, n uint64, root string) {
		t.Helper()
		must(t, one.store.Observe(t.Context(), "rome", observed(wire.Generation{Epoch: 5, N: n}, root)))
	}
	say(a, 1, "a")
	r.tick(1)
	say(b, 2, "b")
	say(a, 3, "a") // a has yet to hear of 5.2
	r.tick(1)
	a.seen, b.seen = nil, nil
	r.tick(11) // a Heartbeat says nothing of it
	if got := strings.Join(b.seen, ","); got != "" {
		t.Errorf("b hears again of a word that is not the newest: %s", got)
	}
	say(a, 3, "a") // as agents say again what has not changed
	r.tick(11)
	o, err := a.api.Observation(t.Context(), "rome")
	must(t, err)
	if got := strings.Join(b.seen, ","); !strings.HasPrefix(got, "rome aa") || strings.Contains(got, "bb") || o.Spec.Generation != "5.3" {
		t.Errorf("b hears %q, the store has %s", got, o.Spec.Generation)
	}
	say(b, 4, "b")
	r.tick(1)
	if got := strings.Join(a.seen, ","); !strings.HasSuffix(got, "rome bb") {
		t.Errorf("a hears %q", got)
	}
}
