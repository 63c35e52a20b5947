package sequence

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Common is at which entry of the new history what is new begins, −1 when the
// old one is no part of it. Only the last ten are kept.
func Common(was, is []v1alpha1.PhaseChange) int {
	for skip := 0; skip <= len(was); skip++ {
		rest := was[skip:]
		if len(rest) <= len(is) && slices.Equal(rest, is[:len(rest)]) && (skip == 0 || len(is) == maxHistory) {
			return len(rest)
		}
	}
	return -1
}

// maxHistory is how many phases a contract's file keeps.
const maxHistory = 10
