// Package rules holds what a replica's place must respect apart from the offer itself and
// the tenant's account: where the intent's other replicas are, where other intents of its
// tenant are, and what the intent names at the provider.
//
//	rules.go     Set: the rules of one more replica; Relations: who is together and apart
//	spread.go    Spread: an entry of placement.spread, as topology spread constraints are
//	onnodes.go   in which domain the nodes of a contract are
//	bars.go      Bars: remote namespaces and Secrets that keep an intent from a provider
//
// Which domains replicas share (placement.within) is package domain's; a Set asks it.
//
// # Invariants
//
//   - Nothing here changes a draft: a Set and Bars are values of the moment in which they
//     were made, and a placement makes others.
//   - A nil Set, and nil Bars, forbid nothing.
//   - What Breaks names, Detail explains: each offer is counted once, under the first rule
//     that it breaks (together, apart, within, spread).
//   - Relations are the same from both sides, and together over any number of steps.
//
// # Who calls it
//
// Package place puts a Set together with limits (place/bounds.go) and asks it of each
// candidate after capacity and money; settle, contend, consolidate and explain ask single
// rules, and the planner when it checks a finished plan. Functions of their arguments; one
// goroutine uses a draft, that of its round.
package rules
