package v1alpha1

import "slices"

// Cluster is one Kubernetes cluster of the fleet: consumer, provider or both.
type Cluster struct {
	TypeMeta `json:",inline"`
	// Metadata names the cluster: its id everywhere.
	Metadata Metadata `json:"metadata"`
	// Spec describes it.
	Spec ClusterSpec `json:"spec"`
}

// ClusterSpec describes a Cluster.
type ClusterSpec struct {
	// Roles are provider, consumer, or both.
	Roles []string `json:"roles"`
	// Liqo is how Liqo is installed there.
	Liqo LiqoSpec `json:"liqo,omitzero"`
	// Endpoint is information for people and answers; the server that is dialled is the kubeconfig's.
	Endpoint string `json:"endpoint,omitempty"`
	// Access is how the daemon reaches the cluster.
	Access *ClusterAccess `json:"access,omitempty"`
	// Delivery is direct, flux, argocd, agent or none; default the fleet's.
	Delivery string `json:"delivery,omitempty"`
	// Deliverers are further users of the cluster that apply manifests there, as its API server names them (system:serviceaccount:<namespace>:<name>):
	// an Argo CD's of another cluster, or one whose account is not the usual one.
	Deliverers []string `json:"deliverers,omitempty"`
	// Admission is by what pods in tenants' namespaces get the tolerations of their intents: v1 (a MutatingAdmissionPolicy, Kubernetes 1.36 or newer), v1beta1 (the same where its API server serves that version, 1.34 or newer), or webhook (the cluster's agent, Kubernetes 1.30 or newer). Default v1. doctor shows what a cluster serves.
	Admission string `json:"admission,omitempty"`
	// Agent is what is expected of the cluster's agent.
	Agent ClusterAgent `json:"agent,omitzero"`
	// Location of the cluster. One that is stated here, if only a key of it, holds as a whole for all flavors that the agent reports: keys left out are unknown, whatever the agent says.
	Location Location `json:"location,omitzero"`
	// Price of all its flavors, class by class (on-demand, spot, reserved): a class that is stated here, or before it in a price table, holds whatever the agent reports.
	Price *Price `json:"price,omitempty"`
	// DefaultPrice for flavors of which neither a table, nor price, nor the agent names a price.
	DefaultPrice *Price `json:"defaultPrice,omitempty"`
	// TrustAgent lists on what the agent's word goes before what files state: price, location. Default: nothing.
	TrustAgent []string `json:"trustAgent,omitempty"`
	// Properties of all its flavors that state none of their own: they go over what its agent reports.
	Properties FlavorProperties `json:"properties,omitzero"`
	// Labels that intents can demand of all its flavors.
	Labels map[string]string `json:"labels,omitempty"`
	// Reservations allows this cluster's agent to ask for capacity; absent forbids it.
	Reservations *ClusterReservations `json:"reservations,omitempty"`
	// Cordon sells nothing new of this cluster.
	Cordon bool `json:"cordon,omitempty"`
	// Drain moves contracts elsewhere by this time.
	Drain Time `json:"drain,omitzero"`
}

// Roles of a cluster.
const (
	// RoleProvider gives capacity.
	RoleProvider = "provider"
	// RoleConsumer is where capacity appears.
	RoleConsumer = "consumer"
)

// Forms of admission: by what pods in tenants' namespaces get their tolerations.
const (
	AdmissionV1      = "v1"
	AdmissionV1Beta1 = "v1beta1"
	AdmissionWebhook = "webhook"
)

// AdmissionForm is the cluster's form of admission. The cluster may be nil.
func (c *Cluster) AdmissionForm() string {
	if c == nil || c.Spec.Admission == "" {
		return AdmissionV1
	}
	return c.Spec.Admission
}

// HasRole reports whether the cluster is a "provider" or a "consumer".
func (c *Cluster) HasRole(role string) bool {
	return slices.Contains(c.Spec.Roles, role)
}

// LiqoSpec is how Liqo is installed in a cluster.
type LiqoSpec struct {
	// ClusterID is Liqo's id of the cluster; default the cluster's name.
	ClusterID string `json:"clusterID,omitempty"`
	// Namespace of Liqo's control plane; default liqo. Like tenantNamespace it is never offloaded, whatever tenants claim.
	Namespace string `json:"namespace,omitempty"`
	// TenantNamespace for all peerings of this cluster; default liqo-tenant-<the other side's clusterID>.
	TenantNamespace string `json:"tenantNamespace,omitempty"`
	// Networking says that Liqo's network module connects this cluster with those it is peered with, and liqoctl network connect is run for each pair: doctor then looks at the connection. Off where another network connects them, or none need.
	Networking bool `json:"networking,omitempty"`
	// Classes are the cluster's own slice classes that flavors may name, beside fleetbroker and default.
	Classes []SliceClass `json:"classes,omitempty"`
}

// SliceClass is a ResourceSlice class of a provider.
type SliceClass struct {
	// Name of the class, as slices carry it.
	Name string `json:"name"`
	// Grants says who answers its slices: agent (a controller that grants exactly what contracts state, as fleet-agent does) or others (whoever the provider runs; limits are then taken not to be enforced).
	Grants string `json:"grants"`
}

// Who answers slices of a class.
const (
	GrantsAgent  = "agent"
	GrantsOthers = "others"
)

// GrantedByAgent reports whether slices of a class are granted exactly as contracts
// state. The cluster may be nil.
func (c *Cluster) GrantedByAgent(class string) bool {
	if class == ClassFleetbroker || c == nil {
		return class == ClassFleetbroker
	}
	for _, own := range c.Spec.Liqo.Classes {
		if own.Name == class {
			return own.Grants == GrantsAgent
		}
	}
	return false
}

// ClusterAccess is how the daemon reaches a cluster. Without it, a file
// <id>.kubeconfig in --kubeconfigs-dir is used.
type ClusterAccess struct {
	// KubeconfigSecretRef names a Secret in the daemon's namespace, labelled fleetbroker.io/cluster.
	KubeconfigSecretRef *SecretKeyRef `json:"kubeconfigSecretRef,omitempty"`
}

// ClusterAgent is what is expected of a cluster's agent.
type ClusterAgent struct {
	// GracePeriod of silence before the cluster counts as lost; default the fleet's.
	GracePeriod Duration `json:"gracePeriod,omitzero"`
}

// ClusterReservations lets a cluster's agent ask for capacity.
type ClusterReservations struct {
	// Tenant that such requests belong to.
	Tenant string `json:"tenant"`
	// DefaultDuration of requests that name none.
	DefaultDuration Duration `json:"defaultDuration,omitzero"`
}
