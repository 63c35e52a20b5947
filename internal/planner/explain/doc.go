// Package explain writes what people read of a round: why an intent is where it is or
// waits, what nearly fits, what would help, and when it may be served.
//
//	explain.go          every offer towards one intent (`fleetbroker explain`)
//	near.go             which offers fail one requirement only, and which changes are tried
//	relax.go, relax_rules.go  the change by which one would meet it
//	pods.go             the default of pods, where it alone leaves no room
//	estimate.go         the future as far as it is known, replayed
//	detail.go           a failed requirement with numbers
//	node.go             what is free of an offer's nodes, and pods that would fit there
//	growth.go           what an autoscaler has to add, and what is replaced later
//	reasons.go          a placement's reason in a sentence
//
// # Invariants
//
//   - Nothing that is shown changes what is decided: whatever is tried is rolled back
//     (package draft).
//   - What is looked at in addition to the decision is paid from the round's spare work.
//   - A change is suggested only after it was planned and placed the intent.
//
// Called by the planner's seventh step. One goroutine uses an Explainer, that of its
// round.
package explain
