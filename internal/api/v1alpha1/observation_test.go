package v1alpha1

import (
	"maps"
	"slices"
	"testing"
)

// Clusters differ when their map is another, has come or is gone.
func TestConsumerObservationsDiffer(t *testing.T) {
	same, other := map[string]ConsumerObservation{"a": {Reachable: true}}, map[string]ConsumerObservation{"b": {Slice: Present}}
	before := ConsumerObservations{"rome": same, "oslo": other, "gone": other}
	now := ConsumerObservations{"rome": same, "oslo": maps.Clone(other), "new": other}
	got := now.Differs(before)
	slices.Sort(got)
	if !slices.Equal(got, []string{"gone", "new", "oslo"}) {
		t.Errorf("differ: %v", got)
	}
	if len(now.Differs(now)) > 0 || len(ConsumerObservations(nil).Differs(nil)) > 0 {
		t.Error("a value differs from itself")
	}
	if !now.Of("rome", "a").Reachable || now.Of("rome", "b").Slice != Unknown || now.Of("nowhere", "a").Reachable {
		t.Error("a cluster says what it did not say")
	}
}
