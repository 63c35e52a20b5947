package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Whether few or many names are asked for, the same intents are found; those of one name
// together, and none for a name that there is not.
func TestAmong(t *testing.T) {
	var list []*Intent
	for i := range 300 {
		for range 1 + i%3/2 { // every third name stands twice
			in := &v1alpha1.ResourceIntent{}
			in.Metadata.Namespace, in.Metadata.Name = fmt.Sprintf("t%d", i/100), fmt.Sprintf("n%03d", i)
			list = append(list, &Intent{ResourceIntent: in})
		}
	}
	type name struct{ tenant, name string }
	key := func(it *Intent) name { return name{it.Metadata.Namespace, it.Metadata.Name} }
	called := func(k name) []*Intent {
		from, to := Called(list, k.tenant, k.name)
		return list[from:to]
	}
	for _, n := range []int{0, 1, 5, 60, 299} {
		names := map[name]bool{{"t9", "gone"}: true}
		want := map[name]int{}
		for i := range n {
			k := key(list[i*len(list)/300])
			names[k] = i%2 == 0
			want[k] = len(called(k))
		}
		got := map[name]int{}
		for k, found := range Among(list, names, key, called) {
			if len(found) == 0 {
				continue
			}
			if got[k] > 0 || !slices.Equal(found, called(k)) {
				t.Fatalf("%d names: %v is found twice, or in part", n, k)
			}
			got[k] = len(found)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d names: found %d, want %d", n, len(got), len(want))
		}
	}
}
