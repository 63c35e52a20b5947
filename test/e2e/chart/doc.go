// Package chart renders, installs, upgrades and removes the Helm chart with Helm itself
// (built from its Go module, as Liqo's is) on a real API server, and compares what it renders
// with what kustomize builds of the install bases. Nothing here runs a container.
package chart
