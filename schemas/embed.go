// Package schemas holds the JSON Schemas (draft 2020-12) of all kinds of a
// fleet repo, one file a kind (<kind>.json, lower case) and fleetbroker.json
// for any of them, and the CustomResourceDefinitions (crds/) of the kinds that
// agents serve in clusters. They are generated from the Go types and checked in, so that
// editors can use them from the repository; a test proves them fresh.
//
// The CLI lays them down in new fleet repos. The embedded files never change.
package schemas

import "embed"

//go:generate go run ../internal/api/schemagen -root .. -out .

// Files are the schemas.
//
//go:embed *.json
var Files embed.FS

// CRDs are the CustomResourceDefinitions of the kinds that agents serve, under
// crds/.
//
//go:embed crds/*.yaml
var CRDs embed.FS

// Docs are the reference pages of the kinds, under docs/.
//
//go:embed docs/*.md
var Docs embed.FS
