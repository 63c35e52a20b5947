// Package heard says what follows from what providers have not said yet: which
// contracts wait for their provider's word that it has let go (Gone), and what is held
// although the ledger says less (StillHeld).
//
// Invariants:
//   - What a provider has not been heard to let go of is held (invariant 11).
//   - The cost is what has changed, not what there is.
//
// The reconciler's rounds call it, from one goroutine.
package heard
