// Package client asks a fleetbroker daemon, for programs of others: the dashboard's pages and
// the market on the operators' port, reports, reservations and instructions on the agents'.
//
//	client.go              Options, requests, errors
//	pages.go               what pages have in common; queries
//	zz_generated.pages.go  a method for each page, generated from the routes
//	reservations.go        reserve, release, instructions, the market, pods
//	reports.go             what agents report, and what they apply
//
// Invariants: each call ends with its context; an answer takes at most Options.MaxAnswer bytes;
// nothing is sent twice (a reservation is retried by its caller, with the same key); an answer
// that is not a success is an *Error; credentials go to the address of the options alone, and
// no redirect is followed.
//
// A Client is safe for concurrent use; its connections are kept for the next request.
package client
