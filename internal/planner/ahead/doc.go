// Package ahead books capacity for terms that have not begun (schedule.book).
//
//	book.go    the bookings of a round: kept, made, moved, in order
//	search.go  the places that are free during a whole term
//	whole.go   replicas that share a domain, in the best one with room for all
//	hints.go   what people are shown of one that finds no place
//	trial.go   what is near, and which changes would do, each tried
//	views.go   what a search has summed up, kept as it books
//	ladder.go  what is free to each booking beside those that are kept before it
//	looks.go   what a search may look at
//	begin.go   a booking whose term begins, and one that it is too late for
//	text.go    what people read of one, and when it could be had instead
//
// # Invariants
//
//   - A booking takes what is free at every instant of [start, end): what is held without
//     an end counts as staying permanently.
//   - A booking is never displaced by what came later: bookings are kept by priority, then
//     by when they were made; others take what is booked only with an end before
//     (place.untilBooked).
//   - What is held comes before what is booked: where an offer shrinks, the last booking
//     that it no longer holds is reported at once and moved after a grace period, or kept
//     where no other place fits. A provider that is lost or drained is left at once, unless
//     too many would lose their place (safety.maxEnds).
//   - A booking becomes Reserved by a commit of its own, from bookings.lead before its
//     start on, as soon as its capacity is free, and costs nothing before its start. Its lead
//     takes nothing of another booking.
//   - One whose capacity is only draining begins as soon as that is gone. One that could not
//     begin within the grace period of the fleet for another reason is given up, and its
//     replica is placed as any other, at once.
//   - A change that alters nothing of what is booked is written into the booking.
//
// # Who calls it
//
// Package settle begins what is due; the planner's round books after those that wait have
// had their turns, so that what came in one commit is served now before it is booked.
//
// # Concurrency
//
// None: it works on the draft of a round.
package ahead
