// Package tariff prices a size of an offer: by what its flavor states, in the fleet's
// currency, in each price class and at each hour.
//
// # Invariants
//
//   - Prices are integers: 10⁻¹² of the currency for a unit of a resource and an hour,
//     10⁻⁶ for sums (quantity.Micro). A quote is exact products and one division, rounded
//     half up (TestHourlyIsExact).
//   - A price that is missing is not one of nothing: Why and Unpriced tell the two apart,
//     and Prices.Names which resources a tariff leaves out.
//   - What time changes is in windows alone: a Tariff is made for the rates of one instant
//     (Terms.Now), and asked for the price of another (Tariff.Quote).
//
// Package match makes one for each price in the market and shares it; what moving data
// costs, and what an intent affords, is decided there. Pure functions of values: a Tariff
// does not change but for its Number, which is its owner's.
package tariff
