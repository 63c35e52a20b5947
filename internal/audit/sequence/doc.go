// Package sequence knows numbers that grow along a ledger: of its commits, of the
// rendering of its manifests and of the rules that decide.
//
// Invariants:
//   - A daemon that meets a higher rendering or higher rules than its own writes
//     nothing. So a lower number after a higher one is another hand's, but for a round
//     that had begun before the higher one was written.
//   - Only commits of ours are counted: what others write raises no number.
//
// audit calls it, one walk at a time.
package sequence
