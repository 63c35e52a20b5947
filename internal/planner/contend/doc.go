// Package contend serves those that wait, in turn, and lets some make others give
// way.
//
//	order.go      the order of those that wait
//	fairshare.go  turns between tenants that hold equal shares
//	displace.go   a turn; claims, notices, and who is let off
//	preempt.go    who may displace whom
//	victims.go    the least disturbing set that makes room
//	reserve.go, ends.go   what is kept for the first in line, until what is known to end
//	borrow.go     what was borrowed of quotas is asked back
//
// # Invariants
//
//   - No cascades and no ping-pong: a victim's priority is strictly lower than its
//     claimant's, or it holds what it borrowed; who gave way displaces no other
//     until it is served again (displace.go).
//   - No intent that needs much is overtaken permanently: the first in line have
//     reservations, by ends that are known (reserve.go).
//   - Nothing is taken at once: notice first, then the release, and its capacity
//     counts as held until it is seen gone.
//
// Called by the planner's fourth step. One goroutine uses a Contest, that of its round.
package contend
