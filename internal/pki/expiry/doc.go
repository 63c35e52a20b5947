// Package expiry shows in metrics when the certificates end that a program serves or uses.
//
//	pki.Files ─► Collector ─► fleetbroker_certificate_expiry_timestamp_seconds
//
// # Invariants
//
//   - What is shown is the material in force: where newer files cannot be used, the older
//     ones' end.
//   - Of a certificate with intermediates, and of several authorities, the earliest end is
//     shown: then the first is refused.
//
// # Who calls it
//
// The daemon's main and the agent make a Collector, register it and hand it their
// certificates once these are open. It imports pki alone.
//
// # Concurrency
//
// A Collector is safe for concurrent use. Each scrape looks at the files.
package expiry
