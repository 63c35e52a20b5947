// Package handed has any replica of the daemon answer for a simulation, whichever runs it.
//
//	handed.go  Planner: what the dashboard asks, here or there
//	answer.go  what other replicas ask
//
// A job's ID names its replica. What is asked of a job of another one is asked there, over
// the certificates by which replicas know each other; the list of somebody's jobs is that of
// all replicas that live.
//
// Invariants:
//   - Who asks, and that they may, is judged once, by the replica that was asked (package
//     ui). Over here goes the identity alone, and what comes back is of that identity.
//   - What another replica asks is answered from this one's own jobs: it is never handed on
//     again.
//   - Nobody but a live replica of the store is asked, whatever an ID or a token says; no
//     more than most requests at a time, each bounded in time and size.
//   - A replica that is gone, or does not answer, is said to be: it never looks as if there
//     were no such simulation.
//
// The cli connects jobs, dashboard and agents' port by it. All of it is safe for concurrent
// use.
package handed
