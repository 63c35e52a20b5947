package ahead

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// hints are what people are shown of a booking that finds no place.
type hints struct {
	near, try []string
	// starts are others at which some offer has room, to be tried (search.explainStart).
	starts []start
}

// start is another one, at which an offer has room.
type start struct {
	at    v1alpha1.Time
	where string
}

// Bounds of what is shown to people.
const (
	nearShown = 3
	tryShown  = 3
)

// add adds what is near, once.
func (h *hints) add(near string) {
	if len(h.near) < nearShown && !slices.Contains(h.near, near) {
		h.near = append(h.near, near)
	}
}

// offer adds a change that would do.
func (h *hints) offer(change string) {
	if len(h.try) < tryShown && !slices.Contains(h.try, change) {
		h.try = append(h.try, change)
	}
}

// startText is another start as one writes it.
func startText(at v1alpha1.Time, where string) string {
	return fmt.Sprintf("schedule.notBefore: %s  # %s is free then", draft.Stamp(at), where)
}
