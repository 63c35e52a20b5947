package crd

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Finalizer keeps a ResourceRequest until what it reserved is released.
const Finalizer = "fleetbroker.io/reservation"

// Phases of a ResourceRequest.
const (
	// RequestPending waits for an answer, or in the queue.
	RequestPending = "Pending"
	// RequestReserved is on the ledger.
	RequestReserved = "Reserved"
	// RequestActive can be used.
	RequestActive = "Active"
	// RequestDegraded is reserved and not usable as it should be.
	RequestDegraded = "Degraded"
	// RequestFailed was refused; deleting it is all that is left.
	RequestFailed = "Failed"
	// RequestReleased has ended.
	RequestReleased = "Released"
)

// ResourceRequest asks the fleet for capacity in this cluster. Its agent makes
// it a reservation of the cluster's tenant; deleting it releases that.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rreq,categories=fleetbroker
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.status.targetClusterID`
// +kubebuilder:printcolumn:name="Contract",type=string,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=`.spec.resources.gpu.count`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec ResourceRequestSpec `json:"spec"`
	// Status is where the reservation stands.
	// +optional
	Status ResourceRequestStatus `json:"status,omitempty"`
}

// ResourceRequestList is several.
//
// +kubebuilder:object:root=true
type ResourceRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceRequest `json:"items"`
}

// ResourceRequestSpec is what is asked for. A reservation is made once: to ask
// for something else, make another request.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a request cannot be changed once it is made: delete it and make another"
// +kubebuilder:validation:XValidation:rule="!has(self.queue) || !has(self.queue.timeout) || self.queue.policy == 'wait'",message="queue.timeout needs queue.policy: wait"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= (has(self.replicas) ? self.replicas : 1)",message="minReplicas must not be more than replicas"
type ResourceRequestSpec struct {
	// Resources of each replica; every quantity is a minimum.
	Resources RequestedResources `json:"resources"`
	// Replicas is how many equal slices; default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// MinReplicas is how many are enough; default all.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`
	// Priority from 0 to 1000, capped by the tenant.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// Duration such as 72h, from the reservation on; default the cluster's.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(h|m|s))+$') && duration(self) > duration('0s')",message="write a duration above zero, such as 72h or 90m"
	// +optional
	Duration string `json:"duration,omitempty"`
	// Placement narrows down where.
	// +optional
	Placement *RequestedPlacement `json:"placement,omitempty"`
	// Budget of the whole request.
	// +optional
	Budget *RequestedBudget `json:"budget,omitempty"`
	// Purchase is the acceptable price classes; default on-demand.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=on-demand;spot;reserved
	// +optional
	Purchase []string `json:"purchase,omitempty"`
	// Queue says what to do when nothing fits now; default fail.
	// +optional
	Queue *RequestedQueue `json:"queue,omitempty"`
	// Offload lets the pods of the request's own namespace use the capacity; the tenant must have that namespace.
	// +optional
	Offload bool `json:"offload,omitempty"`
}

// RequestedResources are Kubernetes quantities, and GPUs. Other keys are fully
// qualified extended resources, such as rdma/hca.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.cpu) || quantity(string(self.cpu)).isGreaterThan(quantity('0'))",message="cpu must be above zero"
// +kubebuilder:validation:XValidation:rule="!has(self.memory) || quantity(string(self.memory)).isGreaterThan(quantity('0'))",message="memory must be above zero"
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory) || has(self.gpu)",message="ask for cpu, memory or gpu"
type RequestedResources struct {
	// CPU cores, such as 16 or 500m.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,3})?m?$`
	// +optional
	CPU *intstr.IntOrString `json:"cpu,omitempty"`
	// Memory such as 128Gi.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(k|K|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$`
	// +optional
	Memory *intstr.IntOrString `json:"memory,omitempty"`
	// Pods that may run in it.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+$`
	// +optional
	Pods *intstr.IntOrString `json:"pods,omitempty"`
	// EphemeralStorage such as 200Gi.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(k|K|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$`
	// +optional
	EphemeralStorage *intstr.IntOrString `json:"ephemeral-storage,omitempty"`
	// GPU of each replica.
	// +optional
	GPU *RequestedGPU `json:"gpu,omitempty"`
	// Extended resources by their fully qualified names.
	Extended map[string]intstr.IntOrString `json:"-"`
}

// RequestedGPU is how many of what.
//
// +kubebuilder:validation:XValidation:rule="has(self.count) != has(self.share)",message="give either count (whole cards or units) or share (a part of one card)"
type RequestedGPU struct {
	// Count of GPUs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Count int64 `json:"count,omitempty"`
	// Share of one GPU, such as "0.5".
	// +kubebuilder:validation:Pattern=`^0\.[0-9]{1,3}$`
	// +optional
	Share string `json:"share,omitempty"`
	// Models, any of them; absent is no constraint.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Models []string `json:"models,omitempty"`
	// Memory per GPU, marketed size, a minimum ("80Gi") or a range ("40Gi..80Gi").
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Memory string `json:"memory,omitempty"`
	// Vendor such as nvidia.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// Tier such as premium.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Tier string `json:"tier,omitempty"`
	// Interconnect such as nvlink.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Interconnect string `json:"interconnect,omitempty"`
	// Profile of a MIG unit, such as 1g.10gb.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Profile string `json:"profile,omitempty"`
	// Sharing is mig, time-slicing or mps; without it whole cards are given.
	// +kubebuilder:validation:Enum=mig;time-slicing;mps
	// +optional
	Sharing string `json:"sharing,omitempty"`
}

// RequestedPlacement narrows down where.
type RequestedPlacement struct {
	// Providers by cluster id.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Providers []string `json:"providers,omitempty"`
	// Regions, any of them.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Regions []string `json:"regions,omitempty"`
	// Labels that the flavor or its cluster must have.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// MaxLatency from this cluster, such as 20ms.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(s|ms))+$`
	// +optional
	MaxLatency string `json:"maxLatency,omitempty"`
	// Where is a CEL condition over intent, flavor and cluster.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Where string `json:"where,omitempty"`
}

// RequestedBudget bounds what the request may cost.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxHourly) || has(self.maxTotal)",message="give maxHourly or maxTotal"
type RequestedBudget struct {
	// MaxHourly is the most per hour.
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,6})?$`
	// +optional
	MaxHourly string `json:"maxHourly,omitempty"`
	// MaxTotal is the most for the whole term.
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,6})?$`
	// +optional
	MaxTotal string `json:"maxTotal,omitempty"`
	// Currency of both; default the fleet's.
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +optional
	Currency string `json:"currency,omitempty"`
}

// RequestedQueue says what to do when nothing fits now.
type RequestedQueue struct {
	// Policy is wait or fail.
	// +kubebuilder:validation:Enum=wait;fail
	Policy string `json:"policy"`
	// Timeout of the wait, such as 24h.
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +optional
	Timeout string `json:"timeout,omitempty"`
}

// ResourceRequestStatus is where a reservation stands.
type ResourceRequestStatus struct {
	// Phase is Pending, Reserved, Active, Degraded, Failed or Released.
	// +kubebuilder:validation:Enum=Pending;Reserved;Active;Degraded;Failed;Released
	// +optional
	Phase string `json:"phase,omitempty"`
	// Fleet is the id of the fleet whose agent serves it, where several are in the cluster.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Fleet string `json:"fleet,omitempty"`
	// TargetClusterID is the provider of the first contract.
	// +optional
	TargetClusterID string `json:"targetClusterID,omitempty"`
	// ReservationName is the reservation's id, the name of its intent.
	// +optional
	ReservationName string `json:"reservationName,omitempty"`
	// Contract is the first of Contracts.
	// +optional
	Contract string `json:"contract,omitempty"`
	// Contracts that serve it, one a replica.
	// +optional
	Contracts []RequestContract `json:"contracts,omitempty"`
	// Commit of the ledger that holds the reservation.
	// +optional
	Commit string `json:"commit,omitempty"`
	// ReservedAt is when it was reserved.
	// +optional
	ReservedAt *metav1.Time `json:"reservedAt,omitempty"`
	// ExpiresAt is the end of its term.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Message says more, or what went wrong and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// Reason is Message in one machine-readable word.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// RequestContract is one contract of a request.
type RequestContract struct {
	// Name of the contract, and of the Node that it becomes.
	Name string `json:"name"`
	// Provider that gives.
	Provider string `json:"provider"`
	// Endpoint of the provider's API server, as far as known.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Phase of the contract.
	// +optional
	Phase string `json:"phase,omitempty"`
}
