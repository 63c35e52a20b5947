// Package settle decides of a job all that needs no offer, and makes tasks of what
// does.
//
//	settle.go, tasks.go   what ends, waits, is refused or wanted
//	outcome.go            how a job is settled that gets nothing: refused, expired, queued
//	terms.go              what is out of force stays on its terms
//	booked.go             what books ahead, and what gives way to bookings
//	beyond.go             limits of the fleet and quotas that nothing would meet
//	denials.go            who is not served goes elsewhere, and keeps away
//	interrupt.go          spot capacity that is taken back
//	demand.go, surplus.go replicas that follow pods, and which go first
//	givenup.go            what an intent gives up by itself
//	expected.go           warm pools that follow a forecast
//	parts.go              tasks of replicas put together from parts
//	lazy.go               replicas that have nothing, without a task each
//	work.go, conditions.go  what looking may cost a round
//	turns.go                whose turn it is
//
// # Invariants
//
//   - A mistake in a file keeps the specification, never the terms: ends, budgets,
//     drains and preemption go on for what cannot be read (terms.go).
//   - Nothing is moved, refused or queued in a round without enough reports (World.Deaf).
//   - Work is counted in units as if nothing were cached, never in time, so that
//     replicas, replays and plans from memory agree.
//
// Called once for each job of a round, and again for those that others wake (package
// contend). One goroutine uses a Settler, that of its round.
package settle
