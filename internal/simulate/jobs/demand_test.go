package jobs

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// An intent that waits for two thousand million replicas makes no more rows than are
// simulated, and pushes nobody out.
func TestPast_TenantsShareTheRows(t *testing.T) {
	now := v1alpha1.TimeOf(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	in := &scenario.Input{Now: now}
	var ch ledger.Changes
	queue := func(tenant, name string, replicas int32, since time.Duration) {
		i := &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{}}
		i.Metadata = v1alpha1.Metadata{Namespace: tenant, Name: name}
		i.Spec.Replicas = v1alpha1.Replicas{Min: replicas, Max: replicas}
		in.Intents = append(in.Intents, i)
		s := &v1alpha1.IntentState{Metadata: i.Metadata}
		s.Status.State, s.Status.Since = v1alpha1.IntentQueued, v1alpha1.TimeOf(now.Add(-since))
		ch.States = append(ch.States, model.StateChange{After: s})
	}
	for i := range 40 {
		queue("nlp", fmt.Sprintf("old-%d", i), 1, time.Duration(i)*time.Hour)
	}
	queue("vision", "vast", 2_000_000_000, time.Minute)
	queue("vision", "older", 7, 2*time.Minute)
	queue("greed", "vast", 2_000_000_000, time.Second)
	in.Ledger = ledger.Empty().With(ch)
	rows, _, left := past(in, 30)
	got := map[string]int{}
	for _, r := range rows {
		got[r.Tenant]++
		if r.intent == "older" {
			t.Fatal("the oldest of those who have too much are left out first")
		}
	}
	if want := map[string]int{"nlp": 40, "vision": 2480, "greed": 2480}; !maps.Equal(got, want) || left != 4_000_000_047-5000 {
		t.Errorf("%v, %d left out; want %v", got, left, want)
	}
}

func TestShares(t *testing.T) {
	for i, c := range []struct {
		want map[string]int
		much int
		get  map[string]int
	}{
		{map[string]int{"a": 3, "b": 4}, 10, map[string]int{"a": 3, "b": 4}},
		{map[string]int{"a": 3, "b": 40, "c": 50}, 13, map[string]int{"a": 3, "b": 5, "c": 5}},
		{map[string]int{"a": 9, "b": 9}, 3, map[string]int{"a": 1, "b": 2}},
		{map[string]int{}, 3, map[string]int{}},
	} {
		if got := shares(c.want, c.much); !maps.Equal(got, c.get) {
			t.Errorf("%d: %v, want %v", i, got, c.get)
		}
	}
}
