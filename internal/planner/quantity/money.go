package quantity

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// Micro is money in millionths of the fleet's currency. Every hourly price of
// a contract is rounded to six places, so that this is exact.
type Micro int64

// Decimal is m as it is written in files.
func (m Micro) Decimal() v1alpha1.Decimal {
	return v1alpha1.DecimalFromMicro(int64(m))
}

// Text is m as people read it: two decimals.
func (m Micro) Text() string { return m.Decimal().Text() }

// RoundedUp is the least amount in hundredths that is no less than m, as a budget is suggested.
func (m Micro) RoundedUp() v1alpha1.Decimal { return ((m + 9_999) / 10_000 * 10_000).Decimal() }

// Unlimited is a limit that nothing reaches.
const Unlimited = Micro(1) << 60

// ForSeconds is what m an hour comes to over seconds, rounded up.
func (m Micro) ForSeconds(seconds int64) Micro {
	return Micro(Wide{}.AddProduct(int64(m), seconds, 1).Add(3599).Quo(3600))
}
