package planner

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// However many are put among however many, what comes out is what sorting makes of both.
func TestInsertAll_IsSorting(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var kept, more, want []*draft.Decision
		for i := range random.IntN(40) {
			d := &draft.Decision{Tenant: "t" + strconv.Itoa(random.IntN(3)), Name: strconv.Itoa(i)}
			if want = append(want, d); random.IntN(3) > 0 {
				kept = append(kept, d)
			} else {
				more = append(more, d)
			}
		}
		for _, list := range [][]*draft.Decision{kept, more, want} {
			slices.SortFunc(list, byName)
		}
		if got := insertAll(kept, more); !slices.Equal(got, want) {
			t.Fatalf("%d among %d are not in order", len(more), len(kept))
		}
	}
}
