// Package newfleet makes a fleet repo from the template, brings one that was made before
// to this program's version, and makes its keys.
//
//	template, schemas ─► Files ─► Make ─► repo, .fleetbroker/template.lock
//	                              Update ─► the same, edits kept (package laid)
//	NewKeyring ─► keys and trust root, outside the repo
//
// Invariants:
//   - No private key is written into a git work tree, and none is overwritten.
//   - Samples (fleet.yaml, clusters, flavors, intents, tenants) are people's from the first
//     day: Make writes them, Update never looks at them.
//   - What CI runs is one version, pinned (pin.go); where it comes from is an https URL of
//     plain characters, also when the lock names it.
//   - Make changes nothing that exists; what a directory may have before is listed (allowed).
//
// The command `init` calls it. Nothing here is safe for concurrent use on one directory.
package newfleet
