// Package joint moves intents that belong together (placement.together) as one.
//
//	joint.go   a job's turn, with those that it belongs together with
//
// Those of which nothing has a place are placed as one by package place. Here are those
// that have one and must leave it:
//
//   - Where all that they have must go elsewhere (their provider is lost or drained), one
//     provider takes all of them, and what they lack, in one step. Where none has room for
//     all, an intent that names none of the others goes by itself, and one that names
//     another stays where it is: elsewhere it would bind the others to a place where they
//     do not fit.
//   - Where a replica of one that must share a domain was lost and has waited for
//     update.moveAfter, all of them move, also those that are served where they are.
//   - Where a provider takes back spot capacity of one and there is no room for it where the
//     others are, all of them move; where no provider holds all, those that name it give way
//     with it as the last of it ends with its notice, and wait to be where it is.
//
// # Invariants
//
//   - All of a unit move in one step, or what moves is as it would be by itself.
//   - What a lost replica can have where the others are goes before any move.
//
// Package contend calls it for each turn. One goroutine uses a Placer, that of its round.
package joint
