// Package prices makes price tables out of what others publish: the AWS Price
// List (offer files and GetProducts), Google's Cloud Billing Catalog, Azure's
// Retail Prices, tables of offers, and OpenCost's custom prices.
//
// A reader turns one answer into Quotes: so many GPUs of a model in a region for
// a price an hour. Table makes of them one row a provider and model. Nothing
// that names a GPU and is not understood is dropped in silence: readers return
// it as a Note.
//
// # Files
//
//	prices.go  quotes, and the table that is made of them
//	text.go    an answer as it comes in, up to a bound; JSON entry by entry
//	next.go    the address of the next page
//	aws.go, gcp.go, azure.go, tables.go  what each publishes
//
// # Invariants
//
// Money is decimal from the first byte to the last. Equal answers give equal
// tables, whatever their order. What answers take is bounded, one and all
// pages together (Answer.Add): an offer file of AWS is never held whole, the others are at most
// 64 MiB.
//
// # Who calls it
//
// The `prices import` command, which opens what is read. Everything here depends on nothing but
// what it is given, and is safe for concurrent use.
package prices
