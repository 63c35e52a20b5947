// Package heard says what follows from who hears whom, and since when: which
// clusters only another daemon hears or reaches (Ears), which contracts wait for
// their provider's word that it has let go (Gone), and what is held although the
// ledger says less (StillHeld).
//
// Invariants:
//   - From a cluster's silence here nothing follows while the ledger shows that
//     another daemon hears it.
//   - What a provider has not been heard to let go of is held (invariant 11).
//   - The cost is what has changed, not what there is.
//
// The reconciler's rounds call it, from one goroutine.
package heard
