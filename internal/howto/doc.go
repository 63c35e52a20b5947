// Package howto says what a team does once its intent is merged: where to deploy,
// what manifest to start from, how to see it run, its logs, what it costs and how it
// ends.
//
//	Input (an intent, its state and contracts on the ledger) ─► Of ─► Guide ─► Text
//
// Invariants:
//   - A guide says nothing that the ledger and the intent's file do not: no cluster is
//     asked, and what is not known yet is not guessed. Without a contract there is no
//     manifest, since the name under which a pod asks for its cards is the contract's.
//   - A manifest asks for what one replica holds, on one virtual node, so that the
//     scheduler finds room for it. It has the labels that the namespace's podSelector
//     wants, and no toleration: admission writes those.
//   - Texts of people's files are escaped where they are shown.
//
// The command `how` and the dashboard's page of an intent call it. All are functions of
// their arguments, safe for concurrent use.
package howto
