package forecast_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/ledger/forecast"
)

func at(s string) v1alpha1.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return v1alpha1.TimeOf(t)
}

// span is a contract of so many GPUs; one with an end has ended.
func span(tenant, name string, units int64, start, end v1alpha1.Time) *v1alpha1.Contract {
	c := &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: name}, Consumer: "rome", Provider: "paris", Flavor: "h100-pool",
			GPUs: &v1alpha1.ContractGPU{Count: units, Model: "nvidia-h100"}, Term: v1alpha1.Term{Start: start},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive, Since: start},
	}
	if !end.IsZero() {
		c.Status.Phase, c.Status.Since = v1alpha1.PhaseReleased, end
	}
	return c
}

func ledgerOf(list ...*v1alpha1.Contract) *ledger.Ledger {
	var ch ledger.Changes
	for _, c := range list {
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	return ledger.Empty().With(ch)
}

func byShape(l *ledger.Ledger, now v1alpha1.Time, keep time.Duration) map[forecast.Shape]*forecast.History {
	return forecast.Histories(l, now, keep, forecast.ShapeOf)
}

func TestHistoryIsWhatContractsHeld(t *testing.T) {
	now := at("2026-11-20T12:34:00Z")
	got := byShape(ledgerOf(
		span("vision", "a", 4, at("2026-11-20T08:30:00Z"), at("2026-11-20T10:15:00Z")),
		span("vision", "b", 4, at("2026-11-20T09:00:00Z"), v1alpha1.Time{}),
		span("vision", "c", 4, at("2026-11-20T12:10:00Z"), v1alpha1.Time{}), // in the hour that runs
		span("vision", "d", 1, at("2026-11-20T11:59:00Z"), at("2026-11-20T12:20:00Z")),
		span("speech", "e", 4, at("2026-11-20T10:00:00Z"), at("2026-11-20T10:00:00Z")), // at once
		span(v1alpha1.FleetTenant, "warm", 4, at("2026-11-20T08:00:00Z"), v1alpha1.Time{}),
	), now, 0)
	from := at("2026-11-20T08:00:00Z")
	want := map[forecast.Shape]*forecast.History{
		{Tenant: "vision", Model: "nvidia-h100", Count: 4}: {From: from, Held: []float64{2, 8, 5, 4}},
		{Tenant: "vision", Model: "nvidia-h100", Count: 1}: {From: from, Held: []float64{0, 0, 0, 1. / 60}},
		{Tenant: "speech", Model: "nvidia-h100", Count: 4}: {From: from, Held: make([]float64, 4)},
	}
	if !reflect.DeepEqual(got, want) {
		for k, h := range got {
			t.Errorf("%+v: %+v", k, *h)
		}
	}
}

func TestHistoryBeginsWithTheMemory(t *testing.T) {
	now := at("2026-11-20T12:34:00Z")
	long := span("vision", "a", 2, at("2026-01-01T00:00:00Z"), v1alpha1.Time{})
	if h := byShape(ledgerOf(long), now, 0)[forecast.Shape{Tenant: "vision", Model: "nvidia-h100", Count: 2}]; len(h.Held) != 167 || h.Held[0] != 2 {
		t.Fatalf("%+v", h)
	}
	if h := byShape(ledgerOf(long), now, 4000*time.Hour)[forecast.Shape{Tenant: "vision", Model: "nvidia-h100", Count: 2}]; len(h.Held) != 28*24-1 {
		t.Fatalf("%d hours", len(h.Held))
	}
	// What ended before the window makes it no longer.
	young := ledgerOf(
		span("vision", "a", 2, at("2026-11-20T10:00:00Z"), v1alpha1.Time{}),
		span("vision", "b", 2, at("2026-11-01T10:00:00Z"), at("2026-11-13T12:50:00Z")))
	if h := byShape(young, now, 0)[forecast.Shape{Tenant: "vision", Model: "nvidia-h100", Count: 2}]; !reflect.DeepEqual(h.Held, []float64{2, 2}) {
		t.Fatalf("%+v", h)
	}
	if got := byShape(ledgerOf(), now, 0); len(got) != 0 {
		t.Fatal(got)
	}
}

// All rounds of an hour see the same past, in whatever order the contracts
// came, whatever they decide, and when ended contracts leave the ledger.
func TestHistoryIsOfTheHourAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hour := at("2026-11-20T12:00:00Z")
		now := v1alpha1.TimeOf(hour.Add(time.Duration(rapid.IntRange(0, 3599).Draw(t, "second")) * time.Second))
		keep := time.Duration(rapid.IntRange(2, 60).Draw(t, "keep")) * time.Hour
		var list []*v1alpha1.Contract
		for i := range rapid.IntRange(0, 30).Draw(t, "contracts") {
			start := v1alpha1.TimeOf(hour.Add(-time.Duration(rapid.IntRange(0, 100*3600).Draw(t, "ago")) * time.Second))
			end := v1alpha1.Time{}
			if rapid.Bool().Draw(t, "ended") {
				end = v1alpha1.TimeOf(start.Add(time.Duration(rapid.IntRange(0, 100*3600).Draw(t, "held")) * time.Second))
				if end.After(now.Time) {
					end = now
				}
			}
			list = append(list, span([]string{"vision", "speech"}[i%2], fmt.Sprintf("c%d", i), int64(1+i%3), start, end))
		}
		want := byShape(ledgerOf(list...), now, keep)
		total := 0
		for k, h := range want {
			// No hour holds more than all contracts of the shape could.
			most := 0.0
			for _, c := range list {
				if s, _ := forecast.ShapeOf(c); s == k {
					most += float64(s.Count)
				}
			}
			if slices.Max(h.Held) > most+1e-9 || slices.Min(h.Held) < 0 {
				t.Fatalf("%+v: %+v", k, *h)
			}
			total += len(h.Held)
		}
		same := func(what string, l *ledger.Ledger, now v1alpha1.Time) {
			if got := byShape(l, now, keep); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v hours of %v, was %v", what, total, slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
			}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		shuffled := slices.Clone(list)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		same("shuffled", ledgerOf(shuffled...), now)
		// The round ends one contract and makes another.
		decided := slices.Clone(list)
		for i, c := range decided {
			if c.Status.Phase.Held() && rng.IntN(3) == 0 {
				ended := *c
				ended.Status.Phase, ended.Status.Since = v1alpha1.PhaseReleased, now
				decided[i] = &ended
			}
		}
		decided = append(decided, span("vision", "new", 4, now, v1alpha1.Time{}))
		same("decided", ledgerOf(decided...), v1alpha1.TimeOf(hour.Add(59*time.Minute)))
		// What may leave leaves.
		l := ledgerOf(list...)
		var books ledger.Books
		same("retired", l.With(books.Retire(l, now, keep, nil)), now)
	})
}
