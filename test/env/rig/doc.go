// Package rig puts a whole fleet together on one machine: real clusters, a
// real git server, certificates, and the project's own two programs as child
// processes. `make demo` and the end-to-end tests stand on it.
//
// It does not know package testing: a rig is started with Start and ended with
// Stop, which leaves nothing running. A Rig is used by one goroutine.
package rig
