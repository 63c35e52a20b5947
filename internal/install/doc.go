// Package install makes what one cluster of a fleet needs to be applied: the install
// bases of the fleet repo's template, named and filled in.
//
//	Fleet (clusters, tenants, policy) ─┐
//	install bases of the template ─────┼─► Files ─► kustomization, objects, Liqo's values
//	addresses, image, fleet's id ──────┘
//
// What is in it follows from the Cluster file: roles, delivery, reservations. Peers are all
// clusters of the other role.
//
// Invariants:
//   - The bases are the only source: objects are copied from them, and those that are one
//     for each peer or tenant are made from the base's sample by its names. A sample that
//     is not found is an error, never an object that kept the sample's name.
//   - No object is twice: a cluster that is consumer and provider builds as one
//     kustomization.
//   - Names of people's files go into YAML only where Kubernetes takes them as names.
//   - No secret is read or written.
//
// `fleetbroker install` calls it. All functions are functions of their arguments and of the
// program's own files, safe for concurrent use.
package install
