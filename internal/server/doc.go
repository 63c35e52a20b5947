// Package server is everything the daemon says over HTTP.
//
//	agents    ──mTLS 1.3──►  agents' port    reports, reservations, instructions, the market
//	operators ──guarded───►  operators' port metrics, health, readiness, the market
//	forges    ──HMAC──────►  webhooks' port  "fetch now", nothing else
//
// Invariants: on the agents' port a certificate speaks for its own cluster
// alone; a revoked or expired one is refused at each request, however long its
// connection lives, and a revocation cuts the connections there are; an
// identity has a share of requests, bytes and connections, however many it
// opens, so that one noisy agent delays nobody else; no body is held beyond its
// limit, also when it was packed (a few kilobytes of gzip make gigabytes); what
// a webhook carries is never used; without TLS nothing is served beyond the
// loopback interface, and there the operators' port shows nothing without a
// certificate or a token (Guard).
//
// The cli makes handlers (NewAgents, NewOperators, NewWebhooks), binds them
// with Listen and runs them until a context ends. The small interfaces and
// functions it takes are declared here and implemented by market, reconciler
// and gitrepo. Everything is safe for concurrent use.
package server
