// Package hub checks the cluster that keeps the market of a daemon's replicas: how much
// of etcd's quota is used.
//
//	API server ──GET /metrics──► Size ──Check──► []doctor.Finding
//
// # Invariants
//
//   - One request is made and nothing is changed. The answer is hostile input: it is
//     read line by line up to a bound.
//   - A size that could not be read proves nothing: it is a note that says why, never
//     a finding and never silence.
//   - The API server does not report etcd's quota. It is what the caller states, and a
//     finding names it.
//
// cli calls it for `fleetbroker doctor`. Nothing is kept between calls; all functions
// are safe for concurrent use.
package hub
