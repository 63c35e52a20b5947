// Package sequence knows numbers that grow along a ledger: of its commits, of the
// rendering of its manifests and of the rules that decide.
//
// Invariants:
//   - A daemon that meets a higher rendering or higher rules than its own writes
//     nothing. So a lower number after a higher one is another hand's, but for a round
//     that had begun before the higher one was written.
//   - Only commits of ours are counted: what others write raises no number.
//   - The number of a commit is one above the one before. The commit that states which head
//     of the ledger an operator let go of may be above all of that: who was told of those
//     numbers takes no lower ones.
//
// audit calls it, one walk at a time.
package sequence
