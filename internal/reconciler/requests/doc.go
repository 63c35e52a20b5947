// Package requests judges requests for reservations by what is read and written of them:
// which of a round's must not join its inputs, why one is not read as an intent, and where
// one stands.
//
// Who has more intents than are read of one tenant (limits.intents) is frozen as a whole; a
// request that nobody grants freezes nobody.
//
// The reconciler calls it. It is pure.
package requests
