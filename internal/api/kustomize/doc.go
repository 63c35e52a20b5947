// Package kustomize builds kustomizations that nobody needs to trust: on a
// file system in memory, without anything remote, without programs, in a child
// process with bounds.
//
//	files ─► read strictly ─► count ─► child process ─► YAML stream
//
// Invariants:
//
//   - What kustomize reads was read by strictyaml first and is handed over as
//     JSON: both read the same, and nothing has aliases.
//   - Counts alone decide what is refused (Refusal): files, bytes, kustomizations
//     loaded, objects, and the work that they and what is done to them make (work.go).
//     They are the same on every machine.
//   - The build runs in a process of its own with bounds (package child). That it
//     dies is no verdict (child.Death): the caller decides what two deaths mean.
//
// kustomize keeps global state and is not safe for concurrent use, so all
// builds of a process take turns, in one child that serves many of them and is
// started again after a death. The package lies under api because both fleet
// (intents) and manifests (overlays) build. Its functions are safe for
// concurrent use.
package kustomize
