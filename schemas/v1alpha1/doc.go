// Package v1alpha1 has the Go types of fleetbroker's API for programs of others: the kinds
// that people write into a fleet repo and read in the ledger, what agents and clients of
// reservations say to the daemon, and the JSON of the dashboard's pages.
//
//	zz_generated.aliases.go  the kinds and the wire: aliases of what the daemon itself uses
//	zz_generated.types.go    pages: the fields and comments of the types that are written
//	openapi.json             all routes of all ports as OpenAPI 3.1, embedded as OpenAPI
//	api.txt                  the public fields; what is taken away breaks programs of others
//
// Invariants: all of it is generated from the daemon's types (`make generate`), and a test
// fails when it is stale, so that they cannot differ; a field is not renamed, removed or given
// another type without that being written down in api.txt; a program that imports the package
// links neither planner nor git.
//
// Package schemas/client is the client. Values are plain and safe for concurrent reading.
package v1alpha1

import (
	_ "embed"

	kinds "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

//go:generate go run ../../internal/ui/apigen -root ../..

// OpenAPI is the document of all that a daemon serves, in JSON.
//
//go:embed openapi.json
var OpenAPI []byte

// ParseAmount reads an amount of a resource, such as "8" CPU or "64Gi" memory, or says what
// is wrong with it.
func ParseAmount(resource, text string) (Amount, error) { return kinds.ParseAmount(resource, text) }

// ParseDecimal reads an amount of money, such as "2.85", or says what is wrong with it.
func ParseDecimal(text string) (Decimal, error) { return kinds.ParseDecimal(text) }
