// Package crd holds the kinds that agents serve in clusters, group
// fleetbroker.io: what a namespace asks for (ResourceRequest), what the cluster
// offers (Advertisement), what was decided for it (ReservationInstruction) and
// what it owes (ProviderInstruction).
//
// Only a ResourceRequest is written by people. The others are mirrors, written
// by the cluster's agent alone, so that `kubectl get` on either side shows what
// is offered, promised and held; the ledger is the truth, and who edits or
// deletes a mirror changes nothing but the picture.
//
// The CustomResourceDefinitions under schemas/crds and zz_generated.deepcopy.go
// are generated from these types and their comments (`make generate`); a test
// of package schemas proves them fresh. Quantities and money are text here, as
// in the fleet repo: the broker reads them, and floats never occur.
//
// Plain values: not to be changed while they are shared.
//
// +kubebuilder:object:generate=true
// +groupName=fleetbroker.io
// +versionName=v1alpha1
package crd
