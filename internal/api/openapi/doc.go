// Package openapi describes what the daemon serves over HTTP as one OpenAPI 3.1 document,
// from the Go types that are written and read.
//
//	route.go    what a route is described by
//	document.go the document of some routes
//	schema.go   the schema of a Go type
//
// Invariants: a document depends on its routes and the types alone, so that the same program
// makes the same one; each named type has one schema; nothing of a request reaches it.
//
// The packages that serve list their routes (internal/ui, internal/server/routes); their tests
// hold that no route is left out. Values are made once and not changed: everything is safe for
// concurrent use.
package openapi
