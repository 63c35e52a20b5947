// Package quantity is the arithmetic of a round: amounts of numbered resources,
// money in millionths of the fleet's currency, and sums of products that are too
// large for 64 bits.
//
//	names.go	the resources of a round by number, each name numbered once
//	vector.go	an amount for each numbered resource
//	money.go	Micro, which every hourly price of a contract is exact in
//	total.go	sums of any number of Micros, which must not wrap
//	wide.go	128-bit sums, for prices before they are rounded
//
// A round compares the amounts of thousands of offers with those of thousands of
// requests: it numbers the names of resources once and holds amounts in slices.
//
//   - Nothing is a float, so that every machine decides alike.
//   - What would overflow saturates, far above any amount that there is; a price
//     is never less for being too large.
//   - A Vector that ends early has nothing of the resources past its end.
//
// Callers are internal/planner and the packages below it. Values are the caller's
// own: nothing here is shared, and nothing is safe for concurrent writing.
package quantity
