package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
)

// Observation is what the clusters say about one contract right now. Delivery
// makes it, the planner turns it into phases; it is never written to a file.
// The zero Observation means that nobody has looked: it proves nothing, neither
// presence nor absence.
type Observation struct {
	// Consumer is what the consumer cluster says.
	Consumer ConsumerObservation
	// ProviderHolds is what the provider's agent reports as granted to or running under the contract; meaningful when ProviderSeen.
	ProviderHolds Resources
	// ProviderSeen is true when the provider's newest report is fresh.
	ProviderSeen bool
}

// Presence is what is known of an object.
type Presence uint8

// Unknown means that nobody has looked, or that the cluster does not answer.
const (
	Unknown Presence = iota
	Absent
	Present
)

// ConsumerObservation is what a consumer cluster says about one contract.
type ConsumerObservation struct {
	// Reachable is false while the cluster does not answer; the rest is then Unknown.
	Reachable bool
	// Bystander: who says this does not hold the cluster's Lease: a replica that is
	// taking it over (package spread), or one of two daemons without a shared market. What
	// is missing is seen alike by both; what stands in its way only the holder knows, and
	// what was written of it stays.
	Bystander bool `json:",omitempty"`
	// Message explains an unreachable cluster or the newest trouble.
	Message string
	// PeeringMessage says why the cluster cannot ask the provider for slices, ""
	// when it can or nobody has tried.
	PeeringMessage string
	// ProviderMessage says that Liqo does not reach the provider's API server, ""
	// when it does or says nothing.
	ProviderMessage string
	// Slice is the ResourceSlice.
	Slice Presence
	// SliceDenied is the provider's refusal with its words, "" when there is none.
	SliceDenied string
	// Granted is status.resources of the slice, when its Resources condition is Accepted.
	Granted Resources
	// VirtualNode is the VirtualNode object.
	VirtualNode Presence
	// Node is the Node it became.
	Node Presence
	// NodeReady is its Ready condition.
	NodeReady bool
	// NodeMessage says why it is not, in Kubernetes' words.
	NodeMessage string
	// Allocatable of the Node.
	Allocatable Resources
	// Offloading is true when every NamespaceOffloading of the contract is Ready
	// (or it has none) and the provider refuses no pod of theirs.
	Offloading bool
	// OffloadingReason is why it is not, as a code such as OffloadingBackOff; "" for none that matters.
	OffloadingReason string `json:",omitempty"`
	// OffloadingMessage says what is not ready.
	OffloadingMessage string
	// Blockers are what holds a drain up, in order: pods that are left on the
	// Node, each with the PodDisruptionBudget that keeps it, if one does.
	Blockers []string
}

// Apart is the observation with OffloadingReason and OffloadingMessage apart: older
// agents and records have OffloadingBackOff before the message.
func (o ConsumerObservation) Apart() ConsumerObservation {
	if message, is := strings.CutPrefix(o.OffloadingMessage, ReasonBackOff+": "); is && o.OffloadingReason == "" {
		o.OffloadingReason, o.OffloadingMessage = ReasonBackOff, message
	}
	return o
}

// Equal reports whether two observations say the same. Nothing granted is not the
// same as nothing known of it.
func (o *ConsumerObservation) Equal(p *ConsumerObservation) bool {
	return o.Reachable == p.Reachable && o.Bystander == p.Bystander && o.Message == p.Message && o.Slice == p.Slice && o.SliceDenied == p.SliceDenied &&
		o.VirtualNode == p.VirtualNode && o.Node == p.Node && o.NodeReady == p.NodeReady && o.Offloading == p.Offloading &&
		o.OffloadingReason == p.OffloadingReason && o.OffloadingMessage == p.OffloadingMessage && o.PeeringMessage == p.PeeringMessage && o.ProviderMessage == p.ProviderMessage &&
		o.NodeMessage == p.NodeMessage && slices.Equal(o.Blockers, p.Blockers) && o.Granted.Same(p.Granted) && o.Allocatable.Same(p.Allocatable)
}

// ConsumerObservations are what consumer clusters say, by cluster and contract.
// A value never changes: of a cluster that says something else there is another
// map.
type ConsumerObservations map[string]map[string]ConsumerObservation

// Of is what a cluster says of a contract; the zero value when nothing.
func (o ConsumerObservations) Of(cluster, contract string) ConsumerObservation {
	return o[cluster][contract]
}

// Differs are the clusters that do not say the very same in o as in before. It
// costs a comparison of addresses a cluster.
func (o ConsumerObservations) Differs(before ConsumerObservations) (out []string) {
	for cluster, said := range o {
		if reflect.ValueOf(said).UnsafePointer() != reflect.ValueOf(before[cluster]).UnsafePointer() {
			out = append(out, cluster)
		}
	}
	for cluster := range before {
		if _, still := o[cluster]; !still {
			out = append(out, cluster)
		}
	}
	return out
}

// Gone reports whether slice, virtual node and Node are all seen to be absent
// on the consumer.
func (o ConsumerObservation) Gone() bool {
	return o.Slice == Absent && o.VirtualNode == Absent && o.Node == Absent
}

// Drained reports whether virtual node and Node are seen to be absent: pods
// were evicted and the slice may go. (A slice that is gone proves nothing.)
func (o ConsumerObservation) Drained() bool { return o.VirtualNode == Absent && o.Node == Absent }
