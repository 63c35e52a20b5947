// Package flux runs the whole path with real Liqo beside real Flux: the daemon
// commits, Flux applies, and delivery changes hands in both directions while
// contracts stand.
//
// The tests are in files with the build tag e2e, because they run servers of
// their own.
package flux
