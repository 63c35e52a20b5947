package crd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Advertisement is a flavor that this cluster offers, as its agent reports it.
// It is a mirror: editing it changes nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=adv,categories=fleetbroker
// +kubebuilder:printcolumn:name="GPU",type=string,JSONPath=`.spec.gpuModel`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.gpuMemory`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity.gpu`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used.gpu`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.held.gpu`
// +kubebuilder:printcolumn:name="Free",type=string,JSONPath=`.status.available.gpu`
// +kubebuilder:printcolumn:name="CPU free",type=string,JSONPath=`.status.available.cpu`,priority=1
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,JSONPath=`.spec.cordon`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Advertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is offered.
	Spec AdvertisementSpec `json:"spec"`
	// Status is how much of it there is.
	// +optional
	Status AdvertisementStatus `json:"status,omitempty"`
}

// AdvertisementList is several.
//
// +kubebuilder:object:root=true
type AdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Advertisement `json:"items"`
}

// AdvertisementSpec is what is offered.
type AdvertisementSpec struct {
	// ClusterID of this cluster in the fleet.
	ClusterID string `json:"clusterID"`
	// Flavor by its name in the fleet.
	Flavor string `json:"flavor"`
	// Architecture of the nodes.
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// GPUModel such as nvidia-h100.
	// +optional
	GPUModel string `json:"gpuModel,omitempty"`
	// GPUMemory of one unit, marketed size.
	// +optional
	GPUMemory string `json:"gpuMemory,omitempty"`
	// GPUTier such as premium.
	// +optional
	GPUTier string `json:"gpuTier,omitempty"`
	// GPUResource is what pods ask for, such as nvidia.com/gpu.
	// +optional
	GPUResource string `json:"gpuResource,omitempty"`
	// Region of the nodes.
	// +optional
	Region string `json:"region,omitempty"`
	// Class of the ResourceSlices: fleetbroker where the agent enforces, else default.
	// +optional
	Class string `json:"class,omitempty"`
	// NodeSelector finds the nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Cordon means that nothing new is sold.
	// +optional
	Cordon bool `json:"cordon,omitempty"`
	// Drain is when contracts must have moved elsewhere.
	// +optional
	Drain *metav1.Time `json:"drain,omitempty"`
}

// AdvertisementStatus is how much there is, in canonical quantities.
type AdvertisementStatus struct {
	// Capacity is all there is.
	// +optional
	Capacity map[string]string `json:"capacity,omitempty"`
	// Used is what the cluster's own pods use.
	// +optional
	Used map[string]string `json:"used,omitempty"`
	// Held is what is granted to, or still running under, all slices.
	// +optional
	Held map[string]string `json:"held,omitempty"`
	// Available is what is left of it.
	// +optional
	Available map[string]string `json:"available,omitempty"`
	// Contracts is how many slices hold something.
	// +optional
	Contracts int32 `json:"contracts,omitempty"`
}

// ReservationInstruction is a contract for this cluster as consumer: what was
// decided for it. It is a mirror: editing it changes nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rinst,categories=fleetbroker
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.targetClusterID`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.spec.tenant`
// +kubebuilder:printcolumn:name="Intent",type=string,JSONPath=`.spec.intent`
// +kubebuilder:printcolumn:name="Delivered",type=boolean,JSONPath=`.status.delivered`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ReservationInstruction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what was agreed.
	Spec ReservationInstructionSpec `json:"spec"`
	// Status is where it stands.
	// +optional
	Status ReservationInstructionStatus `json:"status,omitempty"`
}

// ReservationInstructionList is several.
//
// +kubebuilder:object:root=true
type ReservationInstructionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReservationInstruction `json:"items"`
}

// Agreed is what both sides of a contract know of it.
type Agreed struct {
	// ReservationName is the name of the intent.
	ReservationName string `json:"reservationName"`
	// Contract by its name.
	Contract string `json:"contract"`
	// Slice is the name of ResourceSlice, virtual node and Node.
	Slice string `json:"slice"`
	// Tenant that pays.
	Tenant string `json:"tenant"`
	// Intent that is served.
	Intent string `json:"intent"`
	// Flavor of the provider.
	Flavor string `json:"flavor"`
	// Resources in the names that the slice carries.
	Resources map[string]string `json:"resources"`
	// StartsAt is when it was reserved.
	// +optional
	StartsAt *metav1.Time `json:"startsAt,omitempty"`
	// ExpiresAt is the end of the term; absent is open-ended.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Commit of the ledger that was last read.
	// +optional
	Commit string `json:"commit,omitempty"`
}

// ReservationInstructionSpec is what was agreed, seen from the consumer.
type ReservationInstructionSpec struct {
	Agreed `json:",inline"`
	// TargetClusterID is the provider.
	TargetClusterID string `json:"targetClusterID"`
	// Endpoint of the provider's API server, as far as known.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// ReservationInstructionStatus is where a contract stands on its consumer.
type ReservationInstructionStatus struct {
	// Phase of the contract.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Reason as a code, when it is not well or is ending.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Delivered is true once the ResourceSlice is here.
	// +optional
	Delivered bool `json:"delivered,omitempty"`
	// Expiring is true once a tenth of the term is left, a day at the most.
	// +optional
	Expiring bool `json:"expiring,omitempty"`
}

// ProviderInstruction is a contract that this cluster owes as provider, and
// what came of it. It is a mirror: editing it changes nothing, but for the
// annotation fleetbroker.io/refuse, whose text is the reason for which the
// cluster no longer honours the contract.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pinst,categories=fleetbroker
// +kubebuilder:printcolumn:name="Consumer",type=string,JSONPath=`.spec.requesterClusterID`
// +kubebuilder:printcolumn:name="Flavor",type=string,JSONPath=`.spec.flavor`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Enforced",type=boolean,JSONPath=`.status.enforced`
// +kubebuilder:printcolumn:name="Slice",type=string,JSONPath=`.status.slice`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderInstruction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what was agreed.
	Spec ProviderInstructionSpec `json:"spec"`
	// Status is what came of it.
	// +optional
	Status ProviderInstructionStatus `json:"status,omitempty"`
}

// ProviderInstructionList is several.
//
// +kubebuilder:object:root=true
type ProviderInstructionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderInstruction `json:"items"`
}

// ProviderInstructionSpec is what was agreed, seen from the provider.
type ProviderInstructionSpec struct {
	Agreed `json:",inline"`
	// RequesterClusterID is the consumer.
	RequesterClusterID string `json:"requesterClusterID"`
}

// ProviderInstructionStatus is what came of a contract on its provider.
type ProviderInstructionStatus struct {
	// Phase of the contract.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Enforced is true while the slice has exactly what the contract says.
	// +optional
	Enforced bool `json:"enforced,omitempty"`
	// Slice is Absent, Pending, Accepted or Denied.
	// +optional
	Slice string `json:"slice,omitempty"`
	// Granted to the slice.
	// +optional
	Granted map[string]string `json:"granted,omitempty"`
	// Message says why it is not enforced.
	// +optional
	Message string `json:"message,omitempty"`
}
