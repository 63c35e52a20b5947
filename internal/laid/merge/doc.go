// Package merge merges two texts that were made from a third, by lines, as `git
// merge-file` does.
//
//	base ─┬─► mine   ─┐
//	      └─► theirs ─┴─► Text ─► merged, or not
//
// # Invariants
//
//   - Pure, and all or nothing: where both changed the same lines, or lines that touch, in
//     different ways, there is no merged text. No conflict marks are ever written.
//   - A line that only one of them changed is as that one has it. A change that both made
//     is made once.
//
// Package laid calls it. All functions may be called from several goroutines.
package merge
