// Package contend serves those that wait, in turn, and lets some make others give
// way.
//
//	order.go      the order of those that wait
//	fairshare.go  turns between tenants that hold equal shares
//	displace.go   a turn; claims, notices, and who is let off
//	preempt.go    who may displace whom
//	victims.go    the least disturbing set that makes room
//	looks.go      what the search for them may cost a round
//	units.go      what gives way as a whole, what that costs others, and the best of such
//	nodes.go      … where pods are to find nodes
//	reserve.go, ends.go   what is kept for the first in line, until what is known to end
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
// # Borrowing
//
// What others leave of their quotas a tenant may borrow (package account), last:
// every intent has its turn within its tenant's quota before any has one beyond
// it. When an intent within its own tenant's quota fits nowhere else, contracts of
// tenants above their quota that hold what they borrowed give way to it, of any
// priority, with their grace, the least disturbing first (displace.go). No intent
// preempts or reclaims in order to borrow: that would go round in circles.
//
// Called by the planner's fourth step. One goroutine uses a Contest, that of its round.
package contend
