// Package argo runs the whole path with real Argo CD: the daemon commits, Argo CD
// applies, by the Applications, projects and accounts of the template. One test has real
// Liqo and Argo CD in the consumer, the other a hub whose Argo CD reaches the consumer
// from outside.
//
// The tests are in files with the build tag e2e, because they run servers of
// their own.
package argo
