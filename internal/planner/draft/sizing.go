package draft

import (
	"fmt"
	"math"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Sizing is how many slices a pool wants. nil is a pool of a fixed count.
type Sizing struct {
	Least, Most int32
	// Margin of the error, in millionths.
	Margin int64
	Made   *v1alpha1.Expectation
	// Claims since it was made.
	Claims int32
	// Fixed is how many it wants while nothing may be decided, -1 otherwise.
	Fixed int32
}

// wanted is how many slices a pool wants; fixed is its count where it follows
// no forecast.
func (s *Sizing) wanted(fixed int32) int32 {
	switch {
	case s == nil:
		return fixed
	case s.Fixed >= 0:
		return s.Fixed
	case s.Made == nil || s.Made.Tested == 0:
		return s.Least
	}
	return min(max(s.ready()-s.Claims, s.Least), s.Most)
}

// ready is how many slices the forecast wants in addition to what existed.
func (s *Sizing) ready() int32 {
	micro := s.Made.Peak.Micro() + quantity.Wide{}.AddProduct(s.Made.Error.Micro(), s.Margin, 1).Quo(1_000_000)
	return int32(min(max((micro+999_999)/1_000_000-int64(s.Made.Held), 0), math.MaxInt32)) //nolint:gosec // bounded
}

// Expected is what the ledger remembers of it.
func (s *Sizing) Expected() *v1alpha1.Expectation {
	if s == nil {
		return nil
	}
	return s.Made
}

// Text is what a pool is sized by.
func (s *Sizing) Text() string {
	if s == nil || s.Made == nil {
		return ""
	}
	if s.Made.Tested == 0 {
		return fmt.Sprintf("sized by its count of %d: a forecast needs more than a day of such contracts", s.Least)
	}
	out := fmt.Sprintf("sized by forecast at %s: at most %s such contracts at once, give or take %s, of which %d stood",
		Stamp(s.Made.At), s.Made.Peak, s.Made.Error, s.Made.Held)
	if s.Claims > 0 {
		out += fmt.Sprintf("; %d claimed since", s.Claims)
	}
	return fmt.Sprintf("%s; %d ready, of %d to %d", out, s.wanted(0), s.Least, s.Most)
}
