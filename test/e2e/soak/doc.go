// Package soak lets the two programs run for a while under load and faults, and
// demands that nothing grows: 20 tenants ask, change and give back, the git server
// stalls, ends and refuses in the middle of bodies, daemons and agents are killed,
// stopped, frozen and started on damaged state, API servers hang and go away.
//
//	go test -tags e2e ./test/e2e/soak [-full | -length 10m] -v
//
// One daemon and one agent live through all of it. When every fault has happened
// once, and again at the end, all intents are given back and everything comes to
// rest; between the two the memory, goroutines and open files of those two may
// not have grown beyond the stated tolerances, no temporary file may be left, and
// the checker judges the ledger's whole history.
package soak
