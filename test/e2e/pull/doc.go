// Package pull runs a consumer with delivery: agent: its own agent, with the
// rights of the install base, pulls manifests over its line and applies them,
// and the daemon has no way into the cluster.
//
// The tests are in files with the build tag e2e, because they run servers of
// their own.
package pull
