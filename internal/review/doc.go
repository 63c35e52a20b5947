// Package review says what merging a pull request would do: from the fleet as
// it is and as it would be, a comment, comments on lines and a verdict.
//
//	base ──plan──┐
//	             ├─ since ─► Result: comment, lines, verdict, digest
//	head ──plan──┘
//
// Both plans are made on one world: the same offers, ledger, observations and
// time. They differ only in what the pull request changes.
//
// # Invariants
//
//   - Pure: no I/O, no clock, no map order. Equal inputs give equal bytes.
//   - Policy is the base's: fleet.yaml, tenants/, clusters/, prices/, flavors/,
//     pki/ and overlays/ are taken from there, only intents/ and bases/ from the
//     pull request. What it changes of policy is named, and what its own policy
//     would decide is a line of its own that no verdict goes by. So nobody turns
//     a check green by raising a budget in the same pull request.
//   - Passed is said of a plan that was made and checked. A conflict, a problem
//     that was not there before, an intent refused, files that only the daemon
//     writes, or ends that are held back fail it; nothing else does. An intent
//     that waits passes: it may be merged, and waits.
//   - What no authorised account has signed, where the fleet asks for signatures, is in
//     neither plan: the base is what is acted on. Whose commits these are is
//     told, with what would be planned once they are verified, and the verdict
//     goes by both. Unsigned commits fail it; those that wait for an approver,
//     who gives his word by merging, do not.
//   - What a pull request brings is data: it is read by package fleet within its
//     bounds, and shown with what could be markup or a mention made harmless.
//
// # Who calls it
//
// internal/reconciler/reviews, which reads pull requests and posts the result.
// Everything is safe for concurrent use.
package review
