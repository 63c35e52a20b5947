// Package changes follows single paths of a repository through its history: which commits
// changed a file or a directory, who made them, when, and through which merge they came.
//
// Invariants:
//   - It costs little and has bounds: a step compares a path in two trees and opens no more
//     of them than the way to it, a walk has at most maxSteps of them, one walk is under way
//     at a time, and maxWalks are kept. A caller waits for a moment and gets what is known
//     by then.
//   - A commit changed a path if the path differs from that of every parent. At a merge the
//     walk goes on at a parent that has the same, so that a change is its author's and not
//     that of who merged it. So does `git log -- path`.
//   - History is read as it is: unaccepted content is named, never acted on.
//
// internal/ui asks it for pages. A Follower is safe for concurrent use.
package changes
