// Package enforce tries, with the tag e2e, what the two sides of a contract do
// in their clusters: two real agents, the daemon, a git server and two real API
// servers; slices are granted as the ledger says and no further, requests made
// in a cluster become contracts, and neither a killed agent nor a cut network
// changes what stands.
//
// Liqo's kinds are installed, its programs are not. What they would do between
// the clusters (crd-replicator's copies of slices, the Quota of what is granted,
// the virtual node) a stand-in of this package does, by Liqo v1.2.0's rules as
// far as they matter here: twin_e2e_test.go. Everything else is the real thing.
package enforce
