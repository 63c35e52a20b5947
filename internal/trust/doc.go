// Package trust reads the trust root of a fleet and says which keys are in force.
// The root is a file next to the daemon, outside the repository that it guards.
//
//	trust root ──┐
//	             ├─► (root ∪ chain) − dropped − revoked ─► keys in force, one list each
//	fleet.yaml ──┘    policy: people, ledger: daemons
//
// # Invariants
//
//   - The lists policy and ledger are never one: a key that stands in both is
//     refused, in the file and when the chain adds it.
//   - The file goes before the chain: a key that it revokes stays revoked, and
//     limited to the ancestors of the commit it names, whatever the repository says.
//   - An entry of the chain with `dropped: true` takes the key away, one of the
//     root included.
//   - Nothing in the repository makes a fleet unsigned.
//
// cli reads the file, reconciler and verify ask for keys. A Root never changes
// after it was read, and is safe for concurrent use.
package trust
