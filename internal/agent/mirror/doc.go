// Package mirror shows in a cluster what its agent knows: what is offered
// (Advertisement), what is promised (ProviderInstruction on the provider,
// ReservationInstruction on the consumer) and what came of it.
//
// The objects are pictures: nothing is decided by them, and what is edited or
// deleted is put right with the next pass. The one exception is the annotation
// fleetbroker.io/refuse of a ProviderInstruction, by which an administrator of
// the provider says that the contract is no longer honoured, and why.
//
// What becomes of a contract (its phase, a slice that is denied, a term that is
// renewed or runs out) is told as an Event on its picture too, in the namespace default as
// those of all objects without a namespace. So are news of intents that hold
// nothing, and of budgets (announce.go).
//
// The agents of several fleets may show theirs in one cluster: each picture bears its
// fleet's id, those of others are left alone, and where one has the name of another
// fleet's it is called <name>-<id>. What bears no id is taken over where it is wanted.
//
// Want is pure. A Mirror belongs to one goroutine.
package mirror
