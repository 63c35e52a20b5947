package marketcrd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Advertisement is what a provider's agent reported last, whole. Its name is the
// provider's.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=fleetbroker
// +kubebuilder:printcolumn:name="Flavors",type=integer,JSONPath=`.spec.summary.flavors`
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=`.spec.summary.gpus`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.spec.summary.gpusFree`
// +kubebuilder:printcolumn:name="Models",type=string,JSONPath=`.spec.summary.models`
// +kubebuilder:printcolumn:name="Replica",type=string,JSONPath=`.spec.replica`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.reportedAt`
type Advertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the report with who took it.
	Spec AdvertisementSpec `json:"spec"`
}

// AdvertisementList is several.
//
// +kubebuilder:object:root=true
type AdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Advertisement `json:"items"`
}

// AdvertisementSpec is a report with who took it.
type AdvertisementSpec struct {
	// Generation of the report, "<epoch>.<n>": it never goes back.
	//
	// +kubebuilder:validation:MaxLength=64
	Generation string `json:"generation"`
	// Replica of the daemon that took the report.
	//
	// +kubebuilder:validation:MaxLength=253
	Replica string `json:"replica"`
	// Certificate is the serial number, hexadecimal, of the certificate that it came with.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Certificate string `json:"certificate,omitempty"`
	// ReportedAt is when the report came, by that replica's clock; for people, nothing is decided by it.
	ReportedAt metav1.Time `json:"reportedAt"`
	// Summary for people.
	Summary AdvertisementSummary `json:"summary"`
	// Digest is the SHA-256 of the report as it was before it was packed, hexadecimal.
	//
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`
	// Report is the report's JSON, gzipped; absent where Parts have it.
	//
	// +kubebuilder:validation:MaxLength=360448
	// +optional
	Report []byte `json:"report,omitempty"`
	// Parts are the names of the AdvertisementParts that together have the gzipped report, in order.
	//
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Parts []string `json:"parts,omitempty"`
}

// AdvertisementSummary is a report in a few figures.
type AdvertisementSummary struct {
	// Flavors is how many are offered.
	Flavors int32 `json:"flavors"`
	// GPUs in all flavors.
	GPUs int64 `json:"gpus"`
	// GPUsFree are those that are neither used by the provider itself nor held by a contract, as the provider sees it.
	GPUsFree int64 `json:"gpusFree"`
	// Models of the GPUs, separated by commas.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Models string `json:"models,omitempty"`
}

// AdvertisementPart is a part of a report that is too large for one object. Its
// name is "<provider>.<digest>"; an Advertisement that names it is written after it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=fleetbroker
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AdvertisementPart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the part.
	Spec AdvertisementPartSpec `json:"spec"`
}

// AdvertisementPartList is several.
//
// +kubebuilder:object:root=true
type AdvertisementPartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdvertisementPart `json:"items"`
}

// AdvertisementPartSpec is a part of a report.
type AdvertisementPartSpec struct {
	// Provider that the report is of.
	//
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider"`
	// Report is the part's bytes.
	//
	// +kubebuilder:validation:MaxLength=360448
	Report []byte `json:"report"`
}

// Heartbeat is whom one replica of the daemon hears. Its name is the replica's.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=fleetbroker
// +kubebuilder:printcolumn:name="Beat",type=integer,JSONPath=`.spec.beat`
// +kubebuilder:printcolumn:name="Providers",type=integer,JSONPath=`.spec.providers`
// +kubebuilder:printcolumn:name="Serving",type=boolean,JSONPath=`.spec.serving`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.at`
type Heartbeat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the replica says.
	Spec HeartbeatSpec `json:"spec"`
}

// HeartbeatList is several.
//
// +kubebuilder:object:root=true
type HeartbeatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Heartbeat `json:"items"`
}

// HeartbeatSpec is what a replica says of itself and of whom it hears.
type HeartbeatSpec struct {
	// Life is another one with each start of the replica.
	//
	// +kubebuilder:validation:MaxLength=64
	Life string `json:"life"`
	// Beat counts what was written in that life.
	Beat int64 `json:"beat"`
	// At is when it was written, by the replica's clock; for people. How long ago a limit was written that is read first counts by it, and nothing else.
	At metav1.Time `json:"at"`
	// Serving: agents can report to this replica.
	Serving bool `json:"serving"`
	// Away: the fleet repo has not answered this replica for long, so that others deliver to clusters.
	//
	// +optional
	Away bool `json:"away,omitempty"`
	// Fleet is the id of its fleet; absent where that has none.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Fleet string `json:"fleet,omitempty"`
	// Address, host:port, at which other replicas reach this one's port for agents; absent where they do not.
	//
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Address string `json:"address,omitempty"`
	// Connections is how many agents' connections it has; absent where it does not say.
	//
	// +optional
	Connections *int32 `json:"connections,omitempty"`
	// Head is the newest commit of the ledger that it knows, hexadecimal.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Head string `json:"head,omitempty"`
	// Calls counts what told it that the fleet repo has news: webhooks.
	//
	// +optional
	Calls int64 `json:"calls,omitempty"`
	// Pushes counts those to the fleet repo in that life that its ledger does not show, refused ones too: they are of one budget.
	//
	// +optional
	Pushes int64 `json:"pushes,omitempty"`
	// ReadsHeld is for how many seconds from At on the fleet repo's server asks this replica not to read; absent: it does not. Other replicas do not read as long.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	ReadsHeld int32 `json:"readsHeld,omitempty"`
	// PushesHeld is for how many seconds from At on it asks this replica not to push.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	PushesHeld int32 `json:"pushesHeld,omitempty"`
	// Providers is how many it heard in the last minute.
	Providers int32 `json:"providers"`
	// Heard are those, gzipped: a line for each, "<provider> <generation> <beat>", by name; the beat is the first one that was written after it was heard.
	//
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Heard []byte `json:"heard,omitempty"`
}

// Observation is what is seen of a consumer's manifests by who applies them: the
// cluster's own agent, or the replica of the daemon that delivers there. Its name is
// the cluster's.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=fleetbroker
// +kubebuilder:printcolumn:name="Contracts",type=integer,JSONPath=`.spec.contracts`
// +kubebuilder:printcolumn:name="Replica",type=string,JSONPath=`.spec.replica`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.observedAt`
type Observation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the report with who took it.
	Spec ObservationSpec `json:"spec"`
}

// ObservationList is several.
//
// +kubebuilder:object:root=true
type ObservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Observation `json:"items"`
}

// ObservationSpec is a report with who took it.
type ObservationSpec struct {
	// Generation of the report, "<epoch>.<n>": it never goes back.
	//
	// +kubebuilder:validation:MaxLength=64
	Generation string `json:"generation"`
	// Replica of the daemon that took the report.
	//
	// +kubebuilder:validation:MaxLength=253
	Replica string `json:"replica"`
	// ObservedAt is when the report came, by that replica's clock; for people, nothing is decided by it.
	ObservedAt metav1.Time `json:"observedAt"`
	// Contracts is of how many it tells.
	Contracts int32 `json:"contracts"`
	// Report is the report's JSON, gzipped.
	//
	// +kubebuilder:validation:MaxLength=1048576
	Report []byte `json:"report"`
}
