// Package prices makes price tables out of what others publish: the AWS Price
// List (offer files and GetProducts), Google's Cloud Billing Catalog, Azure's
// Retail Prices, tables of offers, and OpenCost's custom prices.
//
// A reader turns one answer into Quotes: so many GPUs of a model in a region for
// a price an hour. Table makes of them one row a provider and model. Nothing
// that names a GPU and is not understood is dropped in silence: readers return
// it as a Note.
//
// # Invariants
//
// Money is decimal from the first byte to the last. Equal answers give equal
// tables, whatever their order.
//
// # Who calls it
//
// The `prices import` command, which does the I/O. Everything here is a pure
// function and safe for concurrent use.
package prices
