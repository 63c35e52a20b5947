package wire

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// ManifestsPath is the route of what a cluster's agent applies there (delivery:
// agent).
func ManifestsPath(cluster string) string { return "/api/v2/clusters/" + cluster + "/manifests" }

// ManifestsRootPath is the route of the hash of those manifests as the remote
// repository has them at this moment.
func ManifestsRootPath(cluster string) string { return ManifestsPath(cluster) + "/root" }

// ObservationsPath is the route by which an agent tells what it sees of them.
func ObservationsPath(cluster string) string { return "/api/v2/clusters/" + cluster + "/observations" }

// ReasonNotDelivered refuses manifests of a cluster that others deliver to.
const ReasonNotDelivered = "NotDelivered"

// Manifests are what a cluster's agent applies, whole.
type Manifests struct {
	// Version names the content: equal content has equal versions, whichever
	// daemon gives it.
	Version string `json:"version"`
	// Commit of the ledger, for people.
	Commit string `json:"commit"`
	// Root is the git hash of manifests/<consumer> on the ledger, as
	// ManifestsRootPath says it: that of the tree of Files, unless another hand wrote
	// there what is not rendered.
	Root string `json:"root"`
	// Cluster describes the consumer.
	Cluster *v1alpha1.Cluster `json:"cluster"`
	// Files are what the contracts render to, and those of overlays/<consumer>
	// among the inputs, by path within manifests/<consumer> and there.
	Files   map[string]string `json:"files"`
	Overlay map[string]string `json:"overlay,omitempty"`
	// Contracts that are held, without decision and status.
	Contracts []*v1alpha1.Contract `json:"contracts"`
	// Peers are the providers that the consumer may need slices of, by name.
	Peers map[string]Peer `json:"peers,omitempty"`
	// Refused are namespaces that are offloaded to nobody, with why: another
	// mapping has what they are called at a provider.
	Refused map[string]string `json:"refused,omitempty"`
	// Traces are those in which contracts are on their way (until Active), by slice, each
	// as W3C's traceparent. They are no part of what Version names.
	Traces map[string]string `json:"traces,omitempty"`
}

// Peer is a provider as a consumer's agent needs it for peering.
type Peer struct {
	Provider *v1alpha1.Cluster `json:"provider"`
	// Needed: a contract with it is held. Undo: a peering without one is undone.
	Needed bool `json:"needed,omitempty"`
	Undo   bool `json:"undo,omitempty"`
	// Ids of Liqo, and the namespaces of Liqo for the other side.
	ConsumerID string `json:"consumerID"`
	ProviderID string `json:"providerID"`
	OnConsumer string `json:"onConsumer"`
	OnProvider string `json:"onProvider"`
}

// ManifestsRoot is the answer of ManifestsRootPath.
type ManifestsRoot struct {
	Root string `json:"root"`
}
