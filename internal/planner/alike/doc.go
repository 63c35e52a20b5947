// Package alike numbers offers by the values of the facts that a condition in CEL looks
// at, so that a condition is asked once for all offers that have these values in common,
// and not of each; and by what decides prices and sizes (Lots), so that these are made once,
// too.
//
// Invariants:
//   - A request takes the same of all offers of a lot, and pays the same there.
//   - Offers with equal numbers in a Set have equal values of all of its facts.
//   - A number is never used again for other values, for as long as its Numbers live.
//   - An offer that reports something else (Forget) is numbered again when it is asked for.
//
// Package match calls it, from the goroutine of its round.
package alike
