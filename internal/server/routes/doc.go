// Package routes lists what the daemon's ports serve beside the dashboard, for the OpenAPI
// document: the agents' and reservations' routes, those between replicas, the operators' and
// the webhooks'.
//
// Invariant: each route that package server registers is in the list, and each of the list
// is registered; a test there holds it (routes_test.go). It describes and serves nothing.
// Each caller has a list of its own.
package routes
