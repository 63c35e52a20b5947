// Package kustomize builds kustomizations that nobody needs to trust: on a
// file system in memory, without anything remote, without programs.
//
// kustomize keeps global state and is not safe for concurrent use, so all
// builds of a process go through Build, one at a time. It lies under api
// because both fleet (intents) and manifests (overlays) build.
package kustomize
