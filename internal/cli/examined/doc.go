// Package examined is what `fleetbroker doctor` found, as data and for people.
//
// Texts come from clusters and ledgers and are untrusted: Text escapes them. A cluster's
// findings are shown once, not again with each of its contracts. Package cli fills an
// Examination in; it is no concern of several goroutines.
package examined
