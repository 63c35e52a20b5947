// Package gen makes the files of the public API of the daemon from its routes and the Go
// types that they answer with.
//
//	gen.go      which files there are
//	types.go    types that are written out, so that a client links neither planner nor git
//	aliases.go  types of the kinds and of the wire, which are small: aliases
//	methods.go  a method of the client for each page
//	source.go   comments of types and fields, from their sources
//
// Invariants: the files depend on routes and sources alone; a type that JSON writes in a form
// of its own is aliased or refused, never guessed.
//
// Command apigen and a test call it. Nothing is shared between calls.
package gen
