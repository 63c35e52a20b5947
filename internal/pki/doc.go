// Package pki makes and reads the certificates by which agents, operators and
// the daemon know each other: one certificate authority a fleet, certificates
// whose common name is a cluster's id and whose role stands in a SAN URI, and a
// revocation list that lives in the fleet repo as pki/revoked.crl.
//
//	DIR/ca.crt  DIR/ca.key (0600)  DIR/revoked.crl  DIR/issued/<serial>.crt
//	   │ Issue
//	   ▼
//	OUT/tls.crt  OUT/tls.key (0600)  OUT/ca.crt      what an agent or the daemon is given
//
// Invariants: keys are ECDSA P-256 and never leave the file they were made for;
// serial numbers are 120 random bits; nothing that exists is overwritten; a
// certificate is for clients, and for servers only when it names hosts; the
// revocation list only grows.
//
// The CLI's `pki` commands make things here, server and agent only read (Files,
// Revoked, IdentityOf). An Authority is used by one goroutine; Files and
// Revoked are safe for several.
//
// # Roles and revocation
//
// A role stands in a SAN URI, urn:fleetbroker:role:operator, :reader or :server; a
// certificate without one is an agent's. Keys are ECDSA P-256; an authority lasts ten
// years, a certificate one. The programs read their files again at every connection, so a
// renewed certificate needs no restart.
//
// A revocation list is taken when an authority of ours signed it, it is not from the
// future, and its number is not below that of the list in force; the connections of the
// certificates it names are cut at once. One that cannot be used leaves the former in
// force.
package pki
