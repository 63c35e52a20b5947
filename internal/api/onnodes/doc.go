// Package onnodes checks what is stated of single nodes, wherever it comes from: the
// groups of nodes of an agent's report and what contracts hold on them (Report), the
// count and size in a flavor's file (File), the nodes of a contract (Contract), and the node
// for which a provider refuses one (Refusal, RefusedFor).
//
// Invariants:
//   - What passes Report adds up: all nodes of a flavor together have no more than its
//     capacity, no node is listed twice, none is free for more than it has, and no
//     contract holds more on a node than on the flavor.
//   - A node's hash (IsHash) is never a number: contracts on a file's flavor name their
//     nodes by number, and those are not pinned.
//   - Sums never overflow, whatever a report states.
//
// Adverts, files and ledgers are other people's. Called by market (reports), fleet
// (files), ledger and manifests (contracts) and agent (form of a hash). Pure; safe for
// concurrent use.
package onnodes
