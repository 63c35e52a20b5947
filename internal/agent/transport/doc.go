// Package transport carries what an agent and a broker say to each other:
// reports of flavors, requests for capacity, and instructions. Transport is
// the one interface; agents know nothing of how it is done.
//
//	agent ──Put──────────────►  broker   full list, or "as before"
//	      ──Reserve, Release─►           answered once it is on the ledger
//	      ◄──Instructions────            held back until there is news
//
// HTTP makes single requests, and proves itself by a suite (conformance_test.go)
// against the very handlers that the daemon serves. It speaks mutual TLS 1.3 with
// a broker whose certificate has the role server, takes renewed certificates into
// use without a restart, and bounds every answer.
//
// Invariants: an error of Reserve or Release that is no *wire.Refusal says
// nothing about what became of the request: ask again with the same key. No
// method retries by itself.
//
// Transports are safe for concurrent use.
package transport
