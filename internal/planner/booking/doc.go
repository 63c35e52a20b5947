// Package booking is the free capacity of one offer over time: what is free now, what is
// known to end, and what is booked.
//
// # Invariants
//
//   - What is free falls at the starts of bookings alone, and rises at ends: the least of an
//     interval is at its beginning or at a start within it.
//   - An interval holds its first instant and not its last, so that one booking may begin
//     as another ends.
//   - What has no end never gives anything back.
//   - A Profile has at most MaxInstants starts; who books beyond that is refused by name.
//
// It knows numbers and instants alone: packages draft and ahead say what contracts come to
// on an offer.
//
// # Who calls it
//
// internal/planner/draft makes profiles; internal/planner/ahead and place ask them.
//
// # Concurrency
//
// None: a Profile belongs to the goroutine of its round.
package booking
