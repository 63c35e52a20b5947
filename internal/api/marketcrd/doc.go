// Package marketcrd holds the kinds in which replicas of the daemon share one
// market, group market.fleetbroker.io, in the daemon's own namespace: what each
// provider's agent reported (Advertisement, and AdvertisementPart for what is too
// large for one object), what agents and replicas see of the manifests that they
// apply (Observation), and whom each replica hears (Heartbeat).
//
// The daemon alone writes them, and nothing in them is a root of trust, a head or
// a reservation: those come from the ledger. They are soft state. Deleting all of
// it costs one round of reports and loses nothing; nothing of it belongs into a
// backup. Who edits one changes what is offered until the provider's next report.
//
// The agents' own Advertisement (package crd, group fleetbroker.io) is another
// kind, in providers' clusters.
//
// The CustomResourceDefinitions and zz_generated.deepcopy.go are generated from
// these types and their comments (`make generate`).
//
// Plain values: not to be changed while they are shared.
//
// +kubebuilder:object:generate=true
// +groupName=market.fleetbroker.io
// +versionName=v1alpha1
package marketcrd
