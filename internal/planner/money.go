package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// micro is money in millionths of the fleet's currency. Every hourly price of
// a contract is rounded to six places, so that this is exact.
type micro int64

// decimal is m as it stands in files.
func (m micro) decimal() v1alpha1.Decimal {
	return v1alpha1.DecimalFromMicro(int64(m))
}

// text is m as people read it: two decimals.
func (m micro) text() string { return m.decimal().Text() }

// unlimited is a limit that nothing reaches.
const unlimited = micro(1) << 60

// forSeconds is what m an hour comes to over seconds, rounded up.
func (m micro) forSeconds(seconds int64) micro {
	return micro(wide{}.addProduct(int64(m), seconds, 1).add(3599).quo(3600))
}
